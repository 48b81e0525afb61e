"""``duplex-bench status``: every system that was run is a row, whatever its card says today."""

import polars as pl
import pytest

from duplex_bench.storage.frames import write_frame
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit

ITEMS = pl.DataFrame({"item_id": ["a", "b"], "stimulus_digest": ["1", "2"]})
ROLLOUTS = ITEMS.with_columns(outcome=pl.Series(["completed", "transport_error"]))
PAID = """
name = "paid"
seed = 1
systems = ["gpt-realtime-300ms"]

[multiparty.grammar]
n_pairs = 1
seed = 1

[conversation.generator]
n_sessions = 1
"""
CARD = """
name = "{name}"
title = "{name}"
family = "policy"
adapter = "duplex_bench.systems.adapters.never_speak:create"
licence = "test"
{more}
"""


@pytest.fixture
def data(tmp_path):
    """A data folder with items of the multiparty track."""
    write_frame(FolderStore(tmp_path / "data" / "store"), "tables/demo/multiparty/items.parquet", ITEMS)
    return tmp_path / "data"


def card(data, name, more=""):
    (data / "systems").mkdir(exist_ok=True)
    (data / "systems" / f"{name}.toml").write_text(CARD.format(name=name, more=more))


def was_run(data, name, profile="demo"):
    write_frame(FolderStore(data / "store"), f"tables/{profile}/multiparty/rollouts/{name}.parquet", ROLLOUTS)


def row(out, name):
    return next(
        ([cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if name in line), None
    )


def test_a_system_that_runs_when_named_is_shown_once_it_was_run(called, data):
    card(data, "asked-for", "on_request = true")
    assert row(called("status")[1], "asked-for") is None
    was_run(data, "asked-for")
    assert row(called("status")[1], "asked-for") == ["asked-for", "2", "1", "", "", "not scored"]


def test_a_system_whose_key_is_gone_is_shown_if_it_was_run(called, data, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _, out, err = called("status")
    assert row(out, "gpt-realtime-300ms") is None
    assert "passed over" not in err
    was_run(data, "gpt-realtime-300ms")
    assert row(called("status")[1], "gpt-realtime-300ms")[:2] == ["gpt-realtime-300ms", "2"]


def test_results_without_a_card_are_named(called, data):
    was_run(data, "forgotten")
    assert "its card is gone" in row(called("status")[1], "forgotten")[-1]


def test_a_system_of_the_other_track_is_not_called_due(called, data):
    card(data, "elsewhere", 'tracks = ["conversation"]')
    assert row(called("status")[1], "elsewhere") is None


def test_a_profile_of_systems_that_cannot_run_here_has_a_status(called, data, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "paid.toml").write_text(PAID)
    store = FolderStore(data / "store")
    write_frame(store, "tables/paid/multiparty/items.parquet", ITEMS)
    was_run(data, "gpt-realtime-300ms", "paid")
    code, out, err = called("status", "--profile", "paid.toml")
    assert (code, err) == (0, "")
    assert row(out, "gpt-realtime-300ms")[:2] == ["gpt-realtime-300ms", "2"]


def test_a_run_of_a_part_is_pointed_to(called, data):
    (data / "reports" / "demo-limit-2").mkdir(parents=True)
    assert "duplex-bench status --profile demo --limit 2" in called("status")[1]
    assert "run with --limit" not in called("status", "--limit", "3")[1]


def test_a_card_that_is_passed_over_is_told_with_its_brackets(called, data):
    (data / "systems").mkdir()
    (data / "systems" / "bad[bold].toml").write_text("name = 5\n")
    assert "bad[bold].toml: name: 5 stands there; write text in quotes" in called("status")[2]


def test_the_next_name_is_suggested(called, data):
    card(data, "my-model")
    _, _, err = called("run", "--system", "my-modle")
    assert "no system 'my-modle': did you mean my-model?" in err


def test_a_damaged_table_of_one_system_is_told_in_its_row(called, data):
    for name in ("never-speak", "always-speak"):
        was_run(data, name)
    store, key = FolderStore(data / "store"), "tables/demo/multiparty/rollouts/never-speak.parquet"
    whole = bytearray(store.get(key))
    whole[len(whole) // 2] ^= 1
    store.put(key, bytes(whole))
    code, out, err = called("status")
    assert (code, err) == (0, "")
    assert row(out, "never-speak")[-1] == "a table is damaged: run it again, no work is lost"
    assert row(out, "always-speak")[1] == "2"
