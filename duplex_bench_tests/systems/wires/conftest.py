from pathlib import Path

import pytest

WIRES_PYTHON = Path(__file__).parents[3] / ".cache" / "venv-wires" / "bin" / "python"
VENDORS = Path(__file__).parent / "vendors"


@pytest.fixture(scope="session")
def wires():
    """The command that runs a script of ``vendors`` in the vendors' environment."""
    if not WIRES_PYTHON.exists():
        pytest.fail("the environment is not there: `make test-wires` makes it")
    return lambda name, *arguments: [str(WIRES_PYTHON), str(VENDORS / name), *map(str, arguments)]
