"""Every table of the conversation track beside the common ones, from stored measurements (P2 section 5, App. C, E)."""

from collections.abc import Sequence

from duplex_bench.reporting.inputs import SystemInfo, Table, TrackTables
from duplex_bench.reporting.tables.conversation_pauses import by_length, by_tercile, pairs
from duplex_bench.reporting.tables.conversation_recall import by_history, by_scorer, one_point
from duplex_bench.reporting.tables.conversation_results import (
    exceptional,
    intervals,
    main_results,
    quantiles,
    system_cards,
)


def conversation_tables(tables: TrackTables, systems: Sequence[SystemInfo] = ()) -> list[Table]:
    """The tables that this run has rows for; none for another track.

    Args:
        tables: stored tables of the track.
        systems: what is known about the systems: reference policies and bounds are left out of pairs.
    """
    if tables.track != "conversation" or tables.measurements.height == 0:
        return []
    references = {system.name for system in systems if system.reference}
    recalled = by_history(tables)
    found = [
        main_results(tables, recalled),
        intervals(tables, recalled),
        quantiles(tables),
        by_length(tables),
        by_tercile(tables),
        pairs(tables, references),
        recalled,
        by_scorer(tables),
        one_point(tables),
        exceptional(tables),
        system_cards(tables, systems),
    ]
    return [table for table in found if table.frame.height]
