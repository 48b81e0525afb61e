"""What a run is said to take before there is anything of it."""

from dataclasses import replace

import pytest

from duplex_bench.stages.planning import Estimate, detectable_difference, estimate, planned_items, wall_s
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit


@pytest.fixture
def paper(tmp_path):
    return Workspace(tmp_path, load_profile("paper"))


def card(name):
    return load_cards(None, plug_ins=False).cards[name].card


def test_before_items_exist_a_paper_run_has_the_papers_sizes(paper):
    assert planned_items(paper, "multiparty") == 4000
    # 300 pauses, 300 turn ends, 184 conversation-recall and 300 fact-recall points.
    assert planned_items(paper, "conversation") == 1084
    assert "176 clusters" in detectable_difference(paper, "conversation")
    found = estimate(paper, "conversation", card("gpt-realtime-500ms"))
    assert found.items == 2 * 1084
    scenes = estimate(paper, "multiparty", card("gpt-realtime-500ms"))
    # 100 s of conversation each, preamble and end beside it, in two repeats.
    assert scenes.audio_minutes / 8000 * 60 == pytest.approx(115.0)


def test_recall_and_repeats_are_counted_only_where_the_profile_has_them(paper):
    conversation = paper.profile.conversation
    without = replace(conversation, recall=replace(conversation.recall, enabled=False))
    workspace = replace(paper, profile=replace(paper.profile, conversation=without))
    assert planned_items(workspace, "conversation") == 600
    limited = replace(paper, profile=replace(paper.profile, limit=10))
    assert estimate(limited, "conversation", card("never-speak")).items == 20


def test_turns_of_history_are_guessed_where_a_vendor_is_paid(paper):
    assert estimate(paper, "conversation", card("grok-voice")).text_items == pytest.approx(2168 * 25.7, rel=0.01)
    assert estimate(paper, "conversation", card("never-speak")).text_items == 0
    assert estimate(paper, "multiparty", card("grok-voice")).text_items == 0


@pytest.mark.parametrize(
    ("name", "changes", "low", "high"),
    [
        # Four sessions at a time stream 600 to 900 s; two processes compute 60 to 240 s.
        ("gpt-realtime-500ms", {}, 150 + 30, 225 + 120),
        ("gpt-realtime-500ms", {"max_inflight": 60}, 10 + 30, 15 + 120),
        ("loopback-openai-500ms", {}, 30, 120),
        ("cascade-500ms", {}, 30, 120),
        # In an environment of its own a worker computes by itself.
        ("moshi", {}, 60, 240),
    ],
)
def test_time_by_the_clock_is_that_of_the_stream_where_it_is_real_time(name, changes, low, high):
    found = Estimate(10, 0, 15.0, 60.0, 240.0, live_s=600.0, listened_s=900.0)
    assert wall_s(found, card(name).model_copy(update=changes), 2) == pytest.approx((low, high))
