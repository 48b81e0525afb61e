"""What the wordless audio at pauses is: how low it sounds, and whether it is an echo of the user (P2 App. D)."""

from typing import Any, Final

import numpy as np
import polars as pl

from duplex_bench.audio.echo import dominant_hz, echo_correlation
from duplex_bench.audio.resample import resample
from duplex_bench.records.items import Reference, Stimulus
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import from_pcm16
from duplex_bench.storage.serial import from_json

# An echo comes back within a second (ours), and has more than half of its waveform in common with what it is one of.
MOST_LAG_S: Final = 1.0
ECHO_FROM: Final = 0.5
# Of the demo's speech, which echoes nothing, none of 317 stretches of 0.3 s or more came above 0.46; of 198 shorter
# ones eight came above 0.5, since a few periods of a voice are like those of any other.
TOLD_FROM_S: Final = 0.3
_METRIC: Final = "pause_wordless"
_SCHEMA: Final = {
    "system": pl.String, "n_rollouts": pl.Int64, "n_intervals": pl.Int64, "seconds": pl.Float64,
    "dominant_hz_q1": pl.Float64, "dominant_hz": pl.Float64, "dominant_hz_q3": pl.Float64,
    "n_long": pl.Int64, "echo_correlation": pl.Float64, "n_echo": pl.Int64,
}  # fmt: skip


def wordless_audio(workspace: Workspace, tables: TrackTables) -> Table | None:
    """Every stretch above the gate of the pause rollouts that were wordless, by system; None where none was.

    ``echo_correlation`` is the median over ``n_long`` stretches, those of ``TOLD_FROM_S`` or more, of the greatest
    correlation with what the user said up to a second before; ``n_echo`` counts those at ``ECHO_FROM`` or more.
    """
    wordless = tables.measurements.filter((pl.col("metric") == _METRIC) & (pl.col("value") == 1.0))
    about = (
        wordless.select("system", "item_id", "rollout_key")
        .join(tables.rollouts.select("rollout_key", "listener_audio"), on="rollout_key", how="inner")
        .join(tables.activity.select("rollout_key", "gate_s"), on="rollout_key", how="inner")
        .join(tables.items.select("item_id", "stimulus", "reference"), on="item_id", how="inner")
        .drop_nulls(["listener_audio", "gate_s"])
        .sort("system", "rollout_key")
    )
    rows = []
    for (system,), part in about.group_by("system", maintain_order=True):
        found = [one for row in part.iter_rows(named=True) for one in _stretches(workspace, row)]
        if not found:
            continue
        frame = pl.DataFrame(found)
        long = frame.filter(pl.col("seconds") >= TOLD_FROM_S)["echo"]
        low, middle, high = (frame["hz"].quantile(q, "linear") for q in (0.25, 0.5, 0.75))
        rows.append(
            {"system": system, "n_rollouts": part.height, "n_intervals": frame.height,
             "seconds": frame["seconds"].sum(), "dominant_hz_q1": low, "dominant_hz": middle, "dominant_hz_q3": high,
             "n_long": len(long), "echo_correlation": long.median(), "n_echo": int((long >= ECHO_FROM).sum())}
        )  # fmt: skip
    if not rows:
        return None
    return Table(
        "conversation-wordless-audio",
        "Conversation: what wordless audio at pauses is",
        "Stretches above the gate, from the pause start on, of the pause rollouts in which no word was heard. dominant "
        "hz: where a stretch has most power, median and quartiles. n long: stretches of "
        f"{TOLD_FROM_S:g} s or more, of which it can be told; echo correlation: their median greatest correlation with "
        f"what the user said up to {MOST_LAG_S:g} s before; n echo: those at {ECHO_FROM:g} or more, which are the "
        "user's own voice come back. The three numbers are ours.",
        pl.DataFrame(rows, schema=_SCHEMA),
    )


def _stretches(workspace: Workspace, row: dict[str, Any]) -> list[dict[str, float]]:
    blobs = workspace.blobs
    window = next((one for one in from_json(Reference, row["reference"]).windows if one.kind == "pause"), None)
    if window is None:
        return []
    live = from_json(Stimulus, row["stimulus"]).live
    try:
        samples, rate = blobs.read_audio(row["listener_audio"])
        spoken = blobs.read_slice(live)
    except KeyError:
        # Audio that the store lost: the outcome stands, what it was cannot be told.
        return []
    heard = from_pcm16(samples[:, 0])
    said = resample(from_pcm16(spoken), live.sample_rate_hz, rate)
    found = []
    for start_s, end_s in row["gate_s"]:
        first, last = round(max(start_s, window.start_s) * rate), round(end_s * rate)
        sound = np.asarray(heard[first:last], dtype=np.float32)
        # A stretch that reaches a few samples into the pause is none.
        if len(sound) < rate * 0.08:
            continue
        echo = echo_correlation(sound, said, first, round(MOST_LAG_S * rate))
        found.append({"seconds": len(sound) / rate, "hz": dominant_hz(sound, rate), "echo": echo})
    return found
