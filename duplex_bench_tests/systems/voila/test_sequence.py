"""Voila's adapter in its environment: frame for frame, alignment, forced history, seeds, limits."""

import numpy as np
import pytest

from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, UnsupportedError
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems.conformance import check

pytestmark = [pytest.mark.voila, pytest.mark.timeout(3000)]

UNIT = 640
N_UNITS = 14
RATE = 16_000


@pytest.fixture
def units():
    noise = np.random.default_rng(0).standard_normal((N_UNITS, UNIT)) * 0.1
    return list(noise.astype(np.float32))


def feed(system, units, seed=3, **told):
    session = system.new_session()
    session.open(OpenRequest(seed=seed, stimulus_id="x", **told))
    outs = [session.step(unit) for unit in units]
    return outs, session.close()


def spoken(outs):
    return [next(out.pcm for out in call if out.kind == "audio") for call in outs]


def first_difference(one, other):
    pairs = enumerate(zip(spoken(one), spoken(other), strict=True))
    return next((call for call, (a, b) in pairs if not np.array_equal(a, b)), None)


def history(seconds, seed=0, words=()):
    n = round(seconds * RATE)
    user, own = (np.random.default_rng(seed).standard_normal((2, n)) * 0.1).astype(np.float32)
    return (HistoryPart("both", "", 0.0, seconds, user, own, words),)


def test_it_keeps_the_contract(voila):
    assert check(voila) == []


def test_every_frame_is_answered_by_a_frame_and_words_take_no_time(voila, units):
    outs, stats = feed(voila, units)
    assert [sum(out.kind == "audio" for out in call) for call in outs] == [1] * N_UNITS
    assert {len(pcm) for pcm in spoken(outs)} == {UNIT}
    assert (stats.units, stats.empty_steps) == (N_UNITS, 0)
    # The prompt takes eight positions; words and marks make the sequence longer than the audio.
    written = sum(out.kind != "audio" for call in outs for out in call)
    assert stats.extra["positions"] >= 8 + N_UNITS + written
    assert max(np.abs(pcm).max() for pcm in spoken(outs)) > 0.01


# Beyond the first eight frames: a random codec tells the start of its window from the rest, and little else.
@pytest.mark.parametrize("unit", [9, 11])
def test_what_is_heard_first_changes_the_frame_after_it(voila, units, unit):
    """With one seed the draws are the same: over some seeds, the earliest change is one frame later, never before."""
    other = list(units)
    other[unit] = (np.random.default_rng(9).standard_normal(UNIT) * 0.5).astype(np.float32)
    found = [first_difference(feed(voila, units, seed)[0], feed(voila, other, seed)[0]) for seed in range(3)]
    assert min(one for one in found if one is not None) == unit + 1


def test_one_seed_one_output_and_another_seed_another(voila, units):
    first, again, other = (feed(voila, units, seed)[0] for seed in (3, 3, 4))
    assert first_difference(first, again) is None
    assert first_difference(first, other) is not None


def test_prompt_and_history_change_what_is_said(voila, units):
    plain = feed(voila, units)[0]
    assert first_difference(plain, feed(voila, units, prompt=Prompt(text="You are Bo."))[0]) is not None
    told, stats = feed(voila, units, history=history(1.0))
    assert first_difference(plain, told) is not None
    # 25 frames of history, and neither took a unit of the stream.
    assert stats.units == N_UNITS
    assert len(told) == N_UNITS
    assert first_difference(told, feed(voila, units, history=history(1.0, seed=1))[0]) is not None


def test_a_history_that_is_no_whole_number_of_frames_ends_where_the_stream_begins(voila, units):
    whole, odd = history(1.0), history(0.99)
    first, second = feed(voila, units, history=whole)[1], feed(voila, units, history=odd)[1]
    assert first.extra["positions"] > 8 + 25
    assert second.extra["positions"] > 8 + 25


def test_greedy_sampling_needs_no_seed_and_unknown_options_are_refused(voila, units):
    greedy = {"top_k": 1, "audio_top_k": 1}
    one, other = (feed(voila, units, seed, sampling=greedy)[0] for seed in (1, 2))
    assert first_difference(one, other) is None
    with pytest.raises(UnsupportedError, match="unknown: temp"):
        feed(voila, units, sampling={"temp": 0.5})


def test_what_it_cannot_take_it_refuses(voila, units):
    sound = np.zeros(RATE, dtype=np.float32)
    for told in (
        {"prompt": Prompt(voice="x")},
        {"history": (HistoryPart("user", "Hello.", 0.0, 1.0),)},
        {"history": (HistoryPart("user", "", 0.0, 1.0, sound),)},
        {"history": history(0.5) + history(0.5)},
    ):
        with pytest.raises(UnsupportedError):
            feed(voila, units, **told)


def test_a_rollout_is_made_of_it(voila):
    live = (np.random.default_rng(2).standard_normal(24_000) * 0.1).astype(np.float32)
    result = run(voila, OpenRequest(5, "x"), live, 24_000, StreamPlan(0.5))
    assert result.outcome is Outcome.COMPLETED
    assert result.sample_rate_hz == RATE
    assert len(result.listener) == round(1.5 * RATE)
    first = next(event for event in result.events if event["kind"] == "audio")
    assert (first["start_s"], first["model_time_s"]) == (0.0, 0.0)


def test_words_of_a_history_are_written_at_their_frames(voila, units):
    """Each letter is a position of its own on these weights; a stretch of words has two marks."""
    told = (("yes", 0.2, 0.4), ("no", 0.5, 0.6))
    bare, written = (feed(voila, [], history=history(1.0, words=words))[1].extra["positions"] for words in ((), told))
    # A space before each word, as in a sentence.
    assert written == bare + len(" yes no") + 2
    outs, _ = feed(voila, units, history=history(1.0, words=told))
    later, _ = feed(voila, units, history=history(1.0, words=(told[0], ("no", 0.7, 0.8))))
    assert first_difference(outs, later) is not None
    assert {"force_history", "word_times"} <= voila.spec.capabilities
