"""A recording that gives no score says so, and why: on the page, in the tables and to the command line."""

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from duplex_bench.audio.files import AudioFileError, read
from duplex_bench.cli.main import app
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages.score_audio import score_audio

pytestmark = pytest.mark.unit

RATE = 16_000


def recording(folder, seconds, level):
    noise = np.random.default_rng(1).uniform(-level, level, (round(seconds * RATE), 2))
    soundfile.write(folder / "both.wav", noise, RATE)
    (folder / "labels.json").write_text('{"user": {"words": []}, "system": {"words": []}}')
    return folder / "both.wav", folder / "labels.json"


@pytest.mark.parametrize(
    ("seconds", "level", "said"),
    [
        (5.0, 0.0, "no speech was found on the channel of the user and of the system"),
        (0.006, 0.3, "the recording lasts 0.006 s, and a turn of the user at least 1 s"),
    ],
)
def test_nothing_scored_is_told_with_the_reason(tmp_path, seconds, level, said):
    audio, labels = recording(tmp_path, seconds, level)
    found = score_audio(audio, None, labels, tmp_path / "out", tmp_path / "data")
    assert found.empty.startswith("nothing could be scored: ")
    assert said in found.empty
    assert "Nothing could be scored" in found.index.read_text()
    assert said in load_run(tmp_path / "out")["notes"]["note"][0]
    shown = CliRunner().invoke(
        app,
        ["score-audio", str(audio), "--labels", str(labels), "--out", str(tmp_path / "again"), "--data",
         str(tmp_path / "data")],
    )  # fmt: skip
    assert shown.exit_code == 0
    assert "nothing could be scored" in shown.output


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(AudioFileError, match="is a folder; name a recording in it"):
        read(tmp_path)
