import pytest


@pytest.fixture(scope="session")
def definitions():
    from duplex_bench.definitions import defs

    return defs


@pytest.fixture(scope="session")
def graph(definitions):
    return definitions.resolve_asset_graph()
