"""One function per table of the report, from stored frames, and the files they are written to."""

from duplex_bench.reporting.run_tables import load_run
from duplex_bench.reporting.tables.conversation import conversation_tables
from duplex_bench.reporting.tables.leaderboard import condition_comparison, leaderboard, pairwise
from duplex_bench.reporting.tables.multiparty import multiparty_tables
from duplex_bench.reporting.tables.run import (
    cast_quality,
    failures,
    funnel,
    missing_scores,
    outcomes,
    provenance,
    stand_ins,
)
from duplex_bench.reporting.tables.writing import write_tables

__all__ = [
    "cast_quality",
    "condition_comparison",
    "conversation_tables",
    "failures",
    "funnel",
    "leaderboard",
    "load_run",
    "missing_scores",
    "multiparty_tables",
    "outcomes",
    "pairwise",
    "provenance",
    "stand_ins",
    "write_tables",
]
