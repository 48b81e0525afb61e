"""Conversation metrics return what was planted: at pauses, at turn ends, for the reference policies.

Tolerances: the gate opens up to 20 ms early (docs/embedded-models.md); words are placed by forced alignment, here to
within 0.15 s of the first sample of a word.
"""

import polars as pl
import pytest

from duplex_bench.stages import summary
from duplex_bench.stages.items import items_of

pytestmark = pytest.mark.engine

TRACK = "conversation"
SHARES = ("pause_silent", "pause_wordless", "pause_takeover", "pause_after", "pause_no_audio")
WORD_TOLERANCE_S = 0.15
LENGTH_TOLERANCE_S = 0.1
REPLY = "The second one was much better than the first one."


def at_pauses(**by_kind):
    """A plan that depends on the item's one window."""

    def plan(item):
        (window,) = item.reference.windows
        return by_kind[window.kind](window.start_s, window.end_s)

    return plan


@pytest.fixture(scope="module")
def reply(chain):
    return chain.voice.says(REPLY)


@pytest.fixture(scope="module")
def plans(chain, reply):
    voice = chain.voice
    one_word = voice.says("Absolutely.")
    short = voice.says("Yes, I know.")
    half_s = len(one_word) / 24_000 / 2
    return {
        "crosses": at_pauses(
            # One word, half of it before the pause: its interval overlaps the pause.
            pause=lambda start, _: [(start - half_s, one_word)],
            turn_end=lambda end, _: [(end + 0.8, reply)],
        ),
        "takes-over": at_pauses(
            pause=lambda start, _: [(start + 0.3, short)],
            turn_end=lambda end, _: [(end - 0.5, reply)],
        ),
        "after": at_pauses(
            pause=lambda _, end: [(end + 0.1, short)],
            turn_end=lambda end, _: [(end, reply)],
        ),
        "hums": at_pauses(
            pause=lambda start, _: [(start + 0.1, voice.hums(0.4))],
            turn_end=lambda end, _: [(end + 0.5, voice.hums(1.0))],
        ),
        "before": at_pauses(
            pause=lambda start, _: [(start - 0.1 - len(short) / 24_000, short)],
            turn_end=lambda end, _: [(end + 0.5, voice.talks(31.0))],
        ),
        "last-moment": at_pauses(
            pause=lambda _, end: [(end - 0.1, short)],
            turn_end=lambda end, _: [(end + 0.5, reply), (end + 0.5 + len(reply) / 24_000 + 1.5, short)],
        ),
    }


@pytest.fixture(scope="module")
def few(points):
    """Two pauses and two turn ends: the shortest live streams of each."""
    return points.sort("live_s").group_by("condition", maintain_order=True).head(2)


@pytest.fixture(scope="module")
def windows(few):
    return {item.item_id: item.reference.windows[0] for item in items_of(few).values()}


@pytest.fixture(scope="module")
def scored(chain, few, plans, scores_of):
    return {
        name: scores_of(chain.measure(TRACK, few, chain.plant(f"point-{name}", few, plan)))
        for name, plan in plans.items()
    }


def values(found, windows, kind, metric):
    """Values of a metric over the items of a kind, with the window of each."""
    return [(found.value(metric, kind, item_id), window) for item_id, window in windows.items() if window.kind == kind]


@pytest.mark.parametrize(
    ("system", "outcome"),
    [
        ("crosses", "pause_takeover"),
        ("takes-over", "pause_takeover"),
        ("last-moment", "pause_takeover"),
        ("after", "pause_after"),
        ("hums", "pause_wordless"),
        ("before", "pause_silent"),
    ],
)
def test_what_happened_at_the_pause(scored, windows, system, outcome):
    for metric in SHARES:
        assert {value for value, _ in values(scored[system], windows, "pause", metric)} == {float(metric == outcome)}


@pytest.mark.parametrize(
    ("system", "latency_s", "under_way"),
    [
        ("crosses", lambda _: 0.0, 1.0),
        ("takes-over", lambda _: 0.3, 0.0),
        ("last-moment", lambda pause: pause - 0.1, 0.0),
    ],
)
def test_takeover_latency(scored, windows, system, latency_s, under_way):
    for value, window in values(scored[system], windows, "pause", "takeover_latency"):
        assert value == pytest.approx(latency_s(window.end_s - window.start_s), abs=WORD_TOLERANCE_S)
    assert {value for value, _ in values(scored[system], windows, "pause", "takeover_already_under_way")} == {under_way}


def test_first_word_after_the_pause(scored, windows):
    for value, _ in values(scored["after"], windows, "pause", "first_word_from_pause_end"):
        assert value == pytest.approx(0.1, abs=WORD_TOLERANCE_S)
    for value, window in values(scored["last-moment"], windows, "pause", "first_word_from_pause_end"):
        assert value == pytest.approx(-0.1, abs=WORD_TOLERANCE_S)
        assert value > window.start_s - window.end_s


def test_speech_that_was_over_by_the_pause_is_flagged(scored, windows):
    for item_id, window in windows.items():
        if window.kind == "pause":
            assert scored["before"].details("pause_silent", "pause", item_id)["spoke_before"] is True
            assert scored["takes-over"].details("pause_silent", "pause", item_id)["spoke_before"] is False


@pytest.mark.parametrize(
    ("system", "latency_s"), [("crosses", 0.8), ("takes-over", -0.5), ("after", 0.0), ("last-moment", 0.5)]
)
def test_turn_end_latency(scored, windows, system, latency_s):
    found = values(scored[system], windows, "turn_end", "turn_end_latency")
    assert len(found) == 2
    for value, _ in found:
        assert value == pytest.approx(latency_s, abs=WORD_TOLERANCE_S)
    assert {value for value, _ in values(scored[system], windows, "turn_end", "response_rate")} == {1.0}
    assert {value for value, _ in values(scored[system], windows, "turn_end", "at_cap")} == {0.0}


def test_duration_and_word_ratios(scored, few, reply):
    replies = {item.item_id: item.reference.human_reply for item in items_of(few).values()}
    for item_id, human in replies.items():
        if human is None:
            continue
        ratio = scored["crosses"].value("duration_ratio", "turn_end", item_id)
        assert ratio * human.duration_s == pytest.approx(len(reply) / 24_000, abs=LENGTH_TOLERANCE_S)
        assert scored["crosses"].value("word_ratio", "turn_end", item_id) * human.n_words == pytest.approx(10)
        assert scored["crosses"].details("word_ratio", "turn_end", item_id)["response_text"]


def test_a_second_reply_is_a_resumption(scored, windows, reply):
    assert {value for value, _ in values(scored["last-moment"], windows, "turn_end", "resumptions")} == {1.0}
    assert {value for value, _ in values(scored["crosses"], windows, "turn_end", "resumptions")} == {0.0}
    for value, _ in values(scored["last-moment"], windows, "turn_end", "first_reply_duration"):
        assert value == pytest.approx(len(reply) / 24_000, abs=LENGTH_TOLERANCE_S)


def test_still_speaking_at_the_cap(scored, windows):
    assert {value for value, _ in values(scored["before"], windows, "turn_end", "at_cap")} == {1.0}


def test_wordless_audio_is_no_response(scored, windows):
    found = scored["hums"]
    assert {value for value, _ in values(found, windows, "turn_end", "response_rate")} == {0.0}
    assert {value for value, _ in values(found, windows, "turn_end", "no_words")} == {1.0}
    for item_id, window in windows.items():
        if window.kind == "turn_end":
            assert found.value("turn_end_latency", "turn_end", item_id) is None
            assert "without words" in found.reason("turn_end_latency", "turn_end", item_id)


@pytest.mark.parametrize("name", ["never-speak", "always-speak"])
def test_reference_policies_come_out_exactly(chain, few, policies, name):
    """Design 15.7, through rollouts, gate, recogniser, scores and statistics."""
    found = chain.measure(TRACK, few, policies[name])
    estimates, _ = summary.aggregate(chain.workspace, TRACK, {name: found}, None)
    known = {
        metric: set(rows["estimate"])
        for (metric,), rows in estimates.frame.filter(pl.col("estimate").is_not_null()).group_by("metric")
    }
    speaks = name == "always-speak"
    assert known["pause_silent"] == {float(not speaks)}
    assert known["pause_takeover"] == {float(speaks)}
    assert known.get("takeover_latency") == ({0.0} if speaks else None)
    assert known["response_rate"] == {float(speaks)}
    assert known["at_cap"] == {float(speaks)}
    if speaks:
        assert max(known["turn_end_latency"]) <= 0.0
