"""From measurements of all systems to statistics, tables and figures of one track."""

import io
from collections.abc import Mapping, Sequence

import polars as pl

from duplex_bench.records import tables as schemas
from duplex_bench.records.items import Track
from duplex_bench.reporting.aggregate import Aggregates, AggregateSettings, statistics_table
from duplex_bench.reporting.figures import Drawn, draw_figures
from duplex_bench.reporting.inputs import SystemInfo, Table, TrackTables
from duplex_bench.reporting.tables import (
    condition_comparison,
    conversation_tables,
    failures,
    leaderboard,
    missing_scores,
    multiparty_tables,
    outcomes,
    pairwise,
)
from duplex_bench.stages import scoring
from duplex_bench.stages.conversation_sensitivity import sensitivity_tables
from duplex_bench.stages.repeats import repeat_variance
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import from_parquet, to_parquet

TABLES_SCHEMA = {"id": pl.String, "title": pl.String, "caption": pl.String, "n_rows": pl.Int64, "parquet": pl.String}
FIGURES_SCHEMA = {
    "id": pl.String, "title": pl.String, "caption": pl.String,
    "svg": pl.String, "svg_dark": pl.String, "png": pl.String, "plot": pl.String,
}  # fmt: skip


def joined(parts: Mapping[str, pl.DataFrame], schema: schemas.Schema) -> pl.DataFrame:
    """Tables of several systems as one, in order of system; of none, an empty table."""
    frames = [parts[name].cast(dict(schema)) for name in sorted(parts)]  # type: ignore[arg-type]
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict(schema))


def aggregate(
    workspace: Workspace, track: Track, measurements: Mapping[str, pl.DataFrame], bounds: pl.DataFrame | None
) -> tuple[StageResult, StageResult]:
    """Estimates with intervals, and paired comparisons of the systems; bounds are estimated, never compared."""
    settings = workspace.profile.statistics
    chosen = AggregateSettings(n_resamples=settings.n_resamples, level=settings.level)
    cards = scoring.metric_cards(track)
    table = joined(measurements, schemas.MEASUREMENTS)
    found = statistics_table(table, cards, track=track, settings=chosen)
    estimates = found.statistics
    if bounds is not None and bounds.height:
        of_bounds: Aggregates = statistics_table(bounds, cards, track=track, settings=chosen)
        untied = of_bounds.statistics.with_columns(pl.lit(None, dtype=pl.Int64).alias("tie_group"))
        estimates = pl.concat([estimates, untied])
    headline = {card.id for card in cards if card.headline}
    preview = estimates.filter(pl.col("metric").is_in(list(headline))).select(
        "system", "condition", "metric", "estimate", "low", "high", "n_scored", "n_expected"
    )
    systems = table["system"].n_unique()
    return (
        StageResult(estimates, {"systems": systems, "estimates": estimates.height}, preview=preview),
        StageResult(found.comparisons, {"systems": systems, "comparisons": found.comparisons.height}),
    )


def store_tables(workspace: Workspace, made: Sequence[Table], counts: dict[str, int | float | str]) -> StageResult:
    """Tables as one row each, their content as Parquet in the blob store."""
    rows = [
        {
            "id": table.id,
            "title": table.title,
            "caption": table.caption,
            "n_rows": table.frame.height,
            "parquet": workspace.blobs.put(to_parquet(table.frame), "parquet"),
        }
        for table in made
    ]
    frame = pl.DataFrame(rows, schema=TABLES_SCHEMA)
    return StageResult(frame, counts, preview=frame.drop("parquet"))


def tables(workspace: Workspace, track: TrackTables, systems: Sequence[SystemInfo] = ()) -> StageResult:
    """Every table of the track, each stored as Parquet."""
    made = [make(track) for make in (leaderboard, condition_comparison, pairwise, outcomes, failures, missing_scores)]
    made += multiparty_tables(track, systems) + conversation_tables(track, systems) + sensitivity_tables(track)
    repeated = repeat_variance(workspace, track)
    made += [repeated] if repeated is not None else []
    return store_tables(workspace, made, {"tables": len(made)})


def stored_tables(workspace: Workspace, frame: pl.DataFrame) -> list[Table]:
    """The tables that ``store_tables`` stored."""
    return [
        Table(row["id"], row["title"], row["caption"], from_parquet(workspace.blobs.get(row["parquet"], "parquet")))
        for row in frame.iter_rows(named=True)
    ]


def figures(workspace: Workspace, track: TrackTables, systems: tuple[SystemInfo, ...]) -> StageResult:
    """Every figure of the track as SVG for light and dark ground, and PNG."""
    return figures_result(workspace, draw_figures(track, systems))


def figures_result(workspace: Workspace, drawn: Sequence[Drawn]) -> StageResult:
    """Drawn figures as one row each, their files in the blob store; the first is the picture."""
    rows = [
        {
            "id": figure.id,
            "title": figure.title,
            "caption": figure.caption,
            "svg": workspace.blobs.put(figure.svg, "svg"),
            "svg_dark": workspace.blobs.put(figure.svg_dark, "svg"),
            "png": workspace.blobs.put(figure.png, "png"),
            "plot": None if figure.plot is None else workspace.blobs.put(figure.plot.encode(), "json"),
        }
        for figure in drawn
    ]
    frame = pl.DataFrame(rows, schema=FIGURES_SCHEMA)
    picture = _small(drawn[0].png) if drawn else None
    return StageResult(frame, {"figures": frame.height}, picture_png=picture, preview=frame.select("id", "title"))


def stored_figures(workspace: Workspace, frame: pl.DataFrame) -> list[Drawn]:
    """The figures that ``figures`` stored."""
    blobs = workspace.blobs
    return [
        Drawn(
            row["id"],
            row["title"],
            row["caption"],
            blobs.get(row["svg"], "svg"),
            blobs.get(row["svg_dark"], "svg"),
            blobs.get(row["png"], "png"),
            # Figures of an earlier version were stored without.
            blobs.get(row["plot"], "json").decode() if row.get("plot") else None,
        )
        for row in frame.iter_rows(named=True)
    ]


def _small(png: bytes, width_px: int = 640) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        picture.thumbnail((width_px, width_px))
        buffer = io.BytesIO()
        picture.convert("RGB").quantize(32).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
