"""The OpenAI realtime server keeps the documented rules, seen by a client that says exactly what it is told to."""

import base64

import pytest

from duplex_bench.systems.adapters.wire import WireClosedError
from duplex_bench.systems.serving.faults import Faults
from duplex_bench.systems.serving.openai_config import PERSONA

pytestmark = pytest.mark.unit

ORDER = [
    "session.created", "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed", "conversation.item.added", "conversation.item.done", "response.created",
    "response.output_item.added", "conversation.item.added", "response.content_part.added",
    "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio.done",
    "response.output_audio_transcript.done", "response.content_part.done", "conversation.item.done",
    "response.output_item.done", "response.done", "rate_limits.updated",
]  # fmt: skip


def without_repeats(kinds):
    return [kind for n, kind in enumerate(kinds) if n == 0 or kind != kinds[n - 1]]


def test_one_turn_comes_in_the_observed_order(talk):
    async def program(client):
        await client.append(100, 0.0)
        await client.append(2000)
        await client.append(1000, 0.0)
        await client.until("rate_limits.updated")
        assert without_repeats(client.kinds()) == ORDER
        done = next(message for _, message in client.seen if message["type"] == "response.done")["response"]
        assert done["output"][0]["content"][0]["type"] == "output_audio"
        started = next(m for _, m in client.seen if m["type"] == "input_audio_buffer.speech_started")
        committed = next(m for _, m in client.seen if m["type"] == "input_audio_buffer.committed")
        assert started["item_id"] == committed["item_id"]

    talk("openai-realtime", program)


def test_offsets_count_appended_audio_although_it_came_in_one_burst(talk):
    async def program(client):
        offsets = []
        for _ in range(3):
            await client.append(1000, 0.0)
            await client.append(2000)
            await client.append(1000, 0.0)
            offsets.append((await client.until("input_audio_buffer.speech_started"))["audio_start_ms"])
            stopped = await client.until("input_audio_buffer.speech_stopped")
            # The vendor's default of 200 ms for this model.
            assert stopped["audio_end_ms"] - offsets[-1] == 300 + 2000 + 200
            await client.until("response.done")
        assert offsets == [700, 4700, 8700]

    talk("openai-realtime", program)


def test_audio_is_sent_faster_than_it_is_heard(talk):
    async def program(client):
        await client.append(1000)
        await client.append(500, 0.0)
        await client.until("response.done")
        deltas = [(at, m) for at, m in client.seen if m["type"] == "response.output_audio.delta"]
        seconds = sum(len(base64.b64decode(m["delta"])) for _, m in deltas) / 48_000
        assert seconds == pytest.approx(2.0)
        assert deltas[-1][0] - deltas[0][0] < seconds / 3

    talk("openai-realtime", program)


def test_speech_during_a_response_cancels_it_and_a_few_deltas_are_still_in_flight(talk):
    async def program(client):
        await client.append(1000)
        await client.append(500, 0.0)
        await client.until("response.output_audio.delta")
        await client.append(100)
        await client.until("input_audio_buffer.speech_started")
        done = await client.until("response.done")
        assert done["response"]["status"] == "cancelled"
        assert done["response"]["status_details"]["reason"] == "turn_detected"
        assert done["response"]["usage"]
        late = client.kinds()[client.kinds().index("input_audio_buffer.speech_started", 4) :]
        assert 1 <= late.count("response.output_audio.delta") <= 3

    talk("openai-realtime", program)


def test_truncation_is_bounded_by_the_item_and_takes_its_words_away(talk):
    async def program(client):
        await client.append(1000)
        await client.append(500, 0.0)
        done = await client.until("response.done")
        item = done["response"]["output"][0]["id"]
        await client.say("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=2001, event_id="t")
        error = (await client.until("error"))["error"]
        assert (error["code"], error["event_id"]) == ("invalid_value", "t")
        assert "already shorter than 2001ms" in error["message"]
        await client.say("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=700)
        assert (await client.until("conversation.item.truncated"))["audio_end_ms"] == 700

    service = talk("openai-realtime", program)
    kept = service.conversations[0].items[-1]
    assert (kept.text, kept.heard_ms, kept.audio_ms) == ("", 700, 2000)


@pytest.mark.parametrize(
    ("session", "code", "param"),
    [
        ({"type": "realtime", "temperature": 0.8}, "unknown_parameter", "session.temperature"),
        ({"instructions": "x"}, "missing_required_parameter", "session.type"),
        ({"type": "realtime", "output_modalities": ["audio", "text"]}, "invalid_value", "session.output_modalities"),
        ({"type": "realtime", "audio": {"input": {"vad": 1}}}, "unknown_parameter", "session.audio.input.vad"),
        ({"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}}, "invalid_value",
         "session.audio.input.format"),
        ({"type": "realtime", "audio": {"input": {"turn_detection": {"type": "none"}}}}, "invalid_value",
         "session.audio.input.turn_detection.type"),
    ],
)  # fmt: skip
def test_a_bad_update_is_refused_whole(session, code, param, talk):
    async def program(client):
        await client.until("session.created")
        await client.say("session.update", event_id="u", session={**session, "tools": [1]})
        error = (await client.until("error"))["error"]
        assert (error["code"], error["param"], error["event_id"]) == (code, param, "u")

    service = talk("openai-realtime", program)
    assert "tools" not in service.conversations[0].session


def test_beta_shapes_end_the_connection(talk):
    async def program(client):
        await client.say("session.update", session={"modalities": ["audio"]})
        assert (await client.until("error"))["error"]["code"] == "beta_api_shape_disabled"
        with pytest.raises(WireClosedError, match="code 4000"):
            await client.until("never")

    talk("openai-realtime", program)


def test_an_empty_instruction_restores_the_persona_and_null_switches_detection_off(talk):
    async def program(client):
        await client.say("session.update", session={"type": "realtime", "instructions": ""})
        assert (await client.until("session.updated"))["session"]["instructions"] == PERSONA
        await client.update(turn_detection=None)
        assert (await client.until("session.updated"))["session"]["audio"]["input"]["turn_detection"] is None
        await client.append(2000)
        await client.append(2000, 0.0)
        await client.say("input_audio_buffer.commit")
        await client.until("conversation.item.done")
        assert "input_audio_buffer.speech_started" not in client.kinds()
        await client.say("response.create")
        await client.say("response.create")
        assert (await client.until("error"))["error"]["code"] == "conversation_already_has_active_response"
        assert (await client.until("response.done"))["response"]["status"] == "completed"
        await client.say("response.cancel")
        assert (await client.until("error"))["error"]["code"] == "response_cancel_not_active"
        await client.append(60)
        await client.say("input_audio_buffer.commit")
        assert (await client.until("error"))["error"]["code"] == "input_audio_buffer_commit_empty"

    talk("openai-realtime", program)


def test_a_turn_without_automatic_responses_waits_to_be_asked(talk):
    async def program(client):
        await client.update(turn_detection={"type": "server_vad", "create_response": False})
        await client.append(1000)
        await client.append(500, 0.0)
        await client.until("input_audio_buffer.committed")
        await client.until("conversation.item.done")
        await client.say("no.such.event", event_id="n")
        assert (await client.until("error"))["error"]["event_id"] == "n"
        assert "response.created" not in client.kinds()

    talk("openai-realtime", program)


def test_a_session_ends_after_sixty_minutes(talk):
    async def program(client):
        await client.until("session.created")
        error = (await client.until("error"))["error"]
        assert error["code"] == "session_expired"
        assert client.loop.time() == pytest.approx(3600.0)
        with pytest.raises(WireClosedError, match=r"code 1001.*60 minutes"):
            await client.until("never")

    talk("openai-realtime", program, Faults())


@pytest.mark.parametrize(
    "content",
    [("assistant", {"type": "input_text", "text": "x"}), ("user", {"type": "output_text", "text": "x"}),
     ("robot", {"type": "input_text", "text": "x"})],
)  # fmt: skip
def test_a_part_of_the_wrong_kind_for_its_role_is_refused(content, talk):
    async def program(client):
        role, part = content
        await client.say("conversation.item.create", item={"type": "message", "role": role, "content": [part]})
        assert (await client.until("error"))["error"]["code"] == "invalid_value"

    assert talk("openai-realtime", program).conversations[0].items == []


class Listener:
    """Keeps what it was asked: the turns before, and the turn."""

    turn_end = None

    def __init__(self):
        self.asked = []

    def hear(self, samples):
        return f"{len(samples)} samples"

    def reply(self, earlier, turn):
        self.asked.append((list(earlier[1:]), turn))

    def speak(self, text):
        raise AssertionError(text)


@pytest.mark.parametrize(("gap_ms", "joined"), [(600, True), (1600, False)])
def test_turns_with_a_short_silence_between_them_are_answered_as_one(gap_ms, joined, talk):
    async def program(client):
        for _ in range(2):
            await client.append(1000)
            await client.append(gap_ms, 0.0)
            await client.until("response.done")

    listener = Listener()
    talk("openai-realtime", program, voice=listener)
    earlier, turn = listener.asked[-1]
    assert len(earlier) == (0 if joined else 1)
    assert turn.count("samples") == (2 if joined else 1)
