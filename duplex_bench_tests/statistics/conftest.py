import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def clustered():
    """Simulations of clustered data (``clustered.py`` beside this)."""
    spec = importlib.util.spec_from_file_location("clustered_data", Path(__file__).with_name("clustered.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
