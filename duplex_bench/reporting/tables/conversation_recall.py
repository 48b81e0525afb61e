"""Recall by history length, by scorer, and one point with every system's reply (P2 tables 9, 10, 12)."""

from typing import Final

import polars as pl

from duplex_bench.reporting.estimates import Row
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.reporting.tables.conversation_results import made
from duplex_bench.reporting.tables.multiparty_windows import Rates
from duplex_bench.storage.digests import digest_value

JUDGED, STRICT = "recall_correct", "recall_strict"
KINDS: Final = ("conversation_recall", "fact_recall")
_DETAILS: Final = pl.Struct(
    {"history_target_s": pl.Float64, "gold": pl.String, "request": pl.String, "answer": pl.String}
)


def recall_rows(tables: TrackTables) -> pl.DataFrame:
    """Recall measurements with columns history_target_s, gold, request and answer."""
    mine = tables.measurements.filter(pl.col("metric").is_in([JUDGED, STRICT]))
    return mine.with_columns(pl.col("details").str.json_decode(_DETAILS).alias("decoded")).unnest("decoded")


def by_history(tables: TrackTables) -> Table:
    """Accuracy at every history length, by judge and by strict matcher (P2 table 9, figure 4)."""
    frame = recall_rows(tables)
    rates = Rates(tables)
    rows: list[Row] = []
    for (kind, system, length), part in frame.sort("condition", "system", "history_target_s").group_by(
        "condition", "system", "history_target_s", maintain_order=True
    ):
        judged, strict = rates.of(part, JUDGED), rates.of(part, STRICT)
        rows.append(
            {"kind": kind, "system": system, "history_s": length, "n_points": judged["n_windows"],
             "n_judged": judged["n_scored"], "judged": judged["rate"], "low": judged["low"], "high": judged["high"],
             "strict": strict["rate"], "strict_low": strict["low"], "strict_high": strict["high"]}
        )  # fmt: skip
    return made(
        "recall-by-history",
        "recall by history length",
        "The same question after a history of each length. Conversation recall asks about a fact of the first prefix, "
        "fact recall a general question, whose answer does not depend on the history. Full-duplex systems hear the "
        "history, hosted systems read it. Never pooled over kinds.",
        rows,
        [("kind", pl.String), ("system", pl.String), ("history_s", pl.Float64), ("n_points", pl.Int64),
         ("n_judged", pl.Int64), ("judged", pl.Float64), ("low", pl.Float64), ("high", pl.Float64),
         ("strict", pl.Float64), ("strict_low", pl.Float64), ("strict_high", pl.Float64)],
    )  # fmt: skip


def by_scorer(tables: TrackTables) -> Table:
    """Judge against strict matcher over the same rollouts, pooled over history lengths (P2 table 12)."""
    every = recall_rows(tables)
    frame = every.filter(pl.col("value").is_not_null())
    undecided = {
        (row["condition"], row["system"]): row["len"]
        for row in every.filter(
            (pl.col("metric") == JUDGED) & pl.col("value").is_null() & (pl.col("answer").fill_null("") != "")
        )
        .group_by("condition", "system")
        .len()
        .to_dicts()
    }
    judges = tables.judgements.filter(pl.col("rubric") == "recall_correctness")["judge"].unique().sort().to_list()
    rows: list[Row] = []
    for (kind, system), part in frame.sort("condition", "system").group_by("condition", "system", maintain_order=True):
        both = part.filter(pl.col("metric") == JUDGED).join(
            part.filter(pl.col("metric") == STRICT), on=["item_id", "rollout_key"], suffix="_strict"
        )
        if not both.height:
            continue
        judged, strict = both["value"] == 1.0, both["value_strict"] == 1.0
        rows.append(
            {"kind": kind, "system": system, "n": both.height, "judged": judged.mean(), "strict": strict.mean(),
             "agree": (judged == strict).mean(), "judge_only": int((judged & ~strict).sum()),
             "strict_only": int((~judged & strict).sum()), "without_verdict": undecided.get((kind, system), 0)}
        )  # fmt: skip
    return made(
        "recall-by-scorer",
        "recall by scorer",
        f"Judge: {', '.join(judges) or 'none was asked'}. Strict: content words of the gold answer in the transcript. "
        "Only here are history lengths pooled. Rollouts that both decided; without_verdict: answers that the judge "
        "gave no verdict on. A second judge, where one is set, has its table beside this one.",
        rows,
        [("kind", pl.String), ("system", pl.String), ("n", pl.Int64), ("judged", pl.Float64), ("strict", pl.Float64),
         ("agree", pl.Float64), ("judge_only", pl.Int64), ("strict_only", pl.Int64),
         ("without_verdict", pl.Int64)],
    )  # fmt: skip


def one_point(tables: TrackTables) -> Table:
    """Every system's reply to one conversation-recall point, the first by a hash of its id (P2 table 10)."""
    frame = recall_rows(tables).filter((pl.col("condition") == KINDS[0]) & (pl.col("metric") == JUDGED))
    rows: list[Row] = []
    if frame.height:
        chosen = min(frame["item_id"].unique().to_list(), key=lambda item: digest_value("recall example", item))
        rows = [
            {"item_id": row["item_id"], "history_s": row["history_target_s"], "question": row["request"],
             "gold": row["gold"], "system": row["system"], "answer": row["answer"], "judged": row["value"],
             "reason": row["reason"]}
            for row in frame.filter(pl.col("item_id") == chosen).sort("system").iter_rows(named=True)
        ]  # fmt: skip
    return made(
        "recall-example",
        "one recall point, every reply",
        "Chosen by hash, not by hand. answer: what the recogniser heard from the end of the question on.",
        rows,
        [("item_id", pl.String), ("history_s", pl.Float64), ("question", pl.String), ("gold", pl.String),
         ("system", pl.String), ("answer", pl.String), ("judged", pl.Float64), ("reason", pl.String)],
    )  # fmt: skip
