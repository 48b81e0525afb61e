"""Commands of the conversation track: what to download for a choice, and regeneration before there is anything."""

import pytest
from typer.testing import CliRunner

from duplex_bench.cli import main, regenerate
from duplex_bench.cli.console import console

pytestmark = pytest.mark.unit

LIST = """file_id,label,split,batch_idx,archive_idx
V00_S0001_I00000582_P0001,naturalistic,train,0,7
V00_S0001_I00000582_P0002A,naturalistic,train,0,35
V00_S0002_I00000582_P0003,naturalistic,dev,1,2
V00_S0003_I00000582_P0004,improvised,dev,1,3
"""


@pytest.fixture
def file_list(tmp_path):
    path = tmp_path / "filelist.csv"
    path.write_text(LIST)
    return path


def test_archives_of_both_sides_are_printed(file_list, tmp_path):
    (tmp_path / "mine.txt").write_text("V00_S0001_I00000582\n")
    done = CliRunner().invoke(main.app, ["corpus-files", str(file_list), "--selection", str(tmp_path / "mine.txt")])
    assert done.output.split() == ["naturalistic/train/0000/0007.tar", "naturalistic/train/0000/0035.tar"]


def test_objects_of_the_bucket_are_those_that_speech_needs(file_list):
    done = CliRunner().invoke(main.app, ["corpus-files", str(file_list), "--bucket"])
    found = done.output.split()
    assert len(found) == 9
    assert "naturalistic/dev/metadata/vad/V00_S0002_I00000582_P0003.jsonl" in found


def test_regeneration_before_a_run_names_the_remedy(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main.app, ["regenerate", "--profile", "demo"])
    assert "run duplex-bench run --profile demo --track conversation first" in str(done.exception)


def test_rejected_windows_are_listed_with_why():
    with console.capture() as told:
        regenerate._tell_rejected({"point-1": "noise; speech cut off", "point-2": ""})
    lines = told.get().splitlines()
    assert lines[0] == "2 windows rejected by two people, out of the draw:"
    assert [line.split(maxsplit=1) for line in lines[1:]] == [
        ["point-1", "noise; speech cut off"],
        ["point-2", "no reason given"],
    ]
    with console.capture() as told:
        regenerate._tell_rejected({})
    assert told.get() == ""
