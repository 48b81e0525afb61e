import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.bounds import ceiling_measurements, floor_measurements, floor_pairs, human_measurements
from duplex_bench.conversation.cards import PAUSE_METRICS, TURN_END_METRICS

pytestmark = pytest.mark.unit

REPLIES = {"a": "we went to the lake", "b": "that is a lot of money", "c": "we went home to rest"}


class OneHot:
    """Equal texts are parallel, different texts orthogonal."""

    def embed(self, texts):
        names = sorted(set(texts))
        return np.array([[float(text == name) for name in names] for text in texts], dtype=np.float32)


@pytest.fixture
def items(make_item):
    return [make_item("turn_end", item_id=name, reply=text) for name, text in REPLIES.items()]


def test_floor_pairs_each_with_another_of_its_conversation(items, make_item):
    lonely = make_item("turn_end", item_id="d", cluster="session-2")
    pairs = floor_pairs([*items, lonely, make_item("pause", item_id="p")])
    assert set(pairs) == {"a", "b", "c", "d"}
    assert pairs["d"] is None
    assert sorted(pairs[name] for name in "abc") == ["a", "b", "c"]
    assert all(pairs[name] != name for name in "abc")


def test_floor_scores_by_hand(items, make_item):
    lonely = make_item("turn_end", item_id="d", cluster="session-2")
    found = {(one.item_id, one.metric): one for one in floor_measurements([*items, lonely], OneHot())}
    assert len(found) == 8
    shared = {frozenset("ab"): 0, frozenset("ac"): 3, frozenset("bc"): 0}
    for name in "abc":
        one = found[name, "token_f1"]
        partner = one.details["partner"]
        words = len(REPLIES[name].split()) + len(REPLIES[partner].split())
        assert one.score.value == pytest.approx(2 * shared[frozenset((name, partner))] / words)
        assert found[name, "cosine"].score.value == 0.0
    assert found["d", "token_f1"].score.reason == "no other turn end in the conversation"


@given(st.sets(st.integers(0, 999), min_size=3, max_size=20), st.integers(0, 5))
def test_an_item_that_goes_changes_one_pair(names, seed):
    from duplex_bench.records.items import HumanReply, Item, Reference, Stimulus, Window

    def build(number):
        window = Window("turn_end", "turn_end", 5.0, 5.0)
        reference = Reference((window,), human_reply=HumanReply("yes it is", 1.0, 3))
        return Item(f"i{number}", "conversation", "c", "turn_end", Stimulus("turn_end", None), reference, "CC0-1.0")

    items = [build(number) for number in sorted(names)]
    before, after = floor_pairs(items, seed), floor_pairs(items[1:], seed)
    assert sum(before[name] != after[name] for name in after) == 1
    assert before == floor_pairs(items[::-1], seed)


def test_ceiling(items, timed):
    heard = {"a": timed(*[(word, 0.0, 0.1) for word in ("We", "went", "to", "a", "lake.")]), "b": []}
    found = {(one.item_id, one.metric): one.score for one in ceiling_measurements(items, heard, OneHot())}
    assert found["a", "token_f1"].value == pytest.approx(0.8)
    assert found["b", "token_f1"].reason == "the recogniser found no words in the human reply"
    assert found["c", "cosine"].reason == "the human reply was not transcribed"


def test_the_person_holds_every_pause_and_takes_every_turn(make_item):
    found = human_measurements([make_item("pause"), make_item("turn_end", item_id="t", reply_delay_s=0.4)])
    pause = {one.metric: one.score.value for one in found if one.item_id == "item-1"}
    turn = {one.metric: one.score.value for one in found if one.item_id == "t"}
    assert set(pause) == set(PAUSE_METRICS)
    assert set(turn) == set(TURN_END_METRICS)
    assert (pause["pause_silent"], pause["pause_takeover"], pause["takeover_latency"]) == (1.0, 0.0, None)
    assert (turn["response_rate"], turn["duration_ratio"], turn["turn_end_latency"]) == (1.0, 1.0, 0.4)
    assert turn["resumptions"] is None
