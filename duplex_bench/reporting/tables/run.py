"""Tables of the run itself: outcomes, failures, missing scores, provenance, stand-ins, and frames made elsewhere."""

from collections.abc import Mapping, Sequence

import polars as pl

from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.reporting.inputs import ReportInputError, StandIn, Table, TrackTables


def outcomes(tables: TrackTables, planned: Mapping[str, int] | None = None) -> Table:
    """How the rollouts of each system ended; every row adds up to what was planned.

    Args:
        tables: the track.
        planned: rollouts planned per system; where not given, each system was to run every item once per repeat
            that any of its rollouts shows.

    Returns:
        Columns system, planned, one per outcome, not_run.

    Raises:
        ReportInputError: more rollouts are stored than were planned.
    """
    rows = []
    for system in sorted(tables.rollouts["system"].unique()):
        mine = tables.rollouts.filter(pl.col("system") == system)
        repeats = mine["repeat"].n_unique()
        expected = planned[system] if planned and system in planned else tables.items.height * repeats
        counts = {str(outcome): mine.filter(pl.col("outcome") == outcome).height for outcome in Outcome}
        not_run = expected - mine.height
        if not_run < 0:
            raise ReportInputError(
                f"table {tables.track}/rollouts holds {mine.height} rollouts of {system}, but {expected} were planned: "
                "materialise items and rollouts again, they are of two runs"
            )
        if sum(counts.values()) != mine.height:
            raise ReportInputError(f"table {tables.track}/rollouts has outcomes of {system} that nobody knows")
        rows.append({"system": system, "planned": expected, **counts, "not_run": not_run})
    schema = {"system": pl.String, "planned": pl.Int64, **{str(o): pl.Int64 for o in Outcome}, "not_run": pl.Int64}
    scored = " and ".join(sorted(SCORED_OUTCOMES))
    return Table(
        id=f"{tables.track}-outcomes",
        title=f"{tables.title}: outcomes",
        caption=(
            f"n = {tables.rollouts.height} rollouts. {scored.capitalize()} are scored; the others are excluded from "
            "rates and counted here. Each row adds up to planned."
        ),
        frame=pl.DataFrame(rows, schema=schema),
    )


def failures(tables: TrackTables) -> Table:
    """Every rollout that has no result, with its reason. That no audio came is a result, and is scored.

    Returns:
        Columns system, item_id, repeat, outcome, reason, attempts, rollout_key.
    """
    frame = (
        tables.rollouts.filter(~pl.col("outcome").is_in([str(outcome) for outcome in SCORED_OUTCOMES]))
        .select("system", "item_id", "repeat", "outcome", "reason", "attempts", "rollout_key")
        .sort("system", "outcome", "item_id", "repeat")
    )
    return Table(
        id=f"{tables.track}-failures",
        title=f"{tables.title}: rollouts without a result",
        caption=f"{frame.height} of {tables.rollouts.height} rollouts, each after its last attempt.",
        frame=frame,
    )


def missing_scores(tables: TrackTables) -> Table:
    """Why windows have no score, counted by system, metric and reason. Missing is not zero.

    Returns:
        Columns system, metric, condition, reason, n, n_windows (all windows of that metric and system).
    """
    measured = tables.measurements
    total = measured.group_by("system", "metric", "condition").len("n_windows")
    frame = (
        measured.filter(pl.col("value").is_null())
        .group_by("system", "metric", "condition", "reason")
        .len("n")
        .join(total, on=["system", "metric", "condition"])
        .select("system", "metric", "condition", "reason", pl.col("n", "n_windows").cast(pl.Int64))
        .sort("metric", "condition", "system", "reason")
    )
    return Table(
        id=f"{tables.track}-missing",
        title=f"{tables.title}: windows without a score",
        caption=f"{measured['value'].null_count()} of {measured.height} scores are reasons, not values.",
        frame=frame,
    )


def cast_quality(frame: pl.DataFrame) -> Table:
    """The measured voices, one row each (speaker distance, word error rate, level), as the speech room gives them."""
    return Table(
        id="cast-quality",
        title="Voices of the synthetic cast",
        caption=f"n = {frame.height} voices, measured on clips of known text.",
        frame=frame,
    )


def funnel(frame: pl.DataFrame) -> Table:
    """How candidates became points: one row per named rule with its counts, as the conversation room gives them."""
    return Table(
        id="funnel",
        title="From candidates to points",
        caption="Each rule drops what it counts; the rows add up to the candidates.",
        frame=frame,
    )


def provenance(facts: Mapping[str, str]) -> Table:
    """What made this report, as name and value, in the order given."""
    frame = pl.DataFrame(
        {"fact": list(facts.keys()), "value": list(facts.values())}, schema={"fact": pl.String, "value": pl.String}
    )
    return Table(id="provenance", title="Provenance", caption="What made these numbers.", frame=frame)


def stand_ins(engines: Sequence[StandIn]) -> Table:
    """Which embedded engine stands in for what, and what follows for the numbers."""
    columns = ("role", "engine", "stands_in_for", "consequence", "licence")
    frame = pl.DataFrame(
        [{name: getattr(engine, name) for name in columns} for engine in engines],
        schema=dict.fromkeys(columns, pl.String),
    )
    return Table(
        id="stand-ins",
        title="Stand-ins",
        caption=f"{frame.height} embedded engines take the place of what a full-size run would use.",
        frame=frame,
    )
