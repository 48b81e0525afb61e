"""gate, compare and release as commands: exit codes, files written, and one line for what cannot be used."""

from xml.etree import ElementTree as ET

import polars as pl
import pytest
from typer.testing import CliRunner

from duplex_bench.cli.main import app
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.stages.items import items_frame

pytestmark = pytest.mark.unit

METRIC = "silence_preservation"


def item(name, scenario):
    stimulus = Stimulus("multiparty", AudioSlice("0" * 64, 0, 24_000, 24_000, f"{scenario:064d}"))
    windows = tuple(Window(f"w{number}", "silence", number, number + 1.0) for number in range(4))
    return Item(name, "multiparty", f"scenario-{scenario}", "explicit", stimulus, Reference(windows), "test")


def write_run(data, values, profile="demo", system="mine"):
    """A data folder with one metric: ``values`` by scenario, four windows each."""
    items = [item(f"item-{scenario}", scenario) for scenario in range(len(values))]
    rows = [
        {"measurement_id": f"{scenario}-{window}", "system": system, "item_id": f"item-{scenario}", "rollout_key": "k",
         "window_id": f"w{window}", "cluster": f"scenario-{scenario}", "condition": "explicit", "metric": METRIC,
         "metric_version": 1, "value": value, "reason": None, "at_s": 0.0, "details": "{}"}
        for scenario, several in enumerate(values)
        for window, value in enumerate(several)
    ]  # fmt: skip
    tables = data / "store" / "tables" / profile / "multiparty"
    (tables / "measurements").mkdir(parents=True)
    items_frame(items).write_parquet(tables / "items.parquet")
    pl.DataFrame(rows, schema=dict(MEASUREMENTS)).write_parquet(tables / "measurements" / f"{system}.parquet")
    return data


GOOD = [[1.0, 1.0, 1.0, 1.0]] * 12
BAD = [[0.0, 1.0, 0.0, 1.0]] * 12


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_gate_exits_with_0_where_the_run_holds_and_1_where_not_and_writes_why(call, tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD)
    assert call("gate", "--baseline", good, "--data", good).exit_code == 0
    files = ("--junit", tmp_path / "out" / "gate.xml", "--summary", tmp_path / "out" / "gate.md")
    found = call("gate", "--baseline", good, "--data", bad, *files)
    assert found.exit_code == 1
    assert "gate failed" in found.output
    assert "worse by more than the margin" in found.output
    failure = ET.parse(tmp_path / "out" / "gate.xml").getroot().find("testsuite/testcase/failure")
    assert "change \N{MINUS SIGN}0.50" in failure.get("message")
    assert (tmp_path / "out" / "gate.md").read_text().startswith("## duplex-bench gate: failed")
    call("gate", "--baseline", good, "--data", bad, *files)
    assert (tmp_path / "out" / "gate.md").read_text().count("## duplex-bench gate") == 2
    assert call("gate", "--baseline", good, "--data", bad, "--margin", f"{METRIC}=0.6").exit_code == 0
    assert call("gate", "--baseline", good, "--data", bad, "--test", "no_regression").exit_code == 1
    assert call("gate", "--baseline", bad, "--run", good).exit_code == 0


def test_tied_values_and_single_item_groups_are_no_wrong_number(call, tmp_path):
    """One scenario: no interval, so nothing can be gated, and the gate does not pass."""
    one = write_run(tmp_path / "one", GOOD[:1])
    found = call("gate", "--baseline", one, "--data", one, "--rules", rules(tmp_path, 'too_few = "fail"'))
    assert found.exit_code == 1
    assert "the baseline has too few values: 4 in 1 clusters" in found.output
    compared = call("compare", one, one, "--quote")
    assert compared.exit_code == 0
    assert "in 1 clusters: at least 2 in 2 are needed" in compared.output


def rules(folder, text):
    (folder / "gate.toml").write_text(text)
    return folder / "gate.toml"


def test_compare_prints_difference_notice_and_a_line_to_quote(call, tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD)
    found = call("compare", good, bad)
    assert found.exit_code == 0
    assert "+0.50" in found.output
    assert "Compare with care: the settings of A and B are not told" in found.output
    lines = call("compare", good, bad, "--quote").output.splitlines()
    assert len(lines) == 1
    # Twelve clusters that all differ by the same are no certainty: the bound says what they leave open.
    assert "A minus B: +0.50 [+0.14, +0.62] (95 % Wilson bound over 12 clusters" in lines[0]
    assert "48 windows in 12 clusters" in lines[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "{good}", "mine"), "is a path and mine is none"),
        (("compare", "a", "b", "--system", "mine"), "--system chooses among the systems of two runs"),
        (("gate", "--baseline", "{good}/none", "--data", "{good}"), "does not exist"),
        (("gate", "--baseline", "{good}", "--data", "{good}", "--rules", "none.toml"), "cannot be read"),
        (("release", "--check", "nowhere"), "does not exist"),
        (("release", "--check", "a", "--rescore", "b"), "give one"),
        (("release", "--data", "{good}/empty"), "has no measurements"),
        (("trace", "abc", "--data", "{good}", "--limit", "3"), "demo-limit-3"),
        (("plan", "-p", "{good}"), "is a folder"),
        (("rescore", "--with", "{good}", "--data", "{good}"), "is a folder"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_the_remedy(call, tmp_path, words, said):
    good = write_run(tmp_path / "good", GOOD)
    found = call(*(word.format(good=good) for word in words))
    assert found.exit_code != 0
    assert isinstance(found.exception, ValueError)
    assert said in str(found.exception)


def test_a_bundle_that_is_none_is_named_with_exit_code_1(call, tmp_path):
    (tmp_path / "folder").mkdir()
    found = call("release", "--check", tmp_path / "folder")
    assert found.exit_code == 1
    assert "release.json: is missing" in found.output
