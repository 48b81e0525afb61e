"""A part is left alone only if everything it depends on and everything it wrote is unchanged."""

import polars as pl
import pytest

from duplex_bench.stages import fingerprints
from duplex_bench.stages.workspace import Workspace, open_workspace
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit

INPUT, OUTPUT = "tables/demo/in.parquet", "tables/demo/out.parquet"


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    found = open_workspace("demo", tmp_path)
    write_frame(found.store, INPUT, pl.DataFrame({"a": [1]}))
    write_frame(found.store, OUTPUT, pl.DataFrame({"b": [2]}))
    return found


def mark_of(workspace: Workspace, card: str = "one") -> str:
    return fingerprints.fingerprint(workspace, "part", [INPUT], {"card": card})


def test_a_part_that_was_never_run_is_not_current(workspace):
    assert not fingerprints.is_current(workspace, "part", mark_of(workspace), [OUTPUT])


def test_a_part_just_run_is_current_until_something_changes(workspace, tmp_path):
    fingerprints.note(workspace, "part", mark_of(workspace), [OUTPUT])
    assert fingerprints.is_current(workspace, "part", mark_of(workspace), [OUTPUT])
    assert not fingerprints.is_current(workspace, "part", mark_of(workspace, card="other"), [OUTPUT])
    assert not fingerprints.is_current(workspace, "part", mark_of(workspace), [OUTPUT], [tmp_path / "no report"])


def test_an_input_that_changed_makes_it_run(workspace):
    fingerprints.note(workspace, "part", mark_of(workspace), [OUTPUT])
    write_frame(workspace.store, INPUT, pl.DataFrame({"a": [9]}))
    assert not fingerprints.is_current(workspace, "part", mark_of(workspace), [OUTPUT])


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_an_output_that_is_not_as_it_was_written_makes_it_run(workspace, change):
    mark = mark_of(workspace)
    fingerprints.note(workspace, "part", mark, [OUTPUT])
    if change == "replaced":
        write_frame(workspace.store, OUTPUT, pl.DataFrame({"b": [3]}))
    else:
        workspace.store.delete(OUTPUT)
    assert not fingerprints.is_current(workspace, "part", mark, [OUTPUT])


def test_a_part_noted_while_an_output_was_missing_is_never_current(workspace):
    workspace.store.delete(OUTPUT)
    mark = mark_of(workspace)
    fingerprints.note(workspace, "part", mark, [OUTPUT])
    assert not fingerprints.is_current(workspace, "part", mark, [OUTPUT])


@pytest.mark.parametrize("name", ["module.py", "data/prompt.md", "data/cards.toml"])
def test_an_edit_of_any_source_or_data_file_changes_the_code(tmp_path, name):
    (tmp_path / "data").mkdir()
    for each in ("module.py", "data/prompt.md", "data/cards.toml"):
        (tmp_path / each).write_text("before")
    before = fingerprints.tree_digest(tmp_path)
    assert fingerprints.tree_digest(tmp_path) == before
    (tmp_path / name).write_text("after")
    assert fingerprints.tree_digest(tmp_path) != before
