"""``duplex-bench score-audio``: what it prints, where it writes, and its exit codes."""

import json

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from duplex_bench.cli.main import app
from duplex_bench.cli.recordings import score_recording, table_of
from duplex_bench.stages.score_audio import score_audio

pytestmark = pytest.mark.unit
RATE = 16000


@pytest.fixture
def talk(tmp_path):
    """Two questions, answered after 0.5 s and 0.9 s, with their labels."""
    noise = np.random.default_rng(3).normal(size=(12 * RATE, 2)) * 0.05
    spoken = {"user": [(1.0, 2.5), (5.0, 6.5)], "system": [(3.0, 4.5), (7.4, 9.0)]}
    samples = np.zeros((12 * RATE, 2))
    labels = {}
    for channel, (who, rows) in enumerate(spoken.items()):
        for start_s, end_s in rows:
            part = slice(round(start_s * RATE), round(end_s * RATE))
            samples[part, channel] = noise[part, channel]
        starts = [start_s + n * 0.5 for start_s, _ in rows for n in range(3)]
        labels[who] = {"words": [{"word": "word", "start": at_s, "end": at_s + 0.5} for at_s in starts]}
    soundfile.write(tmp_path / "talk.wav", samples, RATE)
    (tmp_path / "talk.json").write_text(json.dumps(labels))
    return tmp_path / "talk.wav"


def test_scores_are_printed_and_the_page_is_written(talk, tmp_path, capsys):
    assert score_recording(talk, None, None, tmp_path / "out", tmp_path / "data") == 0
    said = capsys.readouterr().out
    assert "Turn-end latency, median" in said
    assert "0.70\N{NO-BREAK SPACE}s" in said
    assert "2 of 2" in said
    assert "talk.json was read as labels" in said
    assert str(tmp_path / "out" / "index.html") in said
    assert (tmp_path / "out" / "index.html").is_file()
    assert (tmp_path / "out" / "tables" / "summary.csv").is_file()


def test_sections_without_a_moment_say_so_in_one_row(talk, tmp_path):
    table = table_of(score_audio(talk, None, None, tmp_path / "out", tmp_path / "data"))
    measures = list(table.columns[0].cells)
    assert "[bold]At the user's pauses[/]" in measures
    assert not any("Silent at the pause" in cell for cell in measures)


@pytest.mark.parametrize(
    ("prepare", "remedy"),
    [
        (lambda path: path.unlink(), "check the name"),
        (lambda path: path.write_bytes(path.read_bytes()[:3000]), "copy or download it again"),
        (lambda path: path.with_suffix(".json").write_text("{"), "see the documented forms"),
    ],
)
def test_input_that_cannot_be_used_ends_with_2_and_a_remedy(talk, tmp_path, capsys, prepare, remedy):
    prepare(talk)
    assert score_recording(talk, None, None, tmp_path / "out", tmp_path / "data") == 2
    said = capsys.readouterr().err
    assert "talk." in said
    assert remedy in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_the_command_itself(talk, tmp_path):
    arguments = ["score-audio", str(talk), "--out", str(tmp_path / "out"), "--data", str(tmp_path / "data")]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert "Page:" in found.output
    refused = CliRunner().invoke(app, [*arguments[:1], str(tmp_path / "no.wav"), *arguments[2:]])
    assert refused.exit_code == 2
