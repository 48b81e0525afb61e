import sys

import pytest
from typer.testing import CliRunner

from duplex_bench.cli.main import app, main

pytestmark = pytest.mark.unit


def test_help_says_what_to_do():
    told = CliRunner().invoke(app, ["validate", "--help"])
    assert told.exit_code == 0
    assert "draw" in told.output
    assert "score" in told.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["draw", "vibes", "--out", "OUT"], "choose construction, answers, acknowledgement"),
        (["draw", "answers", "--out", "OUT"], "run it"),
        (["score", "OUT/none.csv"], "Keep its column draw"),
    ],
)
def test_a_mistake_is_one_line_with_the_remedy(arguments, said, tmp_path, monkeypatch, capsys):
    where = [argument.replace("OUT", str(tmp_path / "out")) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["duplex-bench", "validate", *where, "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
