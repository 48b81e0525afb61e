"""What the corpus, its labels and the funnel hold, as tables and figures (P2 figures 5 and 6, tables 4 and 5)."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.conversation import liveliness
from duplex_bench.conversation.inventory import KINDS, take_inventory
from duplex_bench.reporting.figures import Drawn, draw_sketches
from duplex_bench.reporting.figures.corpus import label_distributions
from duplex_bench.reporting.figures.corpus import liveliness as liveliness_figure
from duplex_bench.reporting.inputs import Table
from duplex_bench.stages.conversation import drawn, inventory_frame, labels_in
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import figures_result, store_tables
from duplex_bench.stages.workspace import Workspace

Floats = npt.NDArray[np.float64]
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# P2 table 4 names four rows; the judge's verdicts are not apart from the cap there.
_STAGES = ("candidates", "after label gates", "after audio gates, cap and judge", "drawn")
_CLOSE_S = (0.1, 0.25)


def inventory(
    workspace: Workspace,
    sessions: pl.DataFrame,
    filled: pl.DataFrame,
    engine: pl.DataFrame,
    labels: pl.DataFrame,
    candidates: pl.DataFrame,
    points: pl.DataFrame,
) -> StageResult:
    """Tables of selection, labels and funnel; agreement with reviews where sessions are reviewed."""
    lengths, transfers = _lengths(sessions, labels)
    tables = [
        _selection(sessions),
        _label_counts(sessions, labels, filled),
        _distributions(lengths, transfers),
        _funnel(workspace, candidates),
        boundary_agreement(points, engine, labels),
    ]
    shown = [table for table in tables if table.frame.height]
    kept = sessions.filter("selected")
    counts: dict[str, int | float | str] = {
        "conversations": kept.height,
        "hours": round(float(kept["duration_s"].sum()) / 3600, 3),
        "labels": labels.height,
        "sessions_reviewed": labels.filter(pl.col("source") == "review")["session_id"].n_unique(),
    }
    return store_tables(workspace, shown, counts)


def corpus_figures(workspace: Workspace, sessions: pl.DataFrame, labels: pl.DataFrame) -> StageResult:
    """Selection by liveliness and the distributions of labels, drawn."""
    settings = workspace.profile.conversation.corpus
    cutoff = settings.liveliness_cutoff if settings.liveliness_top_share is None else None
    lengths, transfers = _lengths(sessions, labels)
    scores, durations = (sessions[name].to_numpy().astype(np.float64) for name in ("liveliness", "duration_s"))
    sketches = [
        liveliness_figure(scores, durations, sessions["selected"].to_numpy(), cutoff),
        label_distributions(lengths, transfers),
    ]
    figures: list[Drawn] = draw_sketches([sketch for sketch in sketches if sketch is not None])
    return figures_result(workspace, figures)


def _lengths(sessions: pl.DataFrame, labels: pl.DataFrame) -> tuple[Mapping[str, Floats], Floats]:
    kept = sessions.filter("selected").sort("session_id")
    taken = [
        take_inventory(labels_in(labels, row["session_id"]), row["duration_s"]) for row in kept.iter_rows(named=True)
    ]
    if not taken:
        return {kind: np.zeros(0) for kind in KINDS}, np.zeros(0)
    lengths: dict[str, Floats] = {
        kind: np.concatenate([one.lengths_s[kind] for one in taken]).astype(np.float64) for kind in KINDS
    }
    return lengths, np.concatenate([one.floor_transfers_s for one in taken]).astype(np.float64)


def _selection(sessions: pl.DataFrame) -> Table:
    rows = []
    for name in ("liveliness", "duration_s", *liveliness.TRAITS):
        for group, part in (("all", sessions), ("kept", sessions.filter("selected"))):
            if part.height:
                found = {f"q{round(100 * q)}": part[name].quantile(q, "linear") for q in _QUANTILES}
                rows.append({"what": name, "conversations": group, "n": part.height, **found})
    schema = {"what": pl.String, "conversations": pl.String, "n": pl.Int64}
    return Table(
        "conversation-selection",
        "Conversation: selection by liveliness",
        "Quantiles of the score, the duration and the six traits, over all usable conversations and over those kept. "
        "The score is the mean percentile rank of the traits within this corpus, so it is no measure across corpora.",
        pl.DataFrame(rows, schema={**schema, **{f"q{round(100 * q)}": pl.Float64 for q in _QUANTILES}}),
    )


def _label_counts(sessions: pl.DataFrame, labels: pl.DataFrame, filled: pl.DataFrame) -> Table:
    counted = inventory_frame(labels, sessions)
    kept = sessions.filter("selected")
    words = filled.filter(pl.col("session_id").is_in(kept["session_id"].to_list()))
    more = pl.DataFrame(
        [{"kind": "gap-filled word", "count": words.height, "median_s": (words["end_s"] - words["start_s"]).median(),
          "median_per_minute": None}],
        schema=counted.schema,
    )  # fmt: skip
    hours = float(kept["duration_s"].sum()) / 3600
    return Table(
        "conversation-label-inventory",
        "Conversation: label inventory",
        f"Over {kept.height} conversations of {hours:.2f} hours. median_per_minute: of the conversations' own rates. "
        "Gap-filled words were transcribed where the source was voiced and empty.",
        pl.concat([counted, more]),
    )


def _distributions(lengths: Mapping[str, Floats], transfers: Floats) -> Table:
    rows = []
    for name, values in (*lengths.items(), ("floor transfer", transfers)):
        if len(values):
            found = {f"q{round(100 * q)}": float(np.quantile(values, q)) for q in _QUANTILES}
            rows.append({"label": name, "n": len(values), **found})
    return Table(
        "conversation-label-lengths",
        "Conversation: how long labels are",
        "Seconds. Floor transfer: next speaker's start minus the previous speaker's end at changes of speaker; "
        "negative where they overlap.",
        pl.DataFrame(
            rows, schema={"label": pl.String, "n": pl.Int64, **{f"q{round(100 * q)}": pl.Float64 for q in _QUANTILES}}
        ),
    )


def _funnel(workspace: Workspace, candidates: pl.DataFrame) -> Table:
    found = drawn(workspace, candidates)
    left: dict[str, tuple[int, int]] = {}
    for row in found.funnel:
        name = {"labels": _STAGES[1], "candidates": _STAGES[0], "window_check": _STAGES[3], "draw": _STAGES[3]}.get(
            row.stage, _STAGES[2]
        )
        left[name] = (row.n_pause, row.n_turn_end)
    rows = [{"stage": name, "pause_points": left[name][0], "turn_end_points": left[name][1]}
            for name in _STAGES if name in left]  # fmt: skip
    return Table(
        "conversation-curation",
        "Conversation: from boundaries to points",
        f"Boundaries left after each stage; every rule with its own count is in the funnel. Judge: {found.judge}.",
        pl.DataFrame(rows, schema={"stage": pl.String, "pause_points": pl.Int64, "turn_end_points": pl.Int64}),
    )


def boundary_agreement(points: pl.DataFrame, engine: pl.DataFrame, labels: pl.DataFrame) -> Table:
    """Engine boundaries at points of reviewed sessions against the nearest label of the person (P2 appendix E).

    Returns:
        Columns boundary, n, within_100_ms, within_250_ms, median_shift_s; no row where nothing is reviewed.
    """
    reviewed = labels.filter(pl.col("source") == "review")
    sessions = set(reviewed["session_id"])
    shifts: dict[str, list[float]] = {}
    backchannels: list[bool] = []
    rows_of = engine.filter(pl.col("session_id").is_in(sorted(sessions))).iter_rows(named=True)
    for row in rows_of:
        kind = {"pause": "pause", "turn": "turn_end"}.get(row["kind"])
        if kind is None:
            continue
        edge = row["start_s"] if kind == "pause" else row["end_s"]
        at_point = points.filter(
            (pl.col("session_id") == row["session_id"])
            & (pl.col("speaker") == row["speaker"])
            & (pl.col("kind") == kind)
            & ((pl.col("boundary_s") - edge).abs() < 1e-6)
        )
        if not at_point.height:
            continue
        theirs = reviewed.filter((pl.col("session_id") == row["session_id"]) & (pl.col("speaker") == row["speaker"]))
        same = theirs.filter(pl.col("kind") == row["kind"])
        column = "start_s" if kind == "pause" else "end_s"
        if not same.height:
            continue
        nearest = same.sort((pl.col(column) - edge).abs()).row(0, named=True)
        shifts.setdefault(f"{kind} boundary", []).append(nearest[column] - edge)
        if kind == "pause":
            shifts.setdefault("pause end", []).append(nearest["end_s"] - row["end_s"])
            heard = reviewed.filter(
                (pl.col("session_id") == row["session_id"])
                & (pl.col("speaker") != row["speaker"])
                & (pl.col("kind") == "backchannel")
                & (pl.col("start_s") < row["end_s"])
                & (pl.col("end_s") > row["start_s"])
            )
            backchannels.append(bool(heard.height))
    rows = [
        {"boundary": name, "n": len(values), "within_100_ms": float(np.mean(np.abs(values) <= _CLOSE_S[0])),
         "within_250_ms": float(np.mean(np.abs(values) <= _CLOSE_S[1])), "median_shift_s": float(np.median(values))}
        for name, values in shifts.items()
    ]  # fmt: skip
    told = f"In {sum(backchannels)} of {len(backchannels)} pauses a person heard a backchannel of the listener."
    return Table(
        "conversation-boundary-agreement",
        "Conversation: engine boundaries at points against reviewed labels",
        "Points that the engine's labels and the reviewed labels both hold; shift is the person's minus the engine's, "
        f"to the nearest label of the same speaker and kind. {told}",
        pl.DataFrame(
            rows,
            schema={"boundary": pl.String, "n": pl.Int64, "within_100_ms": pl.Float64, "within_250_ms": pl.Float64,
                    "median_shift_s": pl.Float64},
        ),
    )  # fmt: skip
