"""The vendor's package frame by frame: alignment, determinism, forced history, limits."""

import numpy as np
import pytest

from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, RemoteSystemError, UnsupportedError
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems.conformance import check
from duplex_bench.systems.environments import open_system

pytestmark = [pytest.mark.moshi, pytest.mark.timeout(3000)]

UNIT = 1920
N_UNITS = 16


@pytest.fixture
def units():
    noise = np.random.default_rng(0).standard_normal((N_UNITS, UNIT)) * 0.1
    return list(noise.astype(np.float32))


def feed(system, units, seed=3, **told):
    session = system.new_session()
    session.open(OpenRequest(seed=seed, stimulus_id="x", **told))
    outs = [session.step(unit) for unit in units]
    return outs, session.close()


def heard(outs):
    return [next((out.pcm for out in call if out.kind == "audio"), None) for call in outs]


def first_difference(one, other):
    pairs = enumerate(zip(heard(one), heard(other), strict=True))
    return next((call for call, (a, b) in pairs if (a is None) != (b is None) or not np.array_equal(a, b)), None)


def history(seconds, seed=0, words=()):
    n = round(seconds * 24_000)
    user, own = (np.random.default_rng(seed).standard_normal((2, n)) * 0.1).astype(np.float32)
    return (HistoryPart("both", "", 0.0, seconds, user, own, words),)


def test_it_conforms(moshi):
    assert check(moshi) == []


def test_one_frame_out_for_each_in_after_the_priming_one(moshi, units):
    outs, stats = feed(moshi, units)
    assert [len(pcm) if pcm is not None else 0 for pcm in heard(outs)] == [0] + [UNIT] * (N_UNITS - 1)
    assert (stats.units, stats.empty_steps) == (N_UNITS, 1)
    assert stats.context_used_s == pytest.approx(N_UNITS * 0.08)
    assert any(pcm is not None and np.abs(pcm).max() > 0.01 for pcm in heard(outs))


def test_what_is_heard_first_changes_the_frame_beside_it(moshi, units):
    """Acoustic codes of the frame returned with it: shift 0 in model time, which is what the spec declares.

    Only the semantic code of a sound acts at once; where two sounds share it, the change shows in the next frame.
    """
    later = []
    for unit in range(1, 10):
        heard_until = units[: unit + 3]
        changed = list(heard_until)
        changed[unit] = (np.random.default_rng(unit).standard_normal(UNIT) * 0.3).astype(np.float32)
        first = first_difference(feed(moshi, heard_until)[0], feed(moshi, changed)[0])
        assert first is not None
        later.append(first - unit)
    assert set(later) <= {0, 1}
    assert later.count(0) >= 2
    assert moshi.spec.model_shift_units == 0


def test_the_priming_frame_is_lost_whatever_it_holds(moshi, units):
    loud = [np.full(UNIT, 0.5, dtype=np.float32), *units[1:]]
    quiet = [np.zeros(UNIT, dtype=np.float32), *units[1:]]
    codes = [pcm is None for pcm in heard(feed(moshi, loud)[0])]
    assert codes == [pcm is None for pcm in heard(feed(moshi, quiet)[0])] == [True] + [False] * (N_UNITS - 1)


def test_the_seed_decides_and_a_session_knows_nothing_of_the_one_before(moshi, units):
    first, _ = feed(moshi, units)
    feed(moshi, [unit * 2 for unit in units], seed=8, history=history(0.5))
    again, _ = feed(moshi, units)
    assert first_difference(first, again) is None
    assert first_difference(first, feed(moshi, units, seed=4)[0]) == 1


def test_another_process_gives_the_same_bytes(moshi, moshi_card, moshi_cache, units):
    with open_system(moshi_card, cache_folder=moshi_cache) as other:
        assert first_difference(feed(moshi, units)[0], feed(other, units)[0]) is None


def test_greedy_is_the_same_for_every_seed(moshi, units):
    greedy = {"sampling": {"use_sampling": False}}
    assert first_difference(feed(moshi, units, seed=1, **greedy)[0], feed(moshi, units, seed=2, **greedy)[0]) is None


def test_a_forced_history_replaces_the_priming_frame_and_is_remembered(moshi, units):
    # That every forced token came back as it was forced is checked by the adapter itself, frame by frame.
    told = history(1.0, words=(("hello there", 0.2, 0.7),))
    outs, stats = feed(moshi, units, history=told)
    assert [pcm is None for pcm in heard(outs)] == [True] + [False] * (N_UNITS - 1)
    # 1 s is 12.5 frames: 13 whole ones, the priming one, and the stream without its own.
    assert stats.context_used_s == pytest.approx((13 + 1 + N_UNITS - 1) * 0.08)
    other = history(1.0, seed=1, words=(("hello there", 0.2, 0.7),))
    assert first_difference(outs, feed(moshi, units, history=other)[0]) == 1
    said = history(1.0, words=(("talk about no", 0.2, 0.7),))
    assert first_difference(outs, feed(moshi, units, history=said)[0]) is not None
    assert first_difference(outs, feed(moshi, units, history=told)[0]) is None


def test_when_a_word_was_said_is_remembered(moshi, moshi_card, units):
    early, late = (
        feed(moshi, units, history=history(1.0, words=(("hello", 0.1, 0.3), ("no", start_s, start_s + 0.1))))[0]
        for start_s in (0.66, 0.9)
    )
    assert first_difference(early, late) is not None
    assert moshi_card.word_times
    assert "word_times" in moshi.spec.capabilities


def test_words_without_a_frame_left_are_told(moshi, units):
    _, stats = feed(moshi, units[:2], history=history(0.8, words=(("hello there how are you", 0.6, 0.8),)))
    assert any("found no frame" in warning for warning in stats.warnings)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"prompt": Prompt(text="You are Aria.")}, "text_prompt"),
        ({"prompt": Prompt(voice="other")}, "voice_prompt"),
        ({"sampling": {"warmth": 2}}, "warmth"),
        ({"history": history(241.0)}, "does not fit the context"),
        ({"history": history(1.0) * 2}, "one part"),
    ],
)
def test_what_it_cannot_take_is_refused(moshi, told, message):
    session = moshi.new_session()
    with pytest.raises(UnsupportedError, match=message):
        session.open(OpenRequest(seed=1, stimulus_id="x", **told))
    session.close()


def test_a_session_ends_when_another_is_opened(moshi, units):
    first = moshi.new_session()
    first.open(OpenRequest(seed=1, stimulus_id="x"))
    feed(moshi, units[:2])
    with pytest.raises((RemoteSystemError, UnsupportedError)):
        first.step(units[0])


def test_a_whole_rollout_is_placed_by_model_time(moshi):
    live = (np.random.default_rng(2).standard_normal(24_000) * 0.1).astype(np.float32)
    request = OpenRequest(seed=5, stimulus_id="x")
    result = run(moshi, request, live, 24_000, StreamPlan(1.0))
    assert result.outcome is Outcome.COMPLETED
    starts = [event["start_s"] for event in result.events if event["kind"] == "audio"]
    assert starts == pytest.approx([0.08 * k for k in range(25)])
    assert result.listener.tobytes() == run(moshi, request, live, 24_000, StreamPlan(1.0)).listener.tobytes()
