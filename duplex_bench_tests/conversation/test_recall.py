"""Recall probes: prefixes, dropped questions, identity prompts, what a text model writes, and scoring of answers."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.conversation.recall import (
    RecallFact,
    RecallSettings,
    dropped_by,
    general_question,
    general_questions,
    leaks_label,
    prefix_end,
    question_of,
    template_identity,
    transcript_of,
)
from duplex_bench.conversation.recall_scoring import recall_question, score_recall
from duplex_bench.conversation.recall_writing import (
    PROMPTS,
    Guess,
    Specific,
    WrittenFact,
    WrittenIdentity,
    guess_without_conversation,
    recall_prompt,
    written_facts,
    written_identity,
)
from duplex_bench.conversation.scoring import ScoringSettings
from duplex_bench.judging import embedded_judge
from duplex_bench.judging.strict import matches
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.score import Judgement

pytestmark = pytest.mark.unit

SETTINGS = RecallSettings(enabled=True)
# A changed prompt needs a new version: what was written by other words is not comparable.
KNOWN_PROMPTS = {
    "identity": (1, "8f5253e3934c2750a98080002de8988e6700a6e91602e0f6bfc769588e5a4080"),
    "recall_fact": (1, "ad8fad25eae72e1f3875624b9759d0bc524a0e9179ca96a85723f6b355b5aeef"),
    "specificity": (1, "ce649fc37e54320cc30284140328e0dcce66bf1cc89c06fdf6b13068528a66cb"),
    "answer_alone": (1, "57b89b8176200f2047abd80d3dc7c7376309a8dfac98dc2ab7061ff5b757c76e"),
    "answer_from_text": (1, "367c569623a7fcb9ce53fe2bf58847f3cf6a11078b9b3976415c0b9710af745b"),
}


def turn(speaker, start_s, end_s):
    return Label(speaker, "turn", start_s, end_s, "rule", 1.0)


LABELS = [turn("left", 0.0, 12.0), turn("right", 12.5, 24.0), turn("left", 25.0, 41.0), turn("right", 41.5, 70.0)]


def words(text, start_s):
    return [Word(word, start_s + 0.4 * n, start_s + 0.4 * n + 0.3) for n, word in enumerate(text.split())]


WORDS = {"left": words("my cousin is moving to Lisbon in May", 1.0), "right": words("oh that is lovely", 13.0)}


def fact(question="Where is my cousin moving to?", answer="Lisbon", end_s=4.0):
    return RecallFact("s", "left", question, answer, "moving to Lisbon", 1.0, end_s, "planted")


def test_no_prompt_changes_silently():
    found = {name: (recall_prompt(name).version, recall_prompt(name).sha256) for name in PROMPTS}
    assert found == KNOWN_PROMPTS


@pytest.mark.parametrize(("target_s", "end_s"), [(10.0, None), (30.0, 24.0), (41.0, 41.0), (60.0, 41.0), (90.0, None)])
def test_a_prefix_ends_with_the_last_turn_that_is_over(target_s, end_s):
    assert prefix_end(LABELS, target_s, 80.0) == end_s


@given(st.floats(0.1, 200.0), st.floats(0.1, 200.0))
def test_a_longer_target_never_gives_a_shorter_prefix(a, b):
    short, long = (prefix_end(LABELS, target, 300.0) or 0.0 for target in sorted((a, b)))
    assert short <= long <= max(a, b)


@pytest.mark.parametrize(
    ("question", "leaks"),
    [
        ("What did Speaker 1 buy?", True),
        ("What did the assistant say?", True),
        ("Did participant two move?", True),
        ("Was it P0012 who left?", True),
        ("What did I tell you about my cousin?", False),
        ("Who is the loudest speaker in your family?", False),
    ],
)
def test_labels_of_a_transcript_are_leaks(question, leaks):
    assert leaks_label(question) is leaks


def strict(gold, text):
    return matches(gold, text, 0.5)


@pytest.mark.parametrize(
    ("asked", "identity", "rule"),
    [
        (fact(), "You are calm.", ""),
        (fact(question="What did speaker two say?"), "", "leaks_speaker_label"),
        (fact(answer="it is"), "", "answer_without_content_words"),
        (fact(end_s=24.1), "", "fact_outside_first_prefix"),
        (fact(question="Is my cousin moving to Lisbon?"), "", "answerable_from_question_and_identity"),
        (fact(), "You often talk about Lisbon.", "answerable_from_question_and_identity"),
    ],
)
def test_questions_are_dropped_by_a_named_rule(asked, identity, rule):
    assert dropped_by(asked, LABELS, 80.0, SETTINGS, identity, strict) == rule


def test_a_question_keeps_its_id_whatever_dropped_it():
    assert question_of(fact(), "").question_id == question_of(fact(), "leaks_speaker_label").question_id


def test_general_questions_are_twelve_and_fall_on_conversations_by_hash():
    assert len(set(general_questions())) == 12
    asked = {general_question(f"s{n}", SETTINGS).question for n in range(200)}
    assert len(asked) == 12
    assert general_question("s1", SETTINGS) == general_question("s1", SETTINGS)


def test_the_template_tells_whose_speech_the_history_is_and_no_particular():
    prompt = template_identity("s", "left", WORDS)
    assert "your own speech" in prompt.text
    assert not matches("Lisbon", prompt.text, 0.5)
    assert prompt.source == "template/1"


def test_a_transcript_holds_only_turns_that_are_over():
    told = transcript_of(LABELS, WORDS, {"left": "A", "right": "B"}, 20.0)
    assert told == "A: my cousin is moving to Lisbon in May"


@pytest.mark.parametrize("bad", [{"lengths_s": ()}, {"lengths_s": (60.0, 30.0)}, {"min_share": {"fact_recall": 1.0}}])
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(ValueError, match="give"):
        RecallSettings(**bad)


class Model:
    """A text model that answers by kind of question."""

    def __init__(self, **answers):
        self.settings = SimpleNamespace(name="test/model")
        self.answers = answers
        self.asked = []

    def ask(self, request, kind, subject=""):
        self.asked.append(request.turns[0].text)
        value = self.answers.get(kind.__name__)
        return SimpleNamespace(value=value)


WRITTEN = WrittenFact(question="Where is my cousin moving to?", answer="Lisbon", evidence="moving to Lisbon")


def test_a_written_fact_is_placed_where_its_quote_was_said():
    model = Model(WrittenFact=WRITTEN, Specific=Specific(specific=True, reason="one answer"))
    found = written_facts(model, "s", LABELS, WORDS, 80.0, SETTINGS)
    assert {one.asker for one in found} == {"left", "right"}
    assert (found[0].start_s, found[0].end_s) == pytest.approx((2.2, 3.3))
    assert "asker: my cousin" in model.asked[0]


@pytest.mark.parametrize(
    ("written", "specific"),
    [
        (WRITTEN.model_copy(update={"evidence": "moving to Madrid"}), True),
        (WRITTEN, False),
        (WrittenFact(question="", answer="", evidence=""), True),
        (None, True),
    ],
)
def test_facts_that_were_not_said_or_are_not_specific_are_no_facts(written, specific):
    model = Model(WrittenFact=written, Specific=Specific(specific=specific, reason="why"))
    assert written_facts(model, "s", LABELS, WORDS, 80.0, SETTINGS) == []


def test_a_written_identity_gets_the_frame_and_none_is_none():
    written = written_identity(Model(WrittenIdentity=WrittenIdentity(note="You are calm.")), "s", "left", LABELS, WORDS)
    assert written.text.startswith("You are calm. What the assistant said")
    assert written_identity(Model(), "s", "left", LABELS, WORDS) is None


def test_a_guess_is_made_from_identity_and_question_alone():
    model = Model(Guess=Guess(answer="Paris"))
    assert guess_without_conversation(model, "s", "You are calm.", "Where?") == "Paris"
    assert "Lisbon" not in model.asked[0]
    assert guess_without_conversation(Model(), "s", "", "Where?") == ""


def recall_item(kind="conversation_recall", gold="a green parrot"):
    live = AudioSlice("blob", 0, 48_000, 24_000, "digest", 0)
    return Item(
        "i", "conversation", "s", kind, Stimulus("recall", live),
        Reference((Window("recall", "recall", 2.0, 2.0),), gold_answer=gold,
                  attributes={"question": "What animal?", "history_target_s": 60.0}),
        "CC0",
    )  # fmt: skip


def timed(text, start_s):
    return [TimedWord(word, start_s + 0.4 * n, start_s + 0.4 * n + 0.3) for n, word in enumerate(text.split())]


def scored(said, start_s=2.5, *, verdict=None, outcome=Outcome.COMPLETED, min_share=0.5, gold="a green parrot"):
    heard = timed(said, start_s)
    gate = [(heard[0].start_s, heard[-1].end_s)] if heard else []
    verdicts = {}
    if verdict is not None:
        verdicts = {"i:recall:recall_correctness": Judgement("q", "recall_correctness", 1, "j", verdict, "r", "")}
    found = score_recall(recall_item(gold=gold), gate, heard, verdicts, outcome=outcome, matches=matches,
                         min_share=min_share, settings=ScoringSettings())  # fmt: skip
    return {one.metric: one for one in found}


def values(found):
    return {metric: one.score.value for metric, one in found.items()}


def test_half_of_the_words_is_enough_for_conversation_recall_and_not_for_facts():
    assert values(scored("it was a parrot", verdict="correct")) == {
        "recall_answered": 1.0, "recall_strict": 1.0, "recall_correct": 1.0,
    }  # fmt: skip
    assert values(scored("it was a parrot", verdict="correct", min_share=1.0))["recall_strict"] == 0.0


def test_what_was_said_before_the_question_ended_is_no_answer():
    found = scored("a green parrot", start_s=0.2)
    assert values(found) == {"recall_answered": 0.0, "recall_strict": 0.0, "recall_correct": 0.0}


def test_no_audio_is_no_answer_and_a_lost_rollout_is_no_score():
    assert values(scored("", outcome=Outcome.NO_AUDIO))["recall_correct"] == 0.0
    lost = scored("", outcome=Outcome.TRANSPORT_ERROR)
    assert set(values(lost).values()) == {None}


def test_an_answer_that_was_not_judged_has_a_reason():
    found = scored("a parrot")
    assert found["recall_correct"].score.reason == "not judged"
    assert found["recall_strict"].score.value == 1.0


def test_the_judge_is_asked_about_answers_only_and_the_stand_in_takes_the_share_asked_for():
    settings = ScoringSettings()
    assert recall_question(recall_item(), [], [], 0.5, settings) is None
    heard = timed("it was a parrot", 2.5)
    question = recall_question(recall_item(), [(2.5, 4.0)], heard, 0.5, settings)
    assert embedded_judge.judge(question).verdict == "correct"
    question = recall_question(recall_item(), [(2.5, 4.0)], heard, 1.0, settings)
    assert embedded_judge.judge(question).verdict == "incorrect"
