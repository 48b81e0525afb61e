"""Systems as static partitions, from the cards that can be read when the code location loads."""

import os
from pathlib import Path

import dagster as dg

from duplex_bench.stages.cards import readable_cards

# Dagster stops computing staleness at 100 upstream partitions (measured in the reference): the fan-in would always
# look fresh. Fewer systems than that is a limit of the design, asserted in a test.
MOST_SYSTEMS = 99

DATA_FOLDER = os.environ.get("DUPLEX_BENCH_DATA", "data")

CARDS, CARD_ERRORS = readable_cards(Path(DATA_FOLDER) / "systems")

systems = dg.StaticPartitionsDefinition(sorted(CARDS))
