"""Stored tables as pages show them: columns and ids in words, numbers as text, one row a pair of systems."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from duplex_bench.reporting.comparisons import SIGN_FLIP
from duplex_bench.reporting.formats import MISSING, interval, number, p_value
from duplex_bench.reporting.inputs import Table

_P_COLUMNS: Final = frozenset({"p", "p_corrected", "p_mcnemar", "p_equivalence", "p_mcnemar_corrected"})
# Columns of counts and measures together: whole numbers in them are counts.
_MIXED: Final = frozenset({"here", "paper"})
# Names that are to be typed or looked up as they stand.
_AS_THEY_STAND: Final = frozenset(
    {"system", "system_a", "system_b", "item_id", "window_id", "rollout_key", "stimulus_digest", "model_id", "value",
     "settings", "adapter_version", "measurement_id"}
)  # fmt: skip
_ID = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
_SHORT: Final = 16
_LONG: Final = 36
# Columns whose names need more than their underscores taken out.
_SAID: Final[Mapping[str, str]] = {
    "p_corrected": "p, corrected",
    "p_mcnemar": "p (McNemar)",
    "p_mcnemar_corrected": "p (McNemar), corrected",
    "p_equivalence": "p (equivalence)",
    "q1": "lower quartile",
    "q3": "upper quartile",
    "q10": "10th percentile",
    "q25": "25th percentile",
    "q50": "median",
    "q75": "75th percentile",
    "q90": "90th percentile",
    "item_id": "item",
    "title": "metric",
    "low": "interval from",
    "high": "to",
}
Kind = Literal["num", "short", "text", "long"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column as shown. ``kind`` says how it is set: numbers right, short texts in one line, long ones with room."""

    name: str
    kind: Kind


def label(name: str) -> str:
    """A column or outcome name for people: ``turn_end`` as "turn end", units kept in brackets."""
    if name in _SAID:
        return _SAID[name]
    text = re.sub(r"_(s|ms|hz|db)$", r" (\1)", name)
    return text.replace("_", " ")


def columns(frame: pl.DataFrame) -> list[Column]:
    """The columns to show; those that are empty throughout are left out."""
    return [
        Column(name, _kind(frame[name]))
        for name in frame.columns
        if frame.height == 0 or frame[name].null_count() < frame.height
    ]


def _kind(values: pl.Series) -> Kind:
    if values.dtype.is_numeric():
        return "num"
    if values.dtype != pl.String:
        return "short"
    longest = values.str.len_chars().max()
    if values.name.startswith("system") or not isinstance(longest, int):
        return "text"
    return "short" if longest <= _SHORT else "long" if longest > _LONG else "text"


def shown_frame(table: Table, metric_titles: Mapping[str, str]) -> pl.DataFrame:
    """A table's frame as a page shows it: ids in words, one row a pair of systems, titles not beside what they name."""
    frame = table.frame
    if table.id.endswith("-pairwise"):
        return pair_view(frame)
    named = [name for name in ("metric", "other_metric") if name in frame.columns]
    for name in named:
        titled = pl.col(name).replace_strict(metric_titles, default=pl.col(name), return_dtype=pl.String)
        frame = frame.with_columns(titled.alias(name))
    # Where there is a metric's id, or a card, the title beside it says the same again.
    if "title" in frame.columns and (named or {"system", "family"} <= set(frame.columns)):
        frame = frame.drop("title")
    return frame


def pair_view(frame: pl.DataFrame) -> pl.DataFrame:
    """Comparisons, one row a pair: the headline test with its interval, and beside it the paper's corrected p."""
    keys = ["metric", "condition", "system_a", "system_b"]
    ours = frame.filter(pl.col("test") == SIGN_FLIP)
    papers = frame.filter(pl.col("test") != SIGN_FLIP).select(*keys, pl.col("p_corrected").alias("p_mcnemar_corrected"))
    joined = ours.join(papers.unique(keys, keep="first"), on=keys, how="left", maintain_order="left")
    intervals = [interval(row["low"], row["high"], signed=True) for row in joined.iter_rows(named=True)]
    return joined.with_columns(pl.Series("interval", intervals, dtype=pl.String)).select(
        pl.col("title").alias("metric"), "condition", "system_a", "system_b", "difference", "interval", "p",
        "p_corrected", "p_mcnemar_corrected", "n_pairs", "n_clusters", "minimum_detectable",
    )  # fmt: skip


def is_number(value: object) -> bool:
    """Whether a value is shown as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def show(value: object, column: str = "") -> str:
    """One table value as text; missing is a dash."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column in _MIXED and value.is_integer():
            return f"{value:.0f}"
        return p_value(value) if column in _P_COLUMNS else number(value, signed=column == "difference")
    text = str(value)
    return label(text) if column not in _AS_THEY_STAND and _ID.fullmatch(text) else text
