"""Rows of a table in the order of the report's systems, which is the papers', not the alphabet's."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import polars as pl

# What tables are ordered by before systems, the outermost first.
_OUTER: Final = ("track", "kind", "metric", "acoustics", "addressing", "condition")


def in_row_order(frame: pl.DataFrame, systems: Sequence[str]) -> pl.DataFrame:
    """The rows of a table with a column ``system``, or a pair of them, in the order of ``systems``.

    All else stays as it was.

    Where the rows of a system stand apart, since the table is ordered by something else first (a metric, a condition),
    systems are ordered within each stretch of it.

    Args:
        frame: any table; without a column ``system`` it is returned as it is.
        systems: names, first on top; others follow in the order in which they stand.
    """
    pairs = {"system_a", "system_b"} <= set(frame.columns)
    if not (pairs or "system" in frame.columns) or frame.height < 2:
        return frame
    rank = {name: place for place, name in enumerate(systems)}
    if pairs:
        return _pairs_in_order(frame, rank)
    ranks = [rank.get(name, len(rank)) for name in frame["system"].to_list()]
    outer = [name for name in _OUTER if name in frame.columns]
    keys = {name: frame[name].to_list() for name in outer}
    order = _ordered(list(range(frame.height)), frame["system"].to_list(), ranks, [keys[name] for name in outer])
    return frame[order]


def _pairs_in_order(frame: pl.DataFrame, rank: Mapping[str, int]) -> pl.DataFrame:
    """Pairs of each metric and condition by the system of the two that stands higher."""
    outer = [name for name in _OUTER if name in frame.columns]
    stretch = [pl.struct(outer).rle_id()] if outer else []
    ranks = [pl.col(f"system_{side}").replace_strict(rank, default=len(rank), return_dtype=pl.Int64) for side in "ab"]
    return frame.sort(*stretch, pl.min_horizontal(ranks), pl.max_horizontal(ranks), maintain_order=True)


def _ordered(rows: list[int], names: list[str], ranks: list[int], keys: list[list[object]]) -> list[int]:
    if _together([names[row] for row in rows]):
        return sorted(rows, key=lambda row: ranks[row])
    if not keys:
        return rows
    found: list[int] = []
    stretch: list[int] = []
    for row in rows:
        if stretch and keys[0][row] != keys[0][stretch[-1]]:
            found += _ordered(stretch, names, ranks, keys[1:])
            stretch = []
        stretch.append(row)
    return found + _ordered(stretch, names, ranks, keys[1:])


def _together(names: list[str]) -> bool:
    """Whether the rows of each system follow one another."""
    changes = 1 + sum(one != other for one, other in pairwise(names))
    return changes == len(set(names))
