"""Conversation results side by side: main results, intervals, distributions, exceptional outcomes, system cards."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import polars as pl

from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.reporting.estimates import Row
from duplex_bench.reporting.inputs import SystemInfo, Table, TrackTables

PAUSE, TURN_END = "pause", "turn_end"
# Column of the main table, condition, metric: the order of P2 table 3.
MAIN: Final = (
    ("silent", PAUSE, "pause_silent"),
    ("takeover", PAUSE, "pause_takeover"),
    ("after", PAUSE, "pause_after"),
    ("takeover_latency_s", PAUSE, "takeover_latency"),
    ("turn_end_latency_s", TURN_END, "turn_end_latency"),
    ("still_speaking_at_cap", TURN_END, "at_cap"),
    ("duration_ratio", TURN_END, "duration_ratio"),
    ("word_ratio", TURN_END, "word_ratio"),
    ("token_f1", TURN_END, "token_f1"),
    ("cosine", TURN_END, "cosine"),
)
# As in the paper, conversation recall stands before its control.
RECALL: Final = ("conversation_recall", "fact_recall")
_RECALL_AT: Final = "Recall: share judged right after {:g} s of history."
DISTRIBUTIONS: Final = (
    "takeover_latency",
    "first_word_from_pause_end",
    "turn_end_latency",
    "duration_ratio",
    "word_ratio",
    "token_f1",
    "cosine",
)
_QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
_ERRORS: Final = tuple(str(one) for one in Outcome if one not in SCORED_OUTCOMES and one is not Outcome.NOT_APPLICABLE)


def made(table_id: str, title: str, caption: str, rows: Iterable[Row], schema: Sequence[tuple[str, Any]]) -> Table:
    """A table of the track from rows, in the columns of ``schema``."""
    frame = pl.DataFrame([{name: row.get(name) for name, _ in schema} for row in rows], schema=dict(schema))
    return Table(f"conversation-{table_id}", f"Conversation: {title}", caption, frame)


def first_rollouts(tables: TrackTables) -> pl.DataFrame:
    """Rollouts of the first repeat with the ``condition`` of their item; the others feed variance only."""
    first = tables.rollouts.filter(pl.col("repeat") == 0)
    return first.join(tables.items.select("item_id", "condition"), on="item_id", how="inner")


def main_results(tables: TrackTables, recalled: Table) -> Table:
    """One row a system over all metrics (P2 table 3); a metric without a value is empty, never zero.

    Args:
        tables: the track.
        recalled: recall by history length: the longest stands here, as in the paper.
    """
    recall = longest_history(recalled)
    known = {(row["system"], row["condition"], row["metric"]): row for row in tables.statistics.iter_rows(named=True)}
    rows: list[Row] = []
    for system in tables.statistics["system"].unique(maintain_order=True):
        row: Row = {"system": system}
        for count, condition, metric in (("n_pause", PAUSE, "pause_takeover"), ("n_turn_end", TURN_END, "at_cap")):
            found = known.get((system, condition, metric))
            row[count] = found["n_scored"] if found else 0
        for column, condition, metric in MAIN:
            found = known.get((system, condition, metric))
            row[column] = found["estimate"] if found else None
        for kind in RECALL:
            found = recall.get((system, kind))
            row[f"n_{kind}"] = found["n_judged"] if found else 0
            row[kind] = found["judged"] if found else None
        rows.append(row)
    columns: list[tuple[str, Any]] = [("system", pl.String)]
    for kind in (PAUSE, TURN_END):
        of_kind = [column for column, condition, _ in MAIN if condition == kind]
        columns += [(f"n_{kind}", pl.Int64), *((column, pl.Float64) for column in of_kind)]
    if recall:
        columns += [(name, kind) for of in RECALL for name, kind in ((f"n_{of}", pl.Int64), (of, pl.Float64))]
    longest = max((row["history_s"] for row in recall.values()), default=None)
    return made(
        "main-results",
        "main results",
        "One rollout a point. Shares are over all scored rollouts; latencies, ratios and similarities are medians over "
        "rollouts with words (takeovers for takeover latency). Pauses and turn ends are never pooled. Intervals stand "
        "in the table of intervals. The person held every pause and took every turn end; floor and ceiling bound "
        f"similarity. {'No recall point was scored.' if longest is None else _RECALL_AT.format(longest)}",
        rows,
        columns,
    )


def longest_history(recalled: Table) -> dict[tuple[str, str], Row]:
    """Rows of recall by history length at each kind's longest history, by system and kind."""
    frame = recalled.frame
    longest = frame.filter(pl.col("history_s") == pl.col("history_s").max().over("kind"))
    return {(row["system"], row["kind"]): row for row in longest.iter_rows(named=True)}


def intervals(tables: TrackTables, recalled: Table) -> Table:
    """The interval of every value of the main table, recall at the longest history too (P2 table 14)."""
    wanted = {(condition, metric): place for place, (_, condition, metric) in enumerate(MAIN)}
    rows = [
        {**row, "place": wanted[row["condition"], row["metric"]], "title": tables.card(row["metric"]).title}
        for row in tables.statistics.iter_rows(named=True)
        if (row["condition"], row["metric"]) in wanted
    ]
    order = {name: place for place, name in enumerate(tables.statistics["system"].unique(maintain_order=True))}
    rows += [
        {"place": len(MAIN) + RECALL.index(kind), "condition": kind, "system": system, "estimate": row["judged"],
         "title": f"Recall, judged, after {row['history_s']:g} s", "low": row["low"], "high": row["high"],
         "n_scored": row["n_judged"], "n_expected": row["n_points"], "method": "as in recall by history length",
         "n_clusters": None, "reason": None if row["judged"] is not None else "no verdict", "q1": None, "q3": None}
        for (system, kind), row in longest_history(recalled).items()
    ]  # fmt: skip
    rows.sort(key=lambda row: (row["place"], order.get(row["system"], len(order))))
    return made(
        "intervals",
        "intervals of the main results",
        "Resampling whole conversations; each row names its method, its n and over how many conversations. q1 and q3 "
        "are the quartiles over rollouts, where the value is a median.",
        rows,
        [("condition", pl.String), ("title", pl.String), ("system", pl.String), ("estimate", pl.Float64),
         ("low", pl.Float64), ("high", pl.Float64), ("q1", pl.Float64), ("q3", pl.Float64), ("n_scored", pl.Int64),
         ("n_expected", pl.Int64), ("n_clusters", pl.Int64), ("method", pl.String), ("reason", pl.String)],
    )  # fmt: skip


def quantiles(tables: TrackTables) -> Table:
    """Quantiles behind the distributions of latency, length and similarity (P2 figures 3 and 8)."""
    rows: list[Row] = []
    scored = tables.measurements.filter(pl.col("value").is_not_null())
    for metric in DISTRIBUTIONS:
        of_metric = scored.filter(pl.col("metric") == metric).sort("system")
        for (system,), part in of_metric.group_by("system", maintain_order=True):
            values = part["value"]
            rows.append(
                {"metric": metric, "system": system, "n": part.height, "least": values.min(), "greatest": values.max(),
                 "at_or_below_0": (values <= 0).mean() if metric.endswith("latency") else None,
                 **{f"q{round(100 * q)}": values.quantile(q, "linear") for q in _QUANTILES}}
            )  # fmt: skip
    return made(
        "distributions",
        "distributions of latency, length and similarity",
        "Over rollouts that have the value. at_or_below_0: share already speaking at the boundary.",
        rows,
        [("metric", pl.String), ("system", pl.String), ("n", pl.Int64), ("least", pl.Float64),
         *((f"q{round(100 * q)}", pl.Float64) for q in _QUANTILES), ("greatest", pl.Float64),
         ("at_or_below_0", pl.Float64)],
    )  # fmt: skip


def exceptional(tables: TrackTables) -> Table:
    """Every outcome that is not a plain score, per system (P2 table 15)."""
    rolled = first_rollouts(tables)
    counted = tables.measurements.filter(pl.col("metric").is_in(["at_cap", "no_words"]) & (pl.col("value") == 1.0))
    flags = {(row[0], row[1]): row[2] for row in counted.group_by("system", "metric").len().iter_rows()}
    rows: list[Row] = []
    for system in rolled["system"].unique().sort():
        row: Row = {"system": system}
        mine = rolled.filter((pl.col("system") == system) & (pl.col("outcome") != str(Outcome.NOT_APPLICABLE)))
        for kind in (PAUSE, TURN_END, "recall"):
            # Both kinds of recall point are one column, as in the paper.
            part = mine.filter(pl.col("condition").str.ends_with(kind))
            row[f"{kind}_rollouts"] = part.height
            if not part.height:
                continue
            row[f"{kind}_no_audio"] = part.filter(pl.col("outcome") == str(Outcome.NO_AUDIO)).height
            row[f"{kind}_errors"] = part.filter(pl.col("outcome").is_in(list(_ERRORS))).height
            if kind == "turn_end":
                row["turn_end_censored"] = flags.get((system, "at_cap"), 0)
                row["turn_end_no_words"] = flags.get((system, "no_words"), 0)
        rows.append(row)
    return made(
        "exceptional",
        "exceptional outcomes",
        "Only errors (transport, refused, pacing) are excluded from scoring. Censored: still speaking at the cap. No "
        "words: scored turn-end rollouts without a transcribed word. Empty: the system was not run on such points.",
        rows,
        [("system", pl.String), ("pause_rollouts", pl.Int64), ("pause_no_audio", pl.Int64),
         ("pause_errors", pl.Int64), ("turn_end_rollouts", pl.Int64), ("turn_end_no_audio", pl.Int64),
         ("turn_end_censored", pl.Int64), ("turn_end_no_words", pl.Int64), ("turn_end_errors", pl.Int64),
         ("recall_rollouts", pl.Int64), ("recall_no_audio", pl.Int64), ("recall_errors", pl.Int64)],
    )  # fmt: skip


def system_cards(tables: TrackTables, systems: Sequence[SystemInfo]) -> Table:
    """The cards of the systems that were run (P2 table 7)."""
    ran = set(tables.rollouts["system"])
    rows = [
        {"system": one.name, "title": one.title, "family": one.family, "licence": one.licence,
         **{name: one.card.get(name) for name in ("model_id", "adapter_version", "epoch", "settings", "omitted")}}
        for one in systems
        if one.name in ran
    ]  # fmt: skip
    return made(
        "system-cards",
        "system cards",
        "What each system was run with. omitted: what the system cannot take and was therefore not given.",
        rows,
        [(name, pl.String) for name in ("system", "title", "family", "model_id", "adapter_version", "epoch",
                                        "settings", "omitted", "licence")],
    )  # fmt: skip
