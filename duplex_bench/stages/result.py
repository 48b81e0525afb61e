"""What a stage hands back: a table, and what a person wants to see of it."""

from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage's table with its counts (planned, done, by outcome) and, where they help, a picture and a note."""

    frame: pl.DataFrame
    counts: dict[str, int | float | str] = field(default_factory=dict)
    picture_png: bytes | None = None
    preview: pl.DataFrame | None = None
    note: str = ""
