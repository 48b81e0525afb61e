"""From a stage's result to what Dagster shows: counts, a preview table, a picture, and a content data version."""

import base64
from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from duplex_bench.stages.result import StageResult
from duplex_bench.storage.frames import content_digest

PREVIEW_ROWS = 8
PREVIEW_CHARACTERS = 80
# Pictures lie in the event log: a large one would slow every page that lists events.
PICTURE_LIMIT_BYTES = 60_000


def reported(result: StageResult, output_name: str = "result") -> dg.Output[pl.DataFrame]:
    """The stage's table as an output whose data version is what the table says."""
    metadata: dict[str, Any] = {**{_plain(name): value for name, value in result.counts.items()}}
    preview = result.preview if result.preview is not None else result.frame
    if preview.height:
        metadata["preview"] = dg.MetadataValue.md(_markdown(preview.head(PREVIEW_ROWS)))
    if result.picture_png and len(result.picture_png) <= PICTURE_LIMIT_BYTES:
        encoded = base64.b64encode(result.picture_png).decode()
        metadata["picture"] = dg.MetadataValue.md(f"![picture](data:image/png;base64,{encoded})")
    if result.note:
        metadata["note"] = dg.MetadataValue.md(result.note)
    version = dg.DataVersion(content_digest(result.frame))
    return dg.Output(result.frame, output_name=output_name, metadata=metadata, data_version=version)


def passed_or_not(passed: bool, counts: Mapping[str, Any], *, severity: str = "ERROR") -> dg.AssetCheckResult:
    """A check's result with the numbers that decided it."""
    level = dg.AssetCheckSeverity.WARN if severity == "WARN" else dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(passed=passed, severity=level, metadata=dict(counts))


def _plain(name: str) -> str:
    return name.replace(" ", "_")


def _markdown(frame: pl.DataFrame) -> str:
    header = "| " + " | ".join(frame.columns) + " |"
    rule = "|" + "---|" * frame.width
    rows = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in frame.iter_rows()]
    return "\n".join([header, rule, *rows])


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 1] + "…"
