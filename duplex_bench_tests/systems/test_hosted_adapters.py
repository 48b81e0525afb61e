"""One suite for the adapters of all hosted protocols, each against its server, on virtual time."""

import base64
import gc
import json
import tracemalloc

import numpy as np
import pytest

from duplex_bench.contract.push import PushSystem, RateLimitedError, RefusedError
from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, TransportError, UnsupportedError
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.plan import ProtocolSettings, plan_for
from duplex_bench.rollout.realtime import RealtimeSettings, run
from duplex_bench.rollout.virtual_time import run_on_virtual_time
from duplex_bench.systems.adapters import gemini_live, openai_realtime, xai_realtime
from duplex_bench.systems.adapters.openai_dialect import NEUTRAL_INSTRUCTIONS
from duplex_bench.systems.adapters.prices import cost_usd, usd_per_minute, usd_per_text_item
from duplex_bench.systems.adapters.wire import PcmStream, Secret, refused_handshake
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import Faults
from duplex_bench.systems.serving.peers import memory_connector
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = pytest.mark.unit

KEY = "sk-canary-7f3a9c1e"
VARIABLES = {"openai-realtime": "OPENAI_API_KEY", "xai-realtime": "XAI_API_KEY", "gemini-live": "GEMINI_API_KEY"}
FACTORIES = {
    "openai-realtime": openai_realtime.create,
    "xai-realtime": xai_realtime.create,
    "gemini-live": gemini_live.create,
}
PROTOCOLS = list(FACTORIES)
PLANS = {name: plan_for(name, ProtocolSettings()) for name in ("pause", "turn_end", "multiparty")}
RATE = 24_000
HISTORY = (HistoryPart("user", "My name is Ada.", 0, 1), HistoryPart("assistant", "Hello Ada.", 1, 2))
# Second 0.2 to 2.2, a pause of 1.5 s, and 2 s more.
TALK = ((0.2, None), (2.0, 0.1), (1.5, None), (2.0, 0.1))


def track(*parts):
    generator = np.random.default_rng(3)
    return np.concatenate(
        [
            np.zeros(round(s * RATE)) if level is None else level * generator.standard_normal(round(s * RATE))
            for s, level in parts
        ]
    ).astype(np.float32)


@pytest.fixture
def set_up(monkeypatch):
    """A system and its server: ``make(protocol, faults, **settings)``."""
    for variable in ("OPENAI_API_KEY", "XAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    def make(protocol, faults=None, key=KEY, manner=None, **settings):
        if key:
            monkeypatch.setenv(VARIABLES[protocol], key)
        service = SERVICES[protocol](ToneVoice(2.0), manner or Manner(), faults or Faults(), None, KEY, keep=9)
        return FACTORIES[protocol](settings, memory_connector(service)), service

    return make


def go(system, plan="pause", live=None, request=None, **changes):
    request = request or OpenRequest(1, "x", Prompt(text="You are Bo, an old friend."), HISTORY)
    return run(system, request, track(*TALK) if live is None else live, RATE, PLANS[plan], RealtimeSettings(**changes))


def heard_spans(result, gap_s=0.1):
    loud = np.flatnonzero(np.abs(result.listener) > 0.01) / RATE
    cuts = np.flatnonzero(np.diff(loud) > gap_s)
    starts = loud[np.concatenate([[0], cuts + 1])] if len(loud) else []
    stops = loud[np.concatenate([cuts, [len(loud) - 1]])] if len(loud) else []
    return list(zip(starts, stops, strict=True))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pause_is_taken_and_given_back_when_the_user_resumes(protocol, set_up):
    system, _ = set_up(protocol)
    assert isinstance(system, PushSystem)
    result = go(system)
    assert result.outcome is Outcome.COMPLETED
    (first, first_stop), (second, second_stop) = heard_spans(result)
    # 500 ms after the pause began and 0.3 s of thinking.
    assert first == pytest.approx(3.0, abs=0.05)
    # The user resumes at 3.7 s; the energy detection needs 40 ms.
    assert first_stop == pytest.approx(3.74, abs=0.05)
    assert (second, second_stop) == pytest.approx((6.5, 8.5), abs=0.05)
    stop = next(event for event in result.events if event["kind"] == "barge_in")
    assert stop["stop_latency_s"] == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_turn_end_is_answered_after_commit_and_request(protocol, set_up):
    system, service = set_up(protocol)
    result = go(system, "turn_end", track((0.2, None), (2.0, 0.1)))
    assert result.outcome is Outcome.COMPLETED
    asked = next(event for event in result.events if event["kind"] == "reply_requested")
    (start, stop), = heard_spans(result)  # fmt: skip
    wait_s = asked["commit_wait_s"] + asked["extra_wait_s"]
    assert start == pytest.approx(2.2 + wait_s + 0.3, abs=0.05)
    assert stop - start == pytest.approx(2.0, abs=0.01)
    if protocol == "xai-realtime":
        assert asked["extra_wait_s"] == 0.5
        assert 0.05 <= asked["commit_wait_s"] <= 0.3
        assert service.conversations[0].overtaken == 0
    else:
        assert wait_s == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_server_has_history_and_identity_and_never_empty_instructions(protocol, set_up):
    system, service = set_up(protocol)
    go(system, "turn_end", track((1.0, 0.1)))
    go(system, "turn_end", track((1.0, 0.1)), OpenRequest(1, "x"))
    told, bare = service.conversations
    lines = told.turns if protocol == "gemini-live" else [(item.role, item.text) for item in told.items]
    assert [text for _, text in lines[:2]] == ["My name is Ada.", "Hello Ada."]
    for conversation, wanted in ((told, "You are Bo, an old friend."), (bare, NEUTRAL_INSTRUCTIONS)):
        found = conversation.instructions if protocol == "gemini-live" else conversation.session["instructions"]
        assert found == wanted


def test_gemini_can_render_history_into_its_instruction(set_up):
    system, service = set_up("gemini-live", history_mode="system_text")
    go(system, "turn_end", track((1.0, 0.1)))
    assert "They: My name is Ada.\nYou: Hello Ada." in service.conversations[0].instructions


def test_history_as_audio_is_cut_from_the_users_channel(set_up):
    system, service = set_up("openai-realtime", history="audio")
    heard = HistoryPart("user", "", 0.0, 2.0, track((2.0, 0.1)))
    go(system, "turn_end", track((1.0, 0.1)), OpenRequest(1, "x", Prompt(), (*HISTORY, heard)))
    items = service.conversations[0].items
    assert [item.role for item in items[:3]] == ["user", "assistant", "user"]
    assert items[0].text == "sound of 1.0 seconds"


@pytest.mark.parametrize("protocol", ["openai-realtime", "xai-realtime"])
def test_what_was_not_heard_is_taken_out_of_the_servers_memory(protocol, set_up):
    system, service = set_up(protocol)
    result = go(system)
    told = next(event for event in result.events if event["kind"] == "truncation_reported")
    item = next(item for item in service.conversations[0].items if item.item_id == told["item_id"])
    assert item.heard_ms == told["audio_end_ms"] == pytest.approx(740, abs=20)
    assert item.text == ""
    assert told["audio_end_ms"] <= told["received_ms"]


def test_gemini_says_that_it_cannot_be_told_what_was_heard(set_up):
    system, _ = set_up("gemini-live")
    told = next(event for event in go(system).events if event["kind"] == "truncation_reported")
    assert told["reported"] is False


@pytest.mark.parametrize("answer", ["error", "silence"])
def test_a_truncation_that_xai_does_not_take_is_no_failure(answer, set_up):
    system, _ = set_up("xai-realtime", Faults(truncate=answer))
    result = go(system)
    assert result.outcome is Outcome.COMPLETED
    warnings = next(event for event in result.events if event["kind"] == "close")["warnings"]
    assert bool(warnings) is (answer == "error")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_usage_is_added_up_and_priced_where_prices_are_known(protocol, set_up):
    system, _ = set_up(protocol)
    result = go(system)
    close = next(event for event in result.events if event["kind"] == "close")
    assert sum(event["kind"] == "usage" for event in result.events) == 2
    assert close["usage"]["audio_in"] > 0
    assert close["cost_usd"] == pytest.approx(cost_usd(system_model(system), close["usage"]))
    assert close["cost_usd"] > 0


def test_items_of_text_are_charged_where_the_vendor_charges_them(set_up):
    for protocol, items in (("xai-realtime", 2), ("openai-realtime", 0)):
        close = next(event for event in go(set_up(protocol)[0]).events if event["kind"] == "close")
        assert close["usage"].get("text_items", 0) == items
    assert cost_usd("grok-voice-latest", {"text_items": 25.0}) == pytest.approx(0.1)
    assert usd_per_text_item("grok-voice-latest") == 0.004
    assert usd_per_text_item("gpt-realtime") == usd_per_text_item("unheard-of") == 0.0


@pytest.mark.parametrize(
    ("protocol", "faults"),
    [("gemini-live", Faults(no_usage=True)), ("openai-realtime", Faults(close_at="audio", close_code=1011))],
)
def test_what_a_session_cost_is_not_known_where_its_usage_was_not_told(protocol, faults, set_up):
    result = go(set_up(protocol, faults)[0])
    assert next(event for event in result.events if event["kind"] == "close")["cost_usd"] is None


def test_gemini_counts_thoughts_and_what_it_does_not_tell_apart():
    told = {"promptTokenCount": 30, "responseTokensDetails": [{"modality": "TEXT", "tokenCount": 4}],
            "thoughtsTokenCount": 50}  # fmt: skip
    assert gemini_live._counts(told) == {"audio_in": 30.0, "text_out": 54.0}


def test_gemini_is_heard_although_interrupted_was_told_behind_the_end_of_the_turn(set_up):
    plain, late = (go(set_up("gemini-live", faults)[0]) for faults in (Faults(), Faults(interrupted_late=True)))
    assert heard_spans(late) == pytest.approx(np.array(heard_spans(plain)), abs=0.05)
    assert len(heard_spans(late)) == 2


def system_model(system):
    return getattr(system, "settings", None).model if hasattr(system, "settings") else system.dialect.settings.model


EVERYWHERE = [
    ("slow start", Faults(start_delay_s=20.0), Outcome.COMPLETED, ""),
    ("never starts", Faults(start_delay_s=90.0), Outcome.TRANSPORT_ERROR, "not ready"),
    ("wrong key", Faults(refuse_status=401, refuse_body="bad"), Outcome.REFUSED, "key was refused"),
    ("region", Faults(refuse_status=403, refuse_body="country"), Outcome.REFUSED, "region"),
    ("retired model", Faults(refuse_status=404), Outcome.REFUSED, "set model in the card"),
    ("rate limit", Faults(refuse_status=429, retry_after="3"), Outcome.TRANSPORT_ERROR, "rate limit"),
    ("quota", Faults(refuse_status=429, refuse_body="insufficient_quota"), Outcome.REFUSED, "add credit"),
    ("overloaded", Faults(refuse_status=503), Outcome.TRANSPORT_ERROR, "HTTP 503"),
    ("closes", Faults(close_at="audio", close_code=1011), Outcome.TRANSPORT_ERROR, "code 1011"),
    ("drops", Faults(close_at="audio", close_code=0), Outcome.TRANSPORT_ERROR, "code 1006"),
    ("garbage", Faults(garbage_at="committed"), Outcome.TRANSPORT_ERROR, "no JSON object"),
    ("empty response", Faults(empty_response=True), Outcome.NO_AUDIO, "nothing audible came"),
    ("transcript alone", Faults(no_audio=True), Outcome.NO_AUDIO, "nothing audible"),
    ("expiry", Faults(max_session_s=4.0), Outcome.TRANSPORT_ERROR, ""),
]
OPENAI_ONLY = [
    ("silent server", Faults(stall_at="committed"), Outcome.NO_AUDIO, "nothing audible"),
    ("odd lengths", Faults(odd_lengths=True), Outcome.COMPLETED, ""),
    ("two items", Faults(two_items=True), Outcome.COMPLETED, ""),
    ("events twice", Faults(repeat_events=True), Outcome.COMPLETED, ""),
    ("duplicate ids", Faults(duplicate_ids=True), Outcome.TRANSPORT_ERROR, "began response 'resp_"),
    ("never created", Faults(never_created=True), Outcome.COMPLETED, ""),
    ("unknown event", Faults(unknown_event=True), Outcome.COMPLETED, ""),
    ("failed for a limit", Faults(fail_code="rate_limit_exceeded"), Outcome.TRANSPORT_ERROR, "rate limit"),
    ("failed for quota", Faults(fail_code="insufficient_quota"), Outcome.REFUSED, "insufficient_quota"),
    ("failed", Faults(fail_code="server_error"), Outcome.TRANSPORT_ERROR, "the response failed"),
    ("error that ends", Faults(error_code="session_expired"), Outcome.TRANSPORT_ERROR, "ended the session"),
    ("error that does not", Faults(error_code="something_benign"), Outcome.COMPLETED, ""),
    ("other detection", Faults(ignore_detection=True), Outcome.REFUSED, "did not take turn_detection"),
    ("other rate", Faults(wrong_rate=True), Outcome.REFUSED, "audio.output.format.rate"),
    ("wrong key at close", Faults(close_at="created", close_code=3000), Outcome.REFUSED, "code 3000"),
]
GEMINI_ONLY = [
    ("history refused", Faults(refuse_history=True), Outcome.REFUSED, "1007"),
    ("policy", Faults(close_at="committed", close_code=1008), Outcome.REFUSED, "1008"),
    ("exhausted", Faults(close_at="audio", close_reason="RESOURCE_EXHAUSTED"), Outcome.TRANSPORT_ERROR, "rate limit"),
    ("error", Faults(error_code="RESOURCE_EXHAUSTED"), Outcome.TRANSPORT_ERROR, "rate limit"),
    ("other error", Faults(error_code="INTERNAL"), Outcome.TRANSPORT_ERROR, "INTERNAL"),
    ("other rate", Faults(wrong_rate=True), Outcome.TRANSPORT_ERROR, "not 24000 Hz"),
    ("wrong key told later", Faults(error_code="PERMISSION_DENIED"), Outcome.REFUSED, "correct the key"),
]
XAI_ONLY = [
    ("speech told twice", Faults(loose_speech=True), Outcome.COMPLETED, ""),
    ("other rate", Faults(wrong_rate=True), Outcome.REFUSED, "format.rate"),
]
FAULTS = [(protocol, *fault) for protocol in PROTOCOLS for fault in EVERYWHERE]
FAULTS += [("openai-realtime", *fault) for fault in OPENAI_ONLY] + [("gemini-live", *fault) for fault in GEMINI_ONLY]
FAULTS += [("xai-realtime", *fault) for fault in XAI_ONLY]


@pytest.mark.parametrize(
    ("protocol", "faults", "outcome", "words"),
    [(protocol, faults, outcome, words) for protocol, _, faults, outcome, words in FAULTS],
    ids=[f"{protocol}: {name}" for protocol, name, *_ in FAULTS],
)
def test_every_fault_ends_in_its_outcome_with_a_message_and_without_the_key(protocol, faults, outcome, words, set_up):
    system, _ = set_up(protocol, faults)
    result = go(system)
    assert result.outcome is outcome, result.reason
    assert words in result.reason
    assert KEY not in json.dumps(result.events) + result.reason


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "faults",
    [
        Faults(refuse_status=401, refuse_body=f"Incorrect API key provided: {KEY}"),
        Faults(error_code="insufficient_quota", echo_key=True),
        Faults(fail_code="rate_limit_exceeded", echo_key=True),
        Faults(close_at="committed", close_code=1008, echo_key=True),
    ],
)
def test_a_key_that_the_server_repeats_is_removed(protocol, faults, set_up):
    system, _ = set_up(protocol, faults)
    result = go(system)
    assert KEY not in json.dumps(result.events) + result.reason + repr(system.new_push_session().__dict__)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_a_key_and_with_a_wrong_one_the_message_says_what_to_do(protocol, set_up):
    for key in ("", "sk-wrong"):
        system, _ = set_up(protocol, key=key)
        result = go(system)
        assert result.outcome is Outcome.REFUSED
        assert "check the variable named by the card" in result.reason
        assert "sk-wrong" not in result.reason


def test_what_is_delivered_twice_is_heard_once(set_up):
    once, twice = (go(set_up("openai-realtime", faults)[0]) for faults in (Faults(), Faults(repeat_events=True)))
    assert np.count_nonzero(once.listener) == np.count_nonzero(twice.listener) > 0
    assert next(event for event in twice.events if event["kind"] == "close")["repeated_events_dropped"] > 0


def test_detection_that_stays_on_is_found_out(set_up):
    system, _ = set_up("openai-realtime", Faults(keep_detection=True))
    result = go(system, "turn_end", track((1.0, 0.1)))
    assert result.outcome is Outcome.REFUSED
    assert "although detection is off" in result.reason


def test_a_request_that_overtook_the_commit_would_be_answered_without_the_last_audio(set_up):
    """The server really has the fault that the adapter avoids: without waiting, the reply is to nothing."""
    system, service = set_up("xai-realtime", wait_after_commit_s=0.0)
    session = system.new_push_session()

    async def too_early():
        await session.open(OpenRequest(1, "x"), "manual")
        for _ in range(50):
            await session.push(track((0.02, 0.1)))
        await session._send({"type": "input_audio_buffer.commit"})
        await session._send({"type": "response.create"})
        events = []
        while not any(event.kind == "done" for event in events):
            events += await session.receive()
        await session.close()
        return events

    events = run_on_virtual_time(too_early())
    assert service.conversations[0].overtaken == 1
    assert not [event for event in events if event.kind == "audio"]


@pytest.mark.parametrize(("silence_ms", "taken"), [(300, True), (500, False)])
def test_a_pause_of_400_ms_is_taken_at_300_and_left_at_500(silence_ms, taken, set_up):
    system, _ = set_up("openai-realtime", silence_ms=silence_ms, manner=Manner(think_s=0.05))
    result = go(system, live=track((1.0, 0.1), (0.4, None), (1.0, 0.1)))
    assert any(start < 1.41 for start, _ in heard_spans(result)) is taken


def test_semantic_detection_waits_for_its_longest(set_up):
    system, _ = set_up("openai-realtime", detector="semantic_vad", eagerness="high")
    (start, _), *_ = heard_spans(go(system, live=track((1.0, 0.1))))
    assert start == pytest.approx(1.0 + 2.0 + 0.3, abs=0.05)


def test_what_a_session_cannot_take_it_refuses(set_up):
    manual_only, _ = set_up("gemini-live", activity="manual")
    assert manual_only.detections == {"manual"}
    always_on, _ = set_up("openai-realtime", manual=False)
    forced = OpenRequest(1, "x", Prompt(), (HistoryPart("both", "", 0, 1, track((1, 0.1)), track((1, None))),))
    for system, request, detection in (
        (manual_only, OpenRequest(1, "x"), "automatic"),
        (always_on, OpenRequest(1, "x"), "manual"),
        (always_on, forced, "automatic"),
    ):
        with pytest.raises(UnsupportedError):
            run_on_virtual_time(system.new_push_session().open(request, detection))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_closing_twice_or_unopened_is_allowed_and_a_second_session_knows_nothing(protocol, set_up):
    system, service = set_up(protocol)
    session = system.new_push_session()

    async def program():
        before = await session.close()
        await session.open(OpenRequest(1, "x", Prompt(), HISTORY), "automatic")
        await session.push(np.zeros(system.spec.unit_in_samples, dtype=np.float32))
        return before, await session.close(), await session.close()

    before, once, twice = run_on_virtual_time(program())
    assert before.units == 0
    assert once == twice
    assert once.units == 1
    result = go(system, "turn_end", track((1.0, 0.1)), OpenRequest(1, "x"))
    assert result.outcome is Outcome.COMPLETED
    last = service.conversations[-1]
    assert len(last.turns if protocol == "gemini-live" else last.items) == 2


@pytest.mark.parametrize(
    ("create", "settings"),
    [
        (openai_realtime.create, {"silence": 3}),
        (openai_realtime.create, {"url": "http://x"}),
        (openai_realtime.create, {"detector": "guess"}),
        (openai_realtime.create, {"silence_ms": 0}),
        (xai_realtime.create, {"detector": "semantic_vad"}),
        (gemini_live.create, {"activity": "no"}),
        (gemini_live.create, {"temperature": 1.0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(create, settings):
    with pytest.raises(ValueError, match=r"realtime system|xai|gemini"):
        create(settings)


def test_a_handshake_says_what_to_do():
    assert isinstance(refused_handshake(429, "slow down", "7"), RateLimitedError)
    assert refused_handshake(429, "slow down", "7").retry_after_s == 7.0
    assert isinstance(refused_handshake(400, "Incorrect API key"), RefusedError)
    assert isinstance(refused_handshake(502, ""), TransportError)


def test_a_secret_shows_nowhere():
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r}"
    assert secret.scrub(f"a {KEY} b") == "a [removed] b"


def test_odd_bytes_wait_for_the_next_delta():
    whole = np.arange(-3000, 3000, dtype="<i2").tobytes()
    stream = PcmStream()
    deltas = [base64.b64encode(whole[at : at + 1001]).decode() for at in range(0, len(whole), 1001)]
    joined = np.concatenate([stream.take(delta) for delta in deltas])
    assert np.array_equal(np.rint(joined * 32768).astype(np.int16), np.arange(-3000, 3000))
    with pytest.raises(TransportError):
        stream.take("§")


def test_prices_go_by_the_longest_name():
    usage = {"audio_in": 1e6}
    assert cost_usd("gpt-realtime-2025-08-28", usage) == 32.0
    assert cost_usd("gpt-realtime-2.1-mini", usage) == 10.0
    assert cost_usd("grok-voice-latest", {"billable_s": 120.0}) == pytest.approx(0.16)
    assert cost_usd("unknown", usage) is None
    low, high = usd_per_minute("gpt-realtime-2025-08-28")
    assert 0 < low < high


def test_many_rollouts_in_one_process_leave_nothing_behind():
    connector = memory_connector(SERVICES["openai-realtime"](ToneVoice(1.0)))
    system = openai_realtime.create({}, connector)

    def some(count):
        for _ in range(count):
            run(system, OpenRequest(1, "x"), track((0.5, 0.1)), RATE, PLANS["turn_end"])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        some(10)
        before = some(10)
        after = some(60)
    finally:
        tracemalloc.stop()
    # One session holds some 300 kB of audio; whatever were kept of each would add up.
    assert after - before < 100_000
