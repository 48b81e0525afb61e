"""Takeover rates with the measured error of pause boundaries in their intervals (design 8; ours)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.conversation.label_accuracy import matches
from duplex_bench.conversation.label_types import Label
from duplex_bench.conversation.measures import as_spans, overlap_matrix
from duplex_bench.conversation.sensitivity import StoredPause
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.conversation_sensitivity import stored_pauses
from duplex_bench.stages.recognition import EDGES
from duplex_bench.stages.summary import stored_tables
from duplex_bench.stages.workspace import Workspace
from duplex_bench.statistics import Interval, rate_interval
from duplex_bench.statistics.boundary_error import boundary_interval
from duplex_bench.storage.digests import generator_from
from duplex_bench.storage.frames import read_frame

# Pauses whose boundaries lie further apart are other pauses, not errors (ours).
TOLERANCE_S: Final = 0.5
LEAST_ERRORS: Final = 20
N_DRAWS: Final = 200
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasuredErrors:
    """Label minus truth of pause boundaries, float64 (m, 2) seconds (start, end), and what the truth is."""

    errors_s: Floats
    truth: str


def measured_errors(workspace: Workspace) -> MeasuredErrors | None:
    """Errors of pause boundaries: the engine's against people's where sessions were reviewed, else the detector's.

    A synthetic corpus hands its own exact speech intervals to the engine, which therefore shows no error there; the
    edges that the voice detector finds of known utterances say what boundaries are worth that rest on it.

    Returns:
        None with fewer than ``LEAST_ERRORS`` edges to compare: nothing is assumed in their place.
    """
    engine, used = (_stored(workspace, ("conversation", name)) for name in ("engine_labels", "labels"))
    if engine is not None and used is not None:
        people = used.filter(pl.col("source") != "engine")["session_id"].unique().to_list()
        found = _errors(engine, used.filter(pl.col("session_id").is_in(people)), people)
        if len(found) >= LEAST_ERRORS:
            return MeasuredErrors(found, f"labels that people approved in {len(people)} sessions")
    stored = _stored(workspace, ("results", "recogniser_quality"))
    if stored is None:
        return None
    edges = next((table.frame for table in stored_tables(workspace, stored) if table.id == EDGES), None)
    if edges is None or edges.height < LEAST_ERRORS:
        return None
    # A pause begins where an utterance ends, and ends where one begins.
    found = edges.select("offset_s", "onset_s").to_numpy()
    return MeasuredErrors(found, "known utterances, as the voice detector finds them")


def _stored(workspace: Workspace, asset: tuple[str, str]) -> pl.DataFrame | None:
    key = workspace.table_key(asset, None)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None


def _labels(frame: pl.DataFrame, session: str) -> list[Label]:
    rows = frame.filter((pl.col("session_id") == session) & (pl.col("kind") == "pause"))
    return [
        Label(row["speaker"], row["kind"], row["start_s"], row["end_s"], row["rule"], row["confidence"])
        for row in rows.iter_rows(named=True)
    ]


def _errors(engine: pl.DataFrame, reviewed: pl.DataFrame, sessions: Sequence[str]) -> Floats:
    found: list[tuple[float, float]] = []
    for session in sorted(sessions):
        ours, theirs = _labels(engine, session), _labels(reviewed, session)
        found += [
            (ours[i].start_s - theirs[j].start_s, ours[i].end_s - theirs[j].end_s)
            for i, j in matches(ours, theirs, TOLERANCE_S)
        ]
    return np.asarray(found, dtype=np.float64).reshape(-1, 2)


def outcomes_under(pause: StoredPause, errors_s: Floats) -> Floats:
    """Whether a rollout takes the pause under each drawn error (d, 2): 1.0 or 0.0, NaN where no pause is left."""
    gate, words = as_spans(pause.gate_s, "gate_s"), as_spans(pause.word_times_s, "word times")
    bearing = gate[overlap_matrix(gate, words).any(axis=1)]
    # The label is the truth plus an error: the truth is the label less it.
    bounds = np.asarray(pause.pause_s) - errors_s
    starts, ends = bounds[:, :1], bounds[:, 1:]
    took = ((bearing[None, :, 1] > starts) & (bearing[None, :, 0] < ends)).any(axis=1)
    return np.where(bounds[:, 1] > bounds[:, 0], took.astype(np.float64), np.nan)


def boundary_error_tables(workspace: Workspace, tables: TrackTables) -> list[Table]:
    """Takeover rate of each system with and without the boundaries' error; none without measured errors."""
    measured = measured_errors(workspace) if tables.track == "conversation" else None
    if measured is None:
        return []
    rows = [_row(system, pauses, measured, tables) for system, pauses in stored_pauses(tables).items() if pauses]
    sd_ms = 1000 * measured.errors_s.std(axis=0, ddof=1)
    bias_ms = 1000 * measured.errors_s.mean(axis=0)
    schema = {"system": pl.String, "n": pl.Int64, "rate": pl.Float64, "low": pl.Float64, "high": pl.Float64,
              "low_with_error": pl.Float64, "high_with_error": pl.Float64, "rate_if_corrected": pl.Float64}  # fmt: skip
    table = Table(
        "conversation-boundary-error",
        "Conversation: takeovers with the error of pause boundaries",
        f"{len(measured.errors_s)} errors against {measured.truth}: pause start {bias_ms[0]:+.0f} ms (sd "
        f"{sd_ms[0]:.0f}), end {bias_ms[1]:+.0f} ms (sd {sd_ms[1]:.0f}). In the "
        f"wider interval each resample of conversations is scored under one of {N_DRAWS} draws of these errors; rate "
        "if corrected is the mean over the draws, so that a bias of the labels shows (ours).",
        pl.DataFrame(rows, schema=schema),
    )
    return [table] if rows else []


def _row(
    system: str, pauses: Sequence[StoredPause], measured: MeasuredErrors, tables: TrackTables
) -> dict[str, object]:
    # Every system meets the same draws at the same pause.
    values = np.column_stack([
        outcomes_under(
            pause,
            measured.errors_s[
                generator_from("boundary-error/1", pause.item_id).integers(0, len(measured.errors_s), N_DRAWS)
            ],
        )
        for pause in pauses
    ])  # fmt: skip
    as_labelled = np.array([outcomes_under(pause, np.zeros((1, 2)))[0] for pause in pauses])
    clusters = np.array([pause.cluster for pause in pauses])
    names, analysis = ("boundary-error/2", system), tables.analysis
    low, high = rate_interval(
        as_labelled, clusters, rng=generator_from(*names), n_resamples=analysis.n_resamples, level=analysis.level
    )
    wide = boundary_interval(
        values, clusters, rng=generator_from(*names), n_resamples=analysis.n_resamples, level=analysis.level
    )
    if len(np.unique(as_labelled)) == 1:
        # Resampling equal values would call them certain; the error cannot make them more so.
        wide = Interval(min(low, wide.low), max(high, wide.high))
    bounds = {"low": low, "high": high, "low_with_error": wide.low, "high_with_error": wide.high}
    return {
        "system": system, "n": len(pauses), "rate": float(as_labelled.mean()),
        **{name: None if np.isnan(value) else value for name, value in bounds.items()},
        "rate_if_corrected": float(np.nanmean(values)),
    }  # fmt: skip
