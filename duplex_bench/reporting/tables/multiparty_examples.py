"""Qualitative examples chosen by rule, with what was said and the judge's reason (P1 A6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.reporting.tables.multiparty_windows import made
from duplex_bench.storage.digests import digest_value


@dataclass(frozen=True, slots=True)
class Rule:
    """Which windows an example may come from: rows of one metric that fulfil ``where``."""

    name: str
    metric: str
    where: pl.Expr
    rubric: str | None = None


_LONGEST: Final = 160


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else f"{text[: _LONGEST - 2].rstrip()} …"


def _spoken() -> pl.Expr:
    return (pl.col("speech_in_window_s") > 0) & ~pl.col("wordless")


RULES: Final = (
    Rule("speech allowed in silence", "silence_preservation", _spoken() & (pl.col("value") == 1.0), "acknowledgement"),
    Rule("speech penalised in silence", "silence_preservation", _spoken() & (pl.col("value") == 0.0),
         "acknowledgement"),
    Rule("speech without a verdict", "silence_preservation", _spoken() & pl.col("value").is_null(), "acknowledgement"),
    Rule("speech without words", "silence_preservation", pl.col("wordless")),
    Rule("right answer", "answer_accuracy", pl.col("value") == 1.0, "answer_correctness"),
    Rule("wrong answer", "answer_accuracy", (pl.col("value") == 0.0) & (pl.col("answer") != ""), "answer_correctness"),
    Rule("stopped", "answering_window_yield", pl.col("outcome") == "stopped"),
    Rule("spoke through the deadline", "answering_window_yield", pl.col("outcome") == "speaking_through_deadline"),
    Rule("resumed", "answering_window_yield", pl.col("outcome") == "resumed"),
)  # fmt: skip


def _verdicts(judgements: pl.DataFrame, rollouts: Sequence[str]) -> dict[tuple[str, str, str], dict[str, Any]]:
    mine = judgements.filter(pl.col("rollout_key").is_in(list(rollouts)))
    return {(row["rollout_key"], row["window_id"], row["rubric"]): row for row in mine.to_dicts()}


def qualitative(tables: TrackTables, frame: pl.DataFrame) -> Table:
    """The first windows of each rule, system and condition in the order of a hash of item and window: nobody picks."""
    rows: list[dict[str, Any]] = []
    order = cache(lambda item, window: digest_value("example", item, window))
    limit = tables.analysis.examples_per_rule
    for rule in RULES:
        found = frame.filter((pl.col("metric") == rule.metric) & rule.where)
        for _, part in found.sort("system", "condition").group_by("system", "condition", maintain_order=True):
            windows = part.select("item_id", "window_id")
            places = sorted(range(windows.height), key=[order(*window) for window in windows.iter_rows()].__getitem__)
            ordered = part[places[:limit]].to_dicts()
            judged = _verdicts(tables.judgements, [row["rollout_key"] for row in ordered])
            for row in ordered:
                verdict = judged.get((row["rollout_key"], row["window_id"], rule.rubric or ""), {})
                said = _shortened(row["answer"] if rule.metric == "answer_accuracy" else row["text"])
                rows.append(
                    {"rule": rule.name, "system": row["system"], "condition": row["condition"],
                     "item_id": row["item_id"], "at_s": row["at_s"], "turn_type": row["turn_type"], "said": said,
                     "gold": row["gold"] if rule.metric == "answer_accuracy" else None,
                     "verdict": verdict.get("verdict"), "reason": verdict.get("reason"),
                     "judge": verdict.get("judge")}
                )  # fmt: skip
    return made(
        "examples",
        "Multiparty: examples to listen to",
        "Chosen by rule, not by hand: of each kind of window, system and condition the first by a hash of item and "
        "window. The item opens the player at the second. The reason is the judge's own.",
        rows,
        [("rule", pl.String), ("system", pl.String), ("condition", pl.String), ("item_id", pl.String),
         ("at_s", pl.Float64), ("turn_type", pl.String), ("said", pl.String), ("gold", pl.String),
         ("verdict", pl.String), ("reason", pl.String), ("judge", pl.String)],
    )  # fmt: skip
