"""A Seamless folder as the corpus of a profile: chosen by a list, by a part of disjoint speakers, or wrongly."""

import copy

import pytest

from duplex_bench.conversation.generator import CORPUS_FOLDER, GeneratorSettings, generate
from duplex_bench.speech import engines
from duplex_bench.stages import conversation, corpus

pytestmark = pytest.mark.unit


@pytest.fixture
def real(quick_engines, small_workspace, tmp_path):
    """Builds a workspace whose corpus is a folder of four sessions, with corpus settings changed."""
    settings = GeneratorSettings(n_sessions=4, minutes=0.5, sample_rate_hz=8000)
    generate(settings, engines.text_to_speech(), tmp_path / "seamless")
    small = small_workspace.__defaults__[0]

    def build(**changes):
        table = copy.deepcopy(small)
        table["conversation"]["corpus"] = {
            "kind": "seamless", "path": str(tmp_path / "seamless" / CORPUS_FOLDER), "min_duration_s": 10.0,
            "liveliness_top_share": 1.0, **changes,
        }  # fmt: skip
        return small_workspace(tmp_path / "data", table)

    return build


def keys(workspace):
    return [session.session_id for session in corpus.load(workspace).loaded.sessions]


def test_a_list_chooses_and_is_part_of_what_the_corpus_is(real, tmp_path):
    every = keys(real())
    assert len(every) == 4
    listed = tmp_path / "mine.txt"
    listed.write_text(f"{every[1]}\n{every[3]}\n")
    chosen = real(file_list=str(listed))
    assert keys(chosen) == [every[1], every[3]]
    before = corpus.digest(chosen)
    listed.write_text(f"{every[1]}\n")
    assert corpus.digest(chosen) != before
    kept = conversation.lively_sessions(chosen).frame
    assert kept["session_id"].to_list() == [every[1]]
    assert set(kept["licence"]) == {"CC BY-NC 4.0"}


def test_parts_share_no_speaker_and_together_are_the_corpus(real):
    shares = [["train", 0.5], ["test", 0.5]]
    parts = {name: corpus.load(real(part=name, parts=shares)).loaded.sessions for name, _ in shares}
    speakers = [
        {side.speaker_id for session in sessions for side in (session.left, session.right)}
        for sessions in parts.values()
    ]
    assert not speakers[0] & speakers[1]
    assert sorted(session.session_id for sessions in parts.values() for session in sessions) == keys(real())


def test_a_part_that_is_none_names_those_there_are(real):
    with pytest.raises(ValueError, match="there are train, dev, test"):
        corpus.load(real(part="tests"))
