import dataclasses
import json

import numpy as np
import pytest

from duplex_bench.contract import codec, messages
from duplex_bench.contract.types import CAPABILITIES, Out, Spec
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import HistoryTurn, HumanReply, Item, Reference, Stimulus, Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.record import execution_key, read_events, request_for, run_item
from duplex_bench.storage.digests import digest_bytes, history_words_digest, stimulus_digest

pytestmark = pytest.mark.unit

RATE = 24_000
PLAN = StreamPlan(0.5)
EVERYTHING = Spec(RATE, RATE, 1920, 1920, True, capabilities=CAPABILITIES)
BARE = Spec(RATE, RATE, 1920, 1920, True)
KEY = {
    "card_execution_digest": "c", "stimulus_digest": "s", "protocol_settings": PLAN, "repeat": 0,
    "adapter_version": "1", "model_id": "m", "epoch": 0,
}  # fmt: skip


@pytest.fixture
def item(blobs):
    generator = np.random.default_rng(0)
    samples = (generator.standard_normal((RATE * 3, 2)) * 1000).astype(np.int16)
    source = blobs.put_audio(samples, RATE)

    def part(start_s, stop_s, channel):
        return blobs.slice_of(source, samples, RATE, int(start_s * RATE), int(stop_s * RATE), channel)

    stimulus = Stimulus(
        "pause", part(2, 3, 0), "You are Sam.",
        (HistoryTurn("user", "Hi there", 0.0, 1.0), HistoryTurn("assistant", "Yes", 1.0, 2.0)),
        part(0, 2, 0), part(0, 2, 1),
    )  # fmt: skip
    reference = Reference(
        (Window("GOLDWINDOW", "pause", 0.123456, 0.9, {"GOLDMARK": 1.0}, {"GOLDLABEL": "GOLDVALUE"}),), "GOLDANSWER",
        HumanReply("GOLDREPLY", 1.0, 2, part(1, 2, 1)), (HistoryTurn("user", "GOLDTRANSCRIPT", 0, 1),),
        {"GOLDKEY": "GOLDATTRIBUTE"},
    )  # fmt: skip
    return Item("GOLDITEM", "conversation", "GOLDCLUSTER", "GOLDCONDITION", stimulus, reference, "GOLDLICENCE")


def speaking(call, unit):
    return [Out("audio", call, pcm=np.full(1920, 0.25, np.float32) if call < 5 else np.zeros(1920, np.float32))]


def go(system, stimulus, blobs, **more):
    return run_item(system, stimulus, blobs, system_name="scripted", rollout_key="k", plan=PLAN, **more)


def test_a_rollout_is_stored_as_audio_on_the_timeline_and_events(scripted, item, blobs):
    record = go(scripted(EVERYTHING, speaking), item.stimulus, blobs)
    assert (record.outcome, record.attempts, record.timeline_s, record.input_s) == (Outcome.COMPLETED, 1, 1.5, 1.0)
    audio, rate = blobs.read_audio(record.listener_audio)
    assert (rate, audio.shape) == (RATE, (36_000, 1))
    assert np.flatnonzero(audio).tolist() == list(range(5 * 1920))
    events = read_events(record.events, blobs)
    assert events[0]["kind"] == "rollout"
    assert events[0]["omitted"] == []
    assert {"unit", "model_time_s", "available_s", "response_id"} <= set(events[1])


def test_a_second_run_stores_the_same_bytes(scripted, item, blobs):
    first, second = (go(scripted(EVERYTHING, speaking), item.stimulus, blobs) for _ in range(2))
    assert (first.listener_audio, first.events) == (second.listener_audio, second.events)


def test_nothing_of_the_reference_crosses(scripted, item, blobs):
    system = scripted(EVERYTHING, speaking)
    record = go(system, item.stimulus, blobs)
    data, arrays = messages.pack_request(system.requests[0])
    crossed = codec.encode(data, arrays) + b"".join(unit.tobytes() for unit in system.fed)
    assert b"You are Sam." in crossed
    for text in _strings(item.reference) | {"GOLDITEM", "GOLDCLUSTER", "GOLDCONDITION", "GOLDLICENCE"}:
        assert text.encode() not in crossed, text
    # The instants of a window are numbers: none of them may be in the header either.
    assert "0.123456" not in json.dumps(data)
    # What is streamed is the live slice and silence, nothing else.
    fed = np.concatenate(system.fed)
    assert np.array_equal(np.rint(fed[:RATE] * 32768).astype(np.int16), blobs.read_slice(item.stimulus.live))
    assert not fed[RATE:].any()
    assert record.stimulus_digest == system.requests[0].stimulus_id


def _strings(value):
    if isinstance(value, str):
        return {value} if value.startswith("GOLD") else set()
    if dataclasses.is_dataclass(value):
        return set().union(*(_strings(getattr(value, f.name)) for f in dataclasses.fields(value)))
    if isinstance(value, dict):
        return set().union(*(_strings(entry) for pair in value.items() for entry in pair), set())
    if isinstance(value, tuple):
        return set().union(*(_strings(entry) for entry in value), set())
    return set()


def test_history_goes_as_far_as_the_spec_can_take_it(item, blobs):
    def of(*capabilities):
        spec = dataclasses.replace(BARE, capabilities=frozenset(capabilities))
        return request_for(item.stimulus, spec, blobs, 1)

    request, omitted = of("text_prompt", "force_history")
    assert omitted == ()
    (part,) = request.history
    assert part.user_pcm.shape == part.assistant_pcm.shape == (2 * RATE,)
    assert part.words == (("Yes", 1.0, 2.0),)
    request, omitted = of("text_history", "audio_history")
    assert omitted == ("identity_prompt", "assistant_history_audio")
    assert [part.text for part in request.history] == ["Hi there", "Yes", ""]
    assert request.history[2].assistant_pcm is None
    request, omitted = of()
    assert (request.history, omitted) == ((), ("identity_prompt", "history"))
    assert not request.prompt


WORDS = (TimedWord("uh", 0.2, 0.4), TimedWord("Yes", 1.1, 1.5), TimedWord("lost", None, None, False))


def test_words_go_with_their_times_where_the_spec_takes_them(item, blobs):
    stimulus = dataclasses.replace(item.stimulus, history_words=WORDS)

    def told(of, *capabilities):
        spec = dataclasses.replace(BARE, capabilities=frozenset({"text_prompt", *capabilities}))
        return request_for(of, spec, blobs, 1)[0]

    (part,) = told(stimulus, "force_history", "word_times").history
    assert part.words == (("uh", 0.2, 0.4), ("Yes", 1.1, 1.5))
    # Turns where it takes no word times, where it takes no forced history, and where there are no words.
    plain = told(item.stimulus, "force_history")
    assert plain.history[0].words == (("Yes", 1.0, 2.0),)
    for other in (told(stimulus, "force_history"), told(item.stimulus, "force_history", "word_times")):
        assert codec.encode(*messages.pack_request(other)) == codec.encode(*messages.pack_request(plain))
    assert all(not part.words for part in told(stimulus, "text_history", "word_times").history)


def test_a_worker_of_before_word_times_is_sent_the_bytes_of_then(item, blobs):
    """What crosses to a system that knows nothing of them, to the byte: the digest is of the code before them."""
    spec = dataclasses.replace(BARE, capabilities=frozenset({"text_prompt", "force_history"}))
    stimulus = dataclasses.replace(item.stimulus, history_words=WORDS)
    sent = codec.encode(*messages.pack_request(request_for(stimulus, spec, blobs, 1)[0]))
    assert digest_bytes(sent) == "796c982da61954977533b25299c318985dadfaaf7fc51ffcc8d0f07e823987b7"


def test_word_times_key_the_runs_of_those_that_take_them_and_no_others(item):
    stimulus = dataclasses.replace(item.stimulus, history_words=WORDS)
    later = dataclasses.replace(stimulus, history_words=(TimedWord("uh", 0.28, 0.4), *WORDS[1:]))
    assert stimulus_digest(stimulus) == stimulus_digest(item.stimulus) == stimulus_digest(later)
    assert history_words_digest(item.stimulus) is None
    keys = [execution_key(**KEY, history_words=history_words_digest(one)) for one in (item.stimulus, stimulus, later)]
    assert keys[0] == execution_key(**KEY)
    assert len(set(keys)) == 3


def test_what_may_be_bad_luck_is_tried_again(scripted, item, blobs):
    failures = iter([True, True, False])

    def behave(call, unit):
        if call == 0 and next(failures):
            raise ConnectionError("gone")
        return speaking(call, unit)

    record = go(scripted(EVERYTHING, behave), item.stimulus, blobs)
    assert (record.outcome, record.attempts) == (Outcome.COMPLETED, 3)


def test_what_stays_broken_is_kept_with_its_reason_and_no_audio(scripted, item, blobs):
    def behave(call, unit):
        raise ConnectionError("gone")

    record = go(scripted(EVERYTHING, behave), item.stimulus, blobs, max_attempts=2)
    assert (record.outcome, record.attempts, record.listener_audio) == (Outcome.TRANSPORT_ERROR, 2, None)
    assert "gone" in record.reason
    assert read_events(record.events, blobs)[0]["reason"] == record.reason


def test_attempts_below_one_are_refused(scripted, item, blobs):
    with pytest.raises(ValueError, match="max_attempts"):
        go(scripted(EVERYTHING, speaking), item.stimulus, blobs, max_attempts=0)


def test_repeats_have_seeds_of_their_own(scripted, item, blobs):
    system = scripted(EVERYTHING, speaking)
    for repeat in (0, 0, 1):
        go(system, item.stimulus, blobs, repeat=repeat)
    first, again, other = (request.seed for request in system.requests)
    assert first == again != other


@pytest.mark.parametrize(
    "change",
    [{"card_execution_digest": "d"}, {"stimulus_digest": "t"}, {"protocol_settings": StreamPlan(0.6)}, {"repeat": 1},
     {"adapter_version": "2"}, {"model_id": "n"}, {"epoch": 1}],
)  # fmt: skip
def test_every_part_of_the_key_counts(change):
    assert execution_key(**KEY) == execution_key(**KEY)
    assert execution_key(**{**KEY, **change}) != execution_key(**KEY)


def test_the_stimulus_digest_names_the_stimulus(item):
    assert stimulus_digest(item.stimulus) == stimulus_digest(dataclasses.replace(item.stimulus))
