"""The adapters of models' own servers, each against its server on virtual time: what is heard, when, and faults."""

import asyncio
import contextlib
import json

import numpy as np
import pytest

from duplex_bench.contract.push import RateLimitedError, RefusedError
from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, TransportError, UnsupportedError
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.virtual_time import run_on_virtual_time
from duplex_bench.systems.conformance import examine
from duplex_bench.systems.serving.faults import Faults

pytestmark = pytest.mark.unit

PROTOCOLS = ("flm-audio", "freeze-omni", "minicpm-o-realtime", "minicpm-o-demo", "vllm-omni-duplex")
MINICPM = PROTOCOLS[2:]
SILENCE = np.zeros(24_000 * 3, dtype=np.float32)


@pytest.mark.parametrize(
    ("protocol", "level"),
    # MiniCPM-o's code keeps it from giving way, and two of its servers have nothing to say about it.
    [
        ("flm-audio", "should"),
        ("freeze-omni", "should"),
        ("minicpm-o-realtime", "should"),
        ("minicpm-o-demo", "must"),
        ("vllm-omni-duplex", "must"),
    ],
)
def test_each_reaches_its_level_of_conformance(protocol, level, set_up):
    found = examine(set_up(protocol)[0])
    assert found.level == level
    broken = {result.rule for result in found.results if result.status == "broken" and result.level == "should"}
    assert broken == (set() if level == "should" else {"flushes when interrupted"})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_turn_is_answered_in_sound_at_its_time(protocol, set_up, go, spans, talk):
    """The turn ends at 2.2 s, is taken for over 0.5 s later, and thought about for 0.3 s."""
    system, service = set_up(protocol)
    result = go(system, "turn_end", talk((0.2, None), (2.0, 0.1)))
    assert result.outcome is Outcome.COMPLETED, result.reason
    ((start, stop),) = spans(result)
    expected = {
        # The reply waits for the end of a frame, and the model's first frame is lost; the codec adds 6 ms.
        "flm-audio": 3.0 + 0.16,
        "freeze-omni": 3.2,
    }.get(protocol, 4.0)
    assert start == pytest.approx(expected, abs=0.05)
    assert stop - start == pytest.approx(2.0, abs=0.03)
    text = "".join(event["text"] for event in result.events if event["kind"] == "text")
    said = text.split()
    assert said == [] if protocol == "freeze-omni" else said[:5] == ["I", "heard", "a", "sound", "of"]
    assert len(service.conversations) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_silence_is_kept_and_begins_no_response(protocol, set_up, go):
    system, _ = set_up(protocol)
    result = go(system, "pause", SILENCE)
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert not np.abs(result.listener).max(initial=0.0) > 0.001
    assert not [event for event in result.events if event["kind"] == "begun"]


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_the_model_is_told_who_it_is_and_never_nothing(protocol, set_up, go):
    system, service = set_up(protocol)
    go(system, "pause", SILENCE)
    go(system, "pause", SILENCE, OpenRequest(1, "x"))
    told, bare = service.conversations
    assert told.instructions == "You are Bo, an old friend."
    assert bool(bare.instructions) is (protocol in MINICPM)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_it_cannot_take_it_refuses(protocol, set_up):
    system, _ = set_up(protocol)
    sound = np.zeros(system.spec.in_rate_hz, dtype=np.float32)
    requests = [
        OpenRequest(1, "x", Prompt(voice="NATF0")),
        OpenRequest(1, "x", Prompt(), (HistoryPart("both", "", 0, 1, sound, sound),)),
        OpenRequest(1, "x", Prompt(), (HistoryPart("user", "Hello.", 0, 1),)),
        OpenRequest(1, "x", sampling={"temp": 0.5}),
    ]
    for request in requests:
        with pytest.raises(UnsupportedError):
            run_on_virtual_time(system.new_push_session().open(request, "automatic"))
    with pytest.raises(UnsupportedError):
        run_on_virtual_time(system.new_push_session().open(OpenRequest(1, "x"), "manual"))
    with pytest.raises(UnsupportedError):
        run_on_virtual_time(system.new_push_session().reply_now())


def test_without_an_address_the_message_names_the_variable(set_up):
    system, _ = set_up("flm-audio", url="")
    with pytest.raises(RefusedError, match="set DUPLEX_BENCH_FLM_AUDIO_URL"):
        run_on_virtual_time(system.new_push_session().open(OpenRequest(1, "x"), "automatic"))


def test_freeze_omni_gives_way_to_the_next_reply_and_its_player_is_emptied(set_up, go, spans, talk):
    """Its replies last 6 s; the user speaks again meanwhile, and the second reply cuts the first."""
    system, _ = set_up("freeze-omni", seconds=6.0)
    result = go(system, "pause", talk((2.0, 0.1), (1.2, None), (1.0, 0.1), (3.0, None)))
    flushes = [event for event in result.events if event["kind"] == "flush" and event["cut"]]
    assert len(flushes) == 1
    at_s = flushes[0]["at_s"]
    assert 4.9 < at_s < 5.2
    told = [event for event in result.events if event["kind"] == "truncation_reported"]
    assert told[0]["reported"] is False
    first, second = [event for event in result.events if event["kind"] == "begun"]
    assert first["response_id"] != second["response_id"]
    # All of the first reply had been handed out by then: a listener would have heard it to the end.
    assert flushes[0]["cut"][0]["cut_samples"] > 24_000


def test_freeze_omni_hands_out_nothing_to_who_sends_nothing(set_up):
    system, _ = set_up("freeze-omni")

    async def program():
        session = system.new_push_session()
        await session.open(OpenRequest(1, "x"), "automatic")
        for number in range(200):
            level = 0.1 if number < 60 else 0.0
            frame = np.random.default_rng(number).standard_normal(320) * level
            await asyncio.sleep(0.02)
            await session.push(frame.astype(np.float32))
            if number == 92:
                break
        quiet = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                while True:
                    quiet += [event for event in await session.receive() if event.kind == "audio"]
        for _ in range(4):
            await session.push(np.zeros(320, dtype=np.float32))
        events = []
        while not any(event.kind == "audio" for event in events):
            events += await session.receive()
        await session.close()
        return quiet

    assert run_on_virtual_time(program()) == []


@pytest.mark.parametrize("protocol", MINICPM)
def test_minicpm_does_not_give_way_inside_its_turn(protocol, set_up, go, spans, talk):
    system, _ = set_up(protocol, seconds=4.0)
    result = go(system, "pause", talk((2.0, 0.1), (2.2, None), (2.0, 0.1)))
    (start, stop), *_ = spans(result)
    # What the user says meanwhile is answered when the turn is over.
    assert start == pytest.approx(4.0, abs=0.05)
    assert stop > 8.5
    assert not [event for event in result.events if event["kind"] == "flush" and event["cut"]]


def test_vllm_omni_gives_way_where_the_session_asks_for_it_and_is_told_what_was_heard(set_up, go, spans, talk):
    system, service = set_up("vllm-omni-duplex", seconds=6.0, overlap_policy="barge_in_on_speech")
    result = go(system, "pause", talk((2.0, 0.1), (3.4, None), (2.0, 0.1)))
    (start, stop), *_ = spans(result)
    # Decided when the second in which the user began is over.
    assert (start, stop) == pytest.approx((4.0, 6.0), abs=0.05)
    spoken = service.conversations[0].spoken[0]
    assert spoken.status == "cancelled"
    assert spoken.committed_ms == pytest.approx(2000, abs=10)
    assert [event["action"] for event in result.events if event.get("name") == "overlap.decision"] == ["barge_in"]


def test_vllm_omni_remembers_what_was_heard_of_a_reply_that_nobody_cut(set_up, go, talk):
    system, service = set_up("vllm-omni-duplex")
    go(system, "pause", talk((2.0, 0.1)))
    (spoken,) = service.conversations[0].spoken
    assert (spoken.sent_ms, spoken.committed_ms) == (2000, 2000)


def test_the_realtime_service_drops_old_seconds_of_who_sends_too_fast(set_up):
    system, service = set_up("minicpm-o-realtime")

    async def program():
        session = system.new_push_session()
        await session.open(OpenRequest(1, "x"), "automatic")
        for _ in range(5):
            await session.push(np.zeros(16_000, dtype=np.float32))
        await asyncio.sleep(1)
        await session.close()

    run_on_virtual_time(program())
    assert service.conversations[0]._units == 1


def test_a_full_memory_ends_the_session_and_is_not_tried_again(set_up, go, talk):
    system, service = set_up("minicpm-o-realtime")
    # 8,192 tokens at 13 a second.
    result = go(system, "pause", np.zeros(24_000 * 640, dtype=np.float32))
    assert result.outcome is Outcome.REFUSED
    assert "context_full" in result.reason
    assert service.conversations[0].cache_tokens >= 8192


def test_who_queues_keeps_still_until_it_is_called(set_up, go, talk):
    for protocol in ("minicpm-o-realtime", "minicpm-o-demo"):
        system, service = set_up(protocol, Faults(start_delay_s=20.0))
        result = go(system, "turn_end", talk((2.0, 0.1)))
        assert result.outcome is Outcome.COMPLETED, result.reason
        assert next(event["took_s"] for event in result.events if event["kind"] == "opened") >= 20.0
        assert service.conversations[0].instructions


def test_one_server_of_flm_audio_serves_one_after_another(set_up):
    system, _ = set_up("flm-audio")

    async def program():
        first, second = system.new_push_session(), system.new_push_session()
        await first.open(OpenRequest(1, "x"), "automatic")
        waiting = asyncio.create_task(second.open(OpenRequest(1, "x"), "automatic"))
        await asyncio.sleep(30)
        assert not waiting.done()
        await first.close()
        await waiting
        await second.close()

    run_on_virtual_time(program())


EVERYWHERE = [
    ("slow start", Faults(start_delay_s=20.0), Outcome.COMPLETED, ""),
    ("never starts", Faults(start_delay_s=90.0), Outcome.TRANSPORT_ERROR, "not ready"),
    ("wrong path", Faults(refuse_status=404), Outcome.REFUSED, "path is not known"),
    ("overloaded", Faults(refuse_status=503), Outcome.TRANSPORT_ERROR, "HTTP 503"),
    ("closes", Faults(close_at="audio", close_code=1011), Outcome.TRANSPORT_ERROR, "code 1011"),
    ("dies", Faults(close_at="audio", close_code=0), Outcome.TRANSPORT_ERROR, "code 1006"),
    ("dies at once", Faults(close_at="created", close_code=0), Outcome.TRANSPORT_ERROR, "code 1006"),
    ("garbage", Faults(garbage_at="committed"), Outcome.TRANSPORT_ERROR, "the server sent"),
    ("floods", Faults(flood_at="created"), Outcome.COMPLETED, ""),
    ("expiry", Faults(max_session_s=2.0), Outcome.TRANSPORT_ERROR, ""),
]
ALONE = [
    ("flm-audio", "hangs", Faults(stall_at="created"), Outcome.TRANSPORT_ERROR, "the server hangs"),
    ("flm-audio", "hangs amid speech", Faults(stall_at="audio"), Outcome.TRANSPORT_ERROR, "slower than real time"),
    ("flm-audio", "slow", Faults(slow_share=0.3), Outcome.TRANSPORT_ERROR, "slower than real time"),
    ("flm-audio", "cut pages", Faults(odd_lengths=True), Outcome.COMPLETED, ""),
    ("flm-audio", "text alone", Faults(no_audio=True), Outcome.NO_AUDIO, "nothing audible"),
    ("freeze-omni", "full", Faults(busy=True), Outcome.TRANSPORT_ERROR, "raise its --max_users"),
    ("freeze-omni", "hangs", Faults(stall_at="committed"), Outcome.NO_AUDIO, "nothing audible"),
    ("freeze-omni", "odd lengths", Faults(odd_lengths=True), Outcome.COMPLETED, ""),
    ("minicpm-o-realtime", "full", Faults(busy=True), Outcome.TRANSPORT_ERROR, "queue_full"),
    ("minicpm-o-realtime", "broken floats", Faults(odd_lengths=True), Outcome.TRANSPORT_ERROR, "float32"),
    ("minicpm-o-realtime", "text alone", Faults(no_audio=True), Outcome.NO_AUDIO, "nothing audible"),
    ("minicpm-o-realtime", "model fails", Faults(error_code="inference_error"), Outcome.COMPLETED, ""),
    ("minicpm-o-demo", "full", Faults(busy=True), Outcome.TRANSPORT_ERROR, "No worker available"),
    ("minicpm-o-demo", "disabled", Faults(close_at="created", close_code=1008), Outcome.REFUSED, "does not offer"),
    ("minicpm-o-demo", "busy", Faults(close_at="created", close_code=1013), Outcome.TRANSPORT_ERROR, "rate limit"),
    ("minicpm-o-demo", "broken floats", Faults(odd_lengths=True), Outcome.TRANSPORT_ERROR, "float32"),
    ("minicpm-o-demo", "text alone", Faults(no_audio=True), Outcome.NO_AUDIO, "nothing audible"),
    ("vllm-omni-duplex", "full", Faults(busy=True), Outcome.TRANSPORT_ERROR, "rate limit: resource_exhausted"),
    ("vllm-omni-duplex", "odd lengths", Faults(odd_lengths=True), Outcome.COMPLETED, ""),
    ("vllm-omni-duplex", "text alone", Faults(no_audio=True), Outcome.NO_AUDIO, "nothing audible"),
    ("vllm-omni-duplex", "other rate", Faults(wrong_rate=True), Outcome.TRANSPORT_ERROR, "not pcm16 at 24000"),
    ("vllm-omni-duplex", "failed", Faults(fail_code="runtime"), Outcome.TRANSPORT_ERROR, "the response failed"),
    ("vllm-omni-duplex", "other policy", Faults(ignore_detection=True), Outcome.REFUSED, "overlap_policy"),
]
FAULTS = [(protocol, *fault) for protocol in PROTOCOLS for fault in EVERYWHERE] + ALONE


@pytest.mark.parametrize(
    ("protocol", "faults", "outcome", "words"),
    [(protocol, faults, outcome, words) for protocol, _, faults, outcome, words in FAULTS],
    ids=[f"{protocol}: {name}" for protocol, name, *_ in FAULTS],
)
def test_every_fault_ends_in_its_outcome_with_a_message(protocol, faults, outcome, words, set_up, go, talk):
    system, _ = set_up(protocol, faults)
    result = go(system, "turn_end", talk((0.2, None), (2.0, 0.1)))
    assert result.outcome is outcome, result.reason
    assert words in result.reason
    json.dumps(result.events)


def test_an_idle_freeze_omni_server_says_how_to_keep_it(set_up, go):
    system, _ = set_up("freeze-omni", Faults(max_session_s=2.0))
    result = go(system, "pause", SILENCE)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "raise --timeout" in result.reason


def test_vllm_omni_wants_a_voice_and_a_file_that_is_one(set_up, tmp_path):
    for voice, words in (("", "MINICPM_O_VOICE"), (str(tmp_path / "none.wav"), "cannot be used")):
        system, _ = set_up("vllm-omni-duplex", voice=voice)
        with pytest.raises(RefusedError, match=words):
            run_on_virtual_time(system.new_push_session().open(OpenRequest(1, "x"), "automatic"))


@pytest.mark.parametrize("protocol", MINICPM)
def test_a_recording_lends_the_model_its_voice(protocol, set_up, go, voice_file):
    system, _ = set_up(protocol, voice=voice_file)
    assert go(system, "pause", SILENCE).outcome is Outcome.COMPLETED


BROKEN = {
    "flm-audio": [b"\x01OggX0123456789012345678901234567", "text", b"\x05out of memory"],
    "freeze-omni": ["9x", "42{}", "42[1]", b"stray", '451-["audio"]', '44{"message":"no"}', "41", "x", "4"],
    "minicpm-o-realtime": ["[]", "no", json.dumps({"type": "response.output_audio.delta", "audio": "AAA="})],
    "minicpm-o-demo": ["[]", "no", json.dumps({"type": "error", "error": "cuda"})],
    "vllm-omni-duplex": [
        "[]",
        "no",
        json.dumps({"type": "response.output_audio.delta", "response_id": "r", "delta": 3}),
    ],
}


@pytest.mark.parametrize(("protocol", "raw"), [(name, raw) for name, many in BROKEN.items() for raw in many])
def test_what_is_no_message_is_a_transport_error(protocol, raw, set_up):
    system, _ = set_up(protocol)

    class Server:
        def __init__(self):
            self.inbox = asyncio.Queue()

        async def send(self, message):
            pass

        async def receive(self):
            return await self.inbox.get()

        async def round_trip_s(self):
            return 0.0

        async def close(self):
            pass

    async def program():
        session = system.new_push_session()
        session._wire = Server()
        for _ in range(2):
            session._wire.inbox.put_nowait(raw)
        for _ in range(2):
            await session.receive()

    with pytest.raises((TransportError, RateLimitedError)):
        run_on_virtual_time(program())
