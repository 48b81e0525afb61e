import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.cards import PAUSE_METRICS, PAUSE_SHARES, TURN_END_METRICS
from duplex_bench.conversation.measures import MeasureError
from duplex_bench.conversation.scoring import ScoringSettings, score_item
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.records.outcome import Outcome

pytestmark = pytest.mark.unit


class LetterVectors:
    """Unit vectors of letter counts: a stand-in whose cosines can be worked out by hand."""

    def embed(self, texts):
        rows = np.array([[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def scored(item, gate, words, outcome=Outcome.COMPLETED, timeline_s=20.0, vectors=None, **settings):
    found = score_item(
        item,
        gate,
        words,
        outcome=outcome,
        timeline_s=timeline_s,
        vectors=vectors,
        settings=ScoringSettings(**settings),
    )
    return {one.metric: one for one in found}


def values(found):
    return {metric: one.score.value for metric, one in found.items()}


def test_never_speak_is_exact(make_item):
    pause = values(scored(make_item("pause"), [], []))
    assert [pause[metric] for metric in PAUSE_SHARES] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert pause["takeover_latency"] is None
    turn = values(scored(make_item("turn_end"), [], [], outcome=Outcome.NO_AUDIO))
    assert (turn["response_rate"], turn["no_words"], turn["at_cap"]) == (0.0, 1.0, 0.0)
    assert turn["turn_end_latency"] is None


@pytest.mark.parametrize("phase", [0.0, 0.05, 0.1, 0.5, 0.9, 0.97])
def test_always_speak_is_exact_wherever_its_loop_stands(make_item, phase):
    # A loop of 1 s: speech with a dip of 100 ms, one interval after bridging.
    gate = [(start, start + 0.9) for start in np.arange(0, 40) + phase]
    words = [TimedWord("word", a + 0.1, a + 0.4) for a, _ in gate]
    pause = values(scored(make_item("pause"), gate, words, timeline_s=40))
    assert (pause["pause_takeover"], pause["takeover_latency"], pause["takeover_already_under_way"]) == (1.0, 0.0, 1.0)
    assert pause["first_word_from_pause_start"] == 0.0
    assert pause["first_word_from_pause_end"] == -1.0
    turn = values(scored(make_item("turn_end"), gate, words, timeline_s=40))
    assert turn["response_rate"] == 1.0
    assert turn["turn_end_latency"] <= 0
    assert turn["at_cap"] == 1.0


def test_a_takeover(make_item, timed):
    found = scored(make_item("pause"), [(5.3, 7.0)], timed(("okay", 5.4, 5.8), ("so", 6.2, 6.5)))
    result = values(found)
    assert result["pause_takeover"] == 1.0
    assert result["takeover_latency"] == pytest.approx(0.4)
    assert result["takeover_already_under_way"] == 0.0
    assert result["first_word_from_pause_end"] == pytest.approx(-0.6)
    assert found["takeover_latency"].at_s == 5.4
    details = found["takeover_latency"].details
    assert (details["gate_threshold"], details["gate_release_ratio"], details["gate_min_duration_s"]) == (
        0.01,
        0.5,
        0.08,
    )


def test_speech_after_the_pause(make_item, timed):
    result = values(scored(make_item("pause"), [(7.0, 8.0)], timed(("okay", 7.1, 7.4))))
    assert (result["pause_after"], result["pause_takeover"]) == (1.0, 0.0)
    assert result["first_word_from_pause_start"] == pytest.approx(2.1)
    assert result["first_word_from_pause_end"] == pytest.approx(1.1)


@pytest.mark.parametrize("kind", ["pause", "turn_end"])
@pytest.mark.parametrize("outcome", [Outcome.TRANSPORT_ERROR, Outcome.REFUSED, Outcome.PACING_VIOLATION])
def test_what_failed_is_a_reason_for_every_metric(make_item, timed, kind, outcome):
    found = scored(make_item(kind), [(5.0, 6.0)], timed(("yes", 5.1, 5.3)), outcome=outcome)
    assert set(found) == set(PAUSE_METRICS if kind == "pause" else TURN_END_METRICS)
    assert all(one.score.reason == f"rollout not scored: {outcome.value}" for one in found.values())


def test_no_audio_at_a_pause_is_its_own_share(make_item):
    result = values(scored(make_item("pause"), [], [], outcome=Outcome.NO_AUDIO))
    assert [result[metric] for metric in PAUSE_SHARES] == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_a_reply_against_the_persons(make_item, timed):
    item = make_item("turn_end", reply="well I went there last week", reply_duration_s=2.0)
    words = timed(("I", 6.0, 6.2), ("went", 6.2, 6.5), ("home", 7.0, 7.5))
    result = values(scored(item, [(5.9, 6.6), (6.9, 7.9)], words, vectors=LetterVectors()))
    assert result["turn_end_latency"] == pytest.approx(1.0)
    assert result["duration_ratio"] == pytest.approx(1.0)
    assert result["word_ratio"] == pytest.approx(0.5)
    assert result["token_f1"] == pytest.approx(2 * 2 / (3 + 6))
    a, b = LetterVectors().embed(["I went home", "well I went there last week"])
    assert result["cosine"] == pytest.approx(float(a @ b), abs=1e-6)
    assert (result["first_reply_duration"], result["resumptions"]) == (pytest.approx(2.0), 0.0)
    assert (result["response_rate"], result["no_words"], result["at_cap"]) == (1.0, 0.0, 0.0)


def test_the_persons_own_reply_scores_one(make_item, timed):
    item = make_item("turn_end", reply="well I went there", reply_duration_s=2.0)
    words = timed(("Well,", 5.5, 6.0), ("I", 6.0, 6.5), ("went", 6.5, 7.0), ("there.", 7.0, 7.5))
    result = values(scored(item, [(5.5, 7.5)], words, vectors=LetterVectors()))
    assert [result[m] for m in ("duration_ratio", "word_ratio", "token_f1")] == [1.0, 1.0, 1.0]
    assert result["cosine"] == pytest.approx(1.0, abs=1e-6)


def test_reasons_at_a_turn_end(make_item, timed):
    wordless = scored(make_item("turn_end"), [(6.0, 7.0)], [])
    assert wordless["no_words"].score.value == 1.0
    assert wordless["token_f1"].score.reason == "above-gate audio without words"
    below = scored(make_item("turn_end"), [], timed(("yes", 6.0, 6.4)))
    assert below["response_rate"].score.value == 1.0
    assert below["duration_ratio"].score.reason == "words, but no above-gate audio"
    assert below["cosine"].score.reason == "no text-vector engine is configured"
    assert scored(make_item("turn_end", reply=None), [(6, 7)], timed(("yes", 6.0, 6.4)))["word_ratio"].score.reason
    quiet = scored(make_item("turn_end", reply_duration_s=0.0), [(6, 7)], timed(("yes", 6.0, 6.4)))
    assert quiet["duration_ratio"].score.reason == "the human reply does not gate as speech"


def test_speech_over_by_the_turn_end_is_not_in_the_text(make_item, timed):
    words = timed(("mhm", 2.1, 2.4), ("great", 6.1, 6.5))
    found = scored(make_item("turn_end"), [(2.0, 2.5), (6.0, 6.6)], words)
    assert found["word_ratio"].details["response_text"] == "great"
    assert found["word_ratio"].score.value == pytest.approx(1 / 6)


def test_untimed_words_go_with_their_neighbours(make_item, timed):
    words = timed(("mhm", 2.1, 2.4), ("yes", None, None), ("great", 6.1, 6.5), ("news", None, None))
    found = scored(make_item("turn_end"), [(2.0, 2.5), (6.0, 6.6)], words)
    assert found["word_ratio"].details["response_text"] == "great news"
    leading = timed(("oh", None, None), ("great", 6.1, 6.5))
    assert scored(make_item("turn_end"), [(6.0, 6.6)], leading)["word_ratio"].details["response_text"] == "oh great"
    alone = scored(make_item("turn_end"), [(6.0, 6.6)], timed(("oh", None, None)))
    assert alone["response_rate"].score.value == 1.0
    assert alone["turn_end_latency"].score.reason == "no word of the response has a time"


def test_untimed_words_give_a_reason_only_where_they_could_decide(make_item, timed):
    item, untimed = make_item("pause"), ("um", None, None)
    decided = [
        ([(5.2, 5.6)], timed(("so", 5.2, 5.5), untimed), "pause_takeover"),
        ([(7.0, 8.0)], timed(("so", 7.2, 7.5), untimed), "pause_after"),
        ([(7.0, 8.0), (9.0, 10.0)], timed(("so", 7.2, 7.5), untimed), "pause_after"),
        ([(2.0, 3.0)], timed(untimed), "pause_silent"),
    ]
    for gate, words, metric in decided:
        assert scored(item, gate, words)[metric].score.value == 1.0
    for gate, words in (
        ([(5.2, 5.6), (7.0, 8.0)], timed(("so", 7.2, 7.5), untimed)),
        ([(7.0, 8.0)], timed(untimed)),
    ):
        assert all("no time" in one.score.reason for one in scored(item, gate, words).values())


def test_marks_are_not_words(make_item, timed):
    assert scored(make_item("pause"), [(5.2, 5.6)], timed(("...", 5.2, 5.5)))["pause_wordless"].score.value == 1.0


def test_other_items_are_refused(make_item):
    window = Window("w", "silence", 0.0, 1.0)
    item = make_item("pause")
    strange = Item(
        "x", "conversation", "c", "pause", Stimulus("pause", item.stimulus.live), Reference((window,)), "CC0-1.0"
    )
    with pytest.raises(MeasureError, match="'silence'"):
        scored(strange, [], [])
    with pytest.raises(MeasureError, match="one window"):
        scored(Item("x", "multiparty", "c", "explicit", strange.stimulus, strange.reference, "CC0-1.0"), [], [])


@given(
    edges=st.sets(st.integers(0, 1200), max_size=14),
    starts=st.lists(st.integers(0, 1200), max_size=6),
    outcome=st.sampled_from([Outcome.COMPLETED, Outcome.NO_AUDIO]),
)
def test_exactly_one_share_is_one_and_every_score_is_a_value_or_a_reason(edges, starts, outcome):
    ordered = [edge / 100 for edge in sorted(edges)]
    gate = list(zip(ordered[::2], ordered[1::2], strict=False))
    words = [TimedWord("so", start / 100, start / 100 + 0.2) for start in starts]
    live = Stimulus("pause", None)
    item = Item("i", "conversation", "c", "pause", live, Reference((Window("pause", "pause", 5.0, 6.0),)), "CC0-1.0")
    result = values(scored(item, gate, words, outcome=outcome))
    assert sorted(result[metric] for metric in PAUSE_SHARES) == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert (result["takeover_latency"] is not None) == (result["pause_takeover"] == 1.0)
    spoke = result["pause_takeover"] + result["pause_after"] == 1.0
    assert (result["first_word_from_pause_start"] is not None) == spoke
