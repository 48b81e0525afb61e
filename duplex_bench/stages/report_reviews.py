"""Approved reviews against the engine's labels, as a table of the report (P2 table 6)."""

import polars as pl

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_types import Label
from duplex_bench.reporting.inputs import Table
from duplex_bench.review.agreement import ReviewedSession, engine_agreement
from duplex_bench.review.regions import regions_of
from duplex_bench.stages import reviews
from duplex_bench.stages.stored_run import stored
from duplex_bench.stages.workspace import Workspace

_FLAG_FIELDS = ("speaker", "start_s", "end_s")


def label_review(workspace: Workspace) -> Table | None:
    """How approved reviews differ from the engine's labels of the same sessions; None without one (P2 table 6).

    Raises:
        ReviewError: a review file cannot be read.
    """
    approved = reviews.approved(workspace.reviews_folder)
    engine = stored(workspace, "conversation", "engine_labels")
    sessions = stored(workspace, "conversation", "lively_sessions")
    if not approved or engine is None or sessions is None:
        return None
    lengths = dict(sessions.select("session_id", "duration_s").iter_rows())
    flagged = stored(workspace, "conversation", "review_flags")
    both = [
        ReviewedSession(
            session,
            lengths[session],
            tuple(regions_of(_labels(engine, session))),
            tuple(regions_of(labels)),
            _flags(flagged, session),
        )
        for session, labels in sorted(approved.items())
        if session in lengths
    ]
    if not both:
        return None
    rows = [
        {"measure": row.measure, "count": row.count, "of": row.total, "share": row.share}
        for row in engine_agreement(both)
    ]
    return Table(
        "conversation-label-review",
        "Conversation: human review against the engine's labels",
        f"n = {len(both)} approved conversations. Matched: a human turn of the same speaker covers more than half of "
        "the engine's. Changed: dropped, or a boundary moved by more than 100 ms.",
        pl.DataFrame(rows, schema={"measure": pl.String, "count": pl.Float64, "of": pl.Float64, "share": pl.Float64}),
    )


def _labels(engine: pl.DataFrame, session: str) -> list[Label]:
    mine = engine.filter(pl.col("session_id") == session)
    return [
        Label(row["speaker"], row["kind"], row["start_s"], row["end_s"], row["rule"], row["confidence"])
        for row in mine.iter_rows(named=True)
    ]


def _flags(flagged: pl.DataFrame | None, session: str) -> tuple[Flag, ...]:
    if flagged is None:
        return ()
    mine = flagged.filter(pl.col("session_id") == session)
    return tuple(
        Flag(**{name: row[name] for name in Flag.__dataclass_fields__ if name in row})
        for row in mine.iter_rows(named=True)
    )
