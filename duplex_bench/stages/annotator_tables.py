"""How far annotators agree with one another, for the report: on labels, on frames, and on windows (ours)."""

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from duplex_bench.reporting.inputs import Table
from duplex_bench.review import exports
from duplex_bench.review.access import ReviewSettings
from duplex_bench.stages.human_windows import TRACK, log_of
from duplex_bench.stages.review_source import open_review
from duplex_bench.stages.stored_run import stored
from duplex_bench.stages.workspace import Workspace

_PEOPLE: Final = {"first": pl.String, "second": pl.String}
_LABELS: Final = {
    "session_id": pl.String, **_PEOPLE, "kind": pl.String, "tolerance_s": pl.Float64, "f1": pl.Float64,
    "n_first": pl.Int64, "n_second": pl.Int64,
}  # fmt: skip
_FRAMES: Final = {"session_id": pl.String, **_PEOPLE, "kappa": pl.Float64}
_WINDOWS: Final = {**_PEOPLE, "n_both": pl.Int64, "n_agree": pl.Int64, "kappa": pl.Float64}


def annotator_tables(workspace: Workspace) -> list[Table]:
    """Tables of every two people's agreement; only those that the review's database has rows for.

    A database that cannot be read is told by the tables of windows, and gives none here.
    """
    log = log_of(workspace)
    if log is None or isinstance(log, str) or stored(workspace, TRACK, "points") is None:
        return []
    desk = open_review(workspace, ReviewSettings())
    labels, frames, windows = (
        make(desk) for make in (exports.pair_rows, exports.kappa_rows, exports.window_agreement_rows)
    )
    named = {str(row[who]) for rows in (labels, frames, windows) for row in rows for who in _PEOPLE}
    # A report may be published: it has no names of people.
    numbered = {name: f"person {number}" for number, name in enumerate(sorted(named), 1)}
    made = [
        Table(
            "conversation-annotators",
            "Conversation: two people's labels of one session",
            "Submitted, approved and superseded copies. f1 is the same in both directions: labels of one kind whose "
            "boundaries lie within the tolerance of the other person's. A person who began from the engine's labels "
            "agrees with everybody who did too; review with --blind measures people.",
            _frame(labels, numbered, _LABELS),
        ),
        Table(
            "conversation-annotator-frames",
            "Conversation: two people on who speaks when",
            "Cohen's kappa over 10 ms frames of both sides: turn, backchannel or neither.",
            _frame(frames, numbered, _FRAMES),
        ),
        Table(
            "conversation-window-agreement",
            "Conversation: two people on the same windows",
            "Windows that both checked, and on how many they said the same. kappa is empty where chance alone would "
            "make them agree.",
            _frame(windows, numbered, _WINDOWS),
        ),
    ]
    return [table for table in made if table.frame.height]


def _frame(
    rows: Sequence[Mapping[str, object]], numbered: Mapping[str, str], schema: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    told = [{**row, **{who: numbered[str(row[who])] for who in _PEOPLE}} for row in rows]
    return pl.DataFrame(told, schema=dict(schema))
