"""The point judge: what it reads around a point, and what becomes of its answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from duplex_bench.conversation.candidates import LabelledSession
from duplex_bench.conversation.curation import curate_session
from duplex_bench.conversation.curation_rules import CurationSettings
from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.conversation.point_judge import ModelPointJudge, Selection, selection_prompt, transcript_around
from duplex_bench.conversation.ranking import RankingSettings

pytestmark = pytest.mark.unit


def words(text, start_s):
    return [Word(word, start_s + 0.4 * n, start_s + 0.4 * n + 0.3) for n, word in enumerate(text.split())]


def session():
    """Left speaks with one pause of 1 s at 4.3 s; right answers."""
    left = [*words("so we went to the market early in the day", 0.0), *words("and bought all the bread", 5.3)]
    right = words("that sounds like a lovely morning", 8.0)
    labels = [
        Label("left", "turn", 0.0, 7.5, "rule", 1.0),
        Label("left", "pause", 3.9, 5.3, "rule", 1.0),
        Label("right", "turn", 8.0, 10.5, "rule", 1.0),
    ]
    gate = {"left": np.array([[0.0, 3.9], [5.3, 7.5]]), "right": np.array([[8.0, 10.5]])}
    return LabelledSession("s", labels, {"left": left, "right": right}, gate)


class Model:
    def __init__(self, value, reason=""):
        self.settings = SimpleNamespace(name="test/model")
        self.value, self.reason, self.asked = value, reason, []

    def ask(self, request, kind, subject=""):
        self.asked.append(request.turns[0].text)
        return SimpleNamespace(value=self.value, reason=self.reason)


def curated(model):
    return curate_session(session(), CurationSettings(), RankingSettings(), ModelPointJudge(model))


def test_the_prompt_does_not_change_silently():
    found = selection_prompt()
    assert (found.version, found.sha256) == (1, "2eb5a831bd4655ae9930caaee3db35cfc448c6a298b9595ce08c175769c37397")


def test_it_reads_the_turns_around_the_mark_and_who_speaks():
    model = Model(Selection(reason="none", temptation=7))
    found = curated(model)
    assert {point.kind for point in found.points} == {"pause", "turn_end"}
    told = transcript_around(next(point for point in found.points if point.kind == "pause"), session())
    assert told.splitlines()[0].startswith("user: so we went")
    assert "day [HERE] and bought" in told
    assert "listener: that sounds" in told
    assert any("a pause of 1.4 s" in text for text in model.asked)
    assert [point.judge_score for point in found.points] == [0.7, 0.7]


@pytest.mark.parametrize(
    "selection",
    [
        Selection(reason="hands_over", temptation=9),
        Selection(reason="none", temptation=0),
    ],
)
def test_a_rejection_and_a_score_of_zero_are_never_selected(selection):
    found = curated(Model(selection))
    assert found.points == ()
    assert [one.rule for one in found.rejections if one.stage == "judge"] == ["judge_zero", "judge_zero"]


def test_an_answer_that_cannot_be_read_keeps_the_point_without_a_score():
    found = curated(Model(None, "unreadable"))
    assert [point.judge_score for point in found.points] == [None, None]
