"""Profile, data folder and limit are those that the environment names, where no option says otherwise."""

import os
from pathlib import Path

import pytest

from duplex_bench.cli.run import environment

pytestmark = pytest.mark.process

VARIABLES = ("DUPLEX_BENCH_PROFILE", "DUPLEX_BENCH_DATA", "DUPLEX_BENCH_LIMIT")


@pytest.fixture
def told(called, tmp_path, monkeypatch):
    """What `report` is called with, given variables and options."""
    seen = []
    monkeypatch.setattr("duplex_bench.cli.run.build_report", lambda *given: seen.append(given) or 0)
    place = tmp_path / "elsewhere"

    def call(*options, **variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(f"DUPLEX_BENCH_{name}", value)
        code, _, err = called("report", *options)
        if code:
            return err
        _, data, profile, _, limit, _ = seen.pop()
        return profile, data, limit

    call.place = place
    return call


def test_the_variables_of_a_cluster_stand_in_for_options(told):
    assert told() == ("demo", Path("data"), None)
    given = {"PROFILE": "paper", "DATA": str(told.place), "LIMIT": "2"}
    assert told(**given) == ("paper", told.place, 2)
    assert told("-p", "demo", "--data", "here", "--limit", "5", **given) == ("demo", Path("here"), 5)


@pytest.mark.parametrize(("named", "limit"), [("0", None), ("", None), ("17", 17)])
def test_no_items_of_the_variable_are_all(told, named, limit):
    assert told(LIMIT=named) == ("demo", Path("data"), limit)


@pytest.mark.parametrize("named", ["many", "-1", "2.5"])
def test_a_variable_that_is_no_number_is_named(told, named):
    assert "DUPLEX_BENCH_LIMIT is" in " ".join(told(LIMIT=named).replace("│", " ").split())


def test_a_command_leaves_no_variables_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_PROFILE", "paper")
    monkeypatch.delenv("DUPLEX_BENCH_DATA", raising=False)
    monkeypatch.delenv("DUPLEX_BENCH_LIMIT", raising=False)
    with environment(tmp_path, Path("data"), "demo", 3):
        assert [os.environ[name] for name in VARIABLES] == ["demo", str(tmp_path / "data"), "3"]
    assert [os.environ.get(name) for name in VARIABLES] == ["paper", None, None]
