"""How far a second judge agrees with the first, put to the same transcripts (design 9): one table for each track."""

from typing import Final

import polars as pl

from duplex_bench.judging.agreement import agreement
from duplex_bench.multiparty.transcript_reference import RULE_SYSTEM
from duplex_bench.multiparty.transcript_reference import SYSTEM as TRANSCRIPT_REFERENCE
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame

_READERS: Final = (TRANSCRIPT_REFERENCE, RULE_SYSTEM)
_SCHEMA: Final = {
    "system": pl.String, "rubric": pl.String, "judge": pl.String, "second": pl.String, "n_both": pl.Int64,
    "n_agree": pl.Int64, "share": pl.Float64, "low": pl.Float64, "high": pl.Float64, "kappa": pl.Float64,
    "only_first": pl.Int64, "only_second": pl.Int64, "neither": pl.Int64,
}  # fmt: skip


def judges_agree(workspace: Workspace, tables: TrackTables) -> Table | None:
    """A row a system and rubric; None where no second judge was asked.

    Questions that one of the two gave no verdict on are counted apart: they are no disagreement.
    """
    rows: list[dict[str, object]] = []
    for system in sorted({*tables.rollouts["system"].unique(), *tables.statistics["system"].unique()}):
        key = workspace.table_key((tables.track, SECOND), system)
        # Verdicts on readers of the transcript are kept with their scores, not in a table that the report has.
        if system in _READERS or not workspace.store.exists(key):
            continue
        second = read_frame(workspace.store, key)
        first = tables.judgements.filter(pl.col("system") == system)
        rows += [
            _row(system, rubric, first.filter(pl.col("rubric") == rubric), second.filter(pl.col("rubric") == rubric))
            for rubric in second["rubric"].unique().sort()
        ]
    if not rows:
        return None
    return Table(
        f"{tables.track}-second-judge",
        f"{tables.title}: the second judge beside the first",
        "The same questions put to another model; it scores nothing. share: of the questions that both decided, with a "
        "95 % Wilson interval as if questions were independent; kappa is Cohen's, and missing where both give "
        "one and the same verdict throughout. only_first, only_second, neither: questions without a verdict of the "
        "other, or of both.",
        pl.DataFrame(rows, schema=_SCHEMA),
    )


def _row(system: str, rubric: str, first: pl.DataFrame, second: pl.DataFrame) -> dict[str, object]:
    found = agreement(_verdicts(first), _verdicts(second))
    known = found.n_both > 0
    return {
        "system": system, "rubric": rubric, "judge": _names(first), "second": _names(second), "n_both": found.n_both,
        "n_agree": round(found.share * found.n_both) if known else 0, "share": found.share if known else None,
        "low": found.share_interval.low if known else None, "high": found.share_interval.high if known else None,
        "kappa": found.kappa if found.kappa == found.kappa else None, "only_first": found.n_only_a,
        "only_second": found.n_only_b, "neither": found.n_neither,
    }  # fmt: skip


def _names(rows: pl.DataFrame) -> str:
    return ", ".join(rows["judge"].unique().sort())


def _verdicts(rows: pl.DataFrame) -> dict[str, str | None]:
    named = pl.concat_str("rollout_key", "item_id", "window_id", separator=" ")
    return dict(rows.select(named, "verdict").iter_rows())
