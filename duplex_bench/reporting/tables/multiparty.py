"""Every table of the multiparty track beside the common ones, from stored measurements (P1 sections 4, A3 to A7)."""

from collections.abc import Sequence

from duplex_bench.reporting.inputs import SystemInfo, Table, TrackTables
from duplex_bench.reporting.tables.multiparty_examples import qualitative
from duplex_bench.reporting.tables.multiparty_pairs import (
    acoustics,
    addressing,
    orderings,
    paper_tests,
    rank_correlations,
)
from duplex_bench.reporting.tables.multiparty_sensitivity import minimum_speech
from duplex_bench.reporting.tables.multiparty_windows import (
    Rates,
    by_addressee,
    by_turn_type,
    conditional_accuracy,
    request_thirds,
    speech_in_silence,
    stopping,
    windows,
)


def multiparty_tables(tables: TrackTables, systems: Sequence[SystemInfo] = ()) -> list[Table]:
    """The tables that this run has rows for; none for another track.

    Args:
        tables: stored tables of the track.
        systems: what is known about the systems: reference policies and bounds are left out of rankings.
    """
    if tables.track != "multiparty" or tables.measurements.height == 0:
        return []
    frame, rates = windows(tables), Rates(tables)
    references = {system.name for system in systems if system.reference}
    found = [
        conditional_accuracy(frame, rates),
        addressing(frame, tables.analysis),
        by_turn_type(frame, rates),
        by_addressee(frame, rates),
        speech_in_silence(frame),
        stopping(frame, rates),
        request_thirds(frame, rates),
        minimum_speech(frame, tables.analysis.minimum_speech_s, references),
        orderings(tables, references),
        rank_correlations(tables, references),
        paper_tests(frame, tables.analysis),
        acoustics(tables, frame),
        qualitative(tables, frame),
    ]
    return [table for table in found if table.frame.height]
