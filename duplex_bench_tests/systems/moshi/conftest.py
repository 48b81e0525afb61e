"""The moshi package in the environment that ``make test-moshi`` makes; these tests are not run without it."""

from pathlib import Path

import pytest

from duplex_bench.stages.cards import card_named
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.virtual_environments import made_interpreter

CACHE = Path(".cache/moshi/cache")


@pytest.fixture(scope="session")
def moshi_card():
    card = card_named(Path("no-user-cards"), "moshi-tiny")
    if made_interpreter(card, CACHE) is None:
        pytest.fail("the environment is not there: `make test-moshi` makes it")
    return card


@pytest.fixture(scope="session")
def moshi_cache():
    return CACHE


@pytest.fixture(scope="session")
def moshi_python(moshi_card):
    return made_interpreter(moshi_card, CACHE)


@pytest.fixture(scope="session")
def moshi(moshi_card):
    """The real package, a tiny model of random weights, in its worker."""
    with open_system(moshi_card, cache_folder=CACHE) as system:
        yield system
