import importlib.util
from pathlib import Path

import pytest


def load_factory():
    """The factory module, by path: test folders are no packages."""
    spec = importlib.util.spec_from_file_location("reporting_factory", Path(__file__).with_name("factory.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def factory_module():
    return load_factory()


@pytest.fixture(scope="session")
def report_inputs(factory_module, tmp_path_factory):
    return factory_module.Factory(tmp_path_factory.mktemp("blobs")).inputs(scenarios=4, conversations=5)


@pytest.fixture(scope="session")
def report_folder(report_inputs, tmp_path_factory):
    from duplex_bench.reporting.site import build_site

    return build_site(report_inputs, tmp_path_factory.mktemp("site") / "report").parent
