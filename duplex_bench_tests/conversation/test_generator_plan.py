"""Planned sessions: what the generator promises about its truth, and that the label engine finds it."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.conversation.generator_plan import PlannedSession, PlanSettings, plan_session, typical_timing
from duplex_bench.conversation.generator_script import ScriptDeck
from duplex_bench.conversation.label_accuracy import Accuracy, accuracy_by_kind
from duplex_bench.conversation.labels import label_conversation
from duplex_bench.storage.digests import generator_from

pytestmark = pytest.mark.unit

VOICES = {"left": "one", "right": "two"}
SPEAKERS = ("left", "right")


def planned(seed: int, **numbers: float) -> PlannedSession:
    return plan_session(generator_from("test-plan", seed), VOICES, settings=PlanSettings(**numbers))


@pytest.mark.parametrize("tolerance_s", [0.1, 0.25])
def test_label_engine_finds_what_was_planted(tolerance_s: float):
    totals: dict[str, Accuracy] = {}
    for seed in range(40):
        plan = planned(seed)
        labels = label_conversation(plan.track("left"), plan.track("right"))
        for kind, accuracy in accuracy_by_kind(labels, plan.events, tolerance_s).items():
            totals[kind] = totals.get(kind, Accuracy(0, 0, 0)) + accuracy
    assert set(totals) == {"turn", "pause", "backchannel", "overlap", "failed_take"}
    for accuracy in totals.values():
        assert accuracy.true >= 20
        assert accuracy.precision >= 0.95
        assert accuracy.recall >= 0.95


@given(st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_a_plan_keeps_its_promises(seed: int):
    plan = planned(seed)
    events = {kind: [event for event in plan.events if event.kind == kind] for kind in ("turn", "pause", "failed_take")}
    for pause in events["pause"]:
        assert 0.6 - 1e-6 <= pause.end_s - pause.start_s <= 2.3 + 1e-6
        assert any(
            turn.speaker == pause.speaker and turn.start_s < pause.start_s and pause.end_s < turn.end_s
            for turn in events["turn"]
        )
    for before, after in pairwise(events["turn"]):
        assert before.speaker != after.speaker
        assert -1.0 < after.start_s - before.end_s < 3.0
        said = [w for w in plan.track(after.speaker).words if after.start_s <= w.start_s < after.end_s]
        assert len(said) >= 5
    assert len(plan.facts) == 2
    assert {fact.speaker for fact in plan.facts} == set(SPEAKERS)
    for speaker in SPEAKERS:
        track = plan.track(speaker)
        assert all(one[1] < two[0] for one, two in pairwise(track.speech))
        assert all(one.end_s <= two.start_s + 1e-9 for one, two in pairwise(track.words))
        spoken_s = sum(end - start for start, end in track.speech)
        assert 0.2 < spoken_s / plan.duration_s < 0.65
        assert track.speech[-1][1] < plan.duration_s


def test_the_first_fact_is_stated_early_and_holds_its_answer():
    for seed in range(20):
        fact = planned(seed).facts[0]
        assert fact.end_s < 30
        assert fact.answer.split()[-1] in fact.statement
        assert fact.question.endswith("?")


def test_words_are_those_of_the_script():
    plan = planned(3)
    texts = {clip.text for clip in plan.clips}
    for text in texts:
        parts = sorted((clip for clip in plan.clips if clip.text == text), key=lambda clip: clip.start_s)
        spoken = [word.text for clip in parts for word in clip.words]
        assert spoken == text.split() * (len(spoken) // len(text.split()))


def test_conversations_are_not_alike():
    plans = [planned(seed) for seed in range(6)]
    sentences = [{clip.text for clip in plan.clips if len(clip.text.split()) > 6} for plan in plans]
    assert len(set().union(*sentences)) > 0.7 * sum(len(each) for each in sentences)
    assert len({plan.topics for plan in plans}) > 3


def test_the_same_seed_gives_the_same_plan_and_another_another():
    assert planned(1) == planned(1)
    assert planned(1) != planned(2)


def test_without_pauses_or_overlaps_there_are_none():
    kinds = {event.kind for event in planned(5, pauses_per_turn=0.0, overlap_share=0.0, backchannel_share=0.0).events}
    assert kinds == {"turn"}


def test_a_deck_repeats_no_sentence_before_all_are_dealt():
    deck = ScriptDeck(generator_from("deck"), n_topics=2)
    dealt = [deck.statement() for _ in range(28)]
    assert len(set(dealt)) == 28
    assert not any("{" in text for text in dealt)


def test_typical_timing_has_a_start_for_each_word():
    timing = typical_timing("one two three", "any")
    assert len(timing.word_starts_s) == 3
    assert timing.word_starts_s[0] == 0.0
    assert timing.word_starts_s[-1] < timing.duration_s
