from pathlib import Path

import pytest

from duplex_bench.systems.card import resolved
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.virtual_environments import made_interpreter

# Where `make test-voila` has the environment made.
VOILA_CACHE = Path(__file__).parents[3] / ".cache" / "voila" / "cache"


@pytest.fixture(scope="session")
def voila():
    """The adapter on a tiny model of random weights, in its worker."""
    found = load_cards(None, plug_ins=False).cards["voila-tiny"]
    card = resolved(found.card, found.folder)
    if made_interpreter(card, VOILA_CACHE) is None:
        pytest.fail("the environment is not there: `make test-voila` makes it")
    with open_system(card, cache_folder=VOILA_CACHE) as system:
        yield system
