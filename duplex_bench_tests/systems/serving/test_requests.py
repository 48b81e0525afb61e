"""What clients may ask of the servers beside a turn: words of what they said, items, replies with options."""

import pytest

from duplex_bench.systems.adapters.wire import WireClosedError
from duplex_bench.systems.serving.faults import Faults

pytestmark = pytest.mark.unit

TRANSCRIPTION = "conversation.item.input_audio_transcription"


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def kinds_of(client, start):
    return [kind for kind in client.kinds() if kind.startswith(start)]


async def said(client, text, **fields):
    await client.say("conversation.item.create", item=user(text), **fields)
    return (await client.until("conversation.item.done"))["item"]["id"]


async def turn(client):
    await client.append(1000)
    await client.append(500, 0.0)


def test_offsets_count_on_when_settings_change_within_a_session(talk):
    async def program(client):
        await turn(client)
        await client.until("response.done")
        await client.update(turn_detection={"type": "server_vad", "silence_duration_ms": 400})
        await client.until("session.updated")
        await client.append(500, 0.0)
        await turn(client)
        assert (await client.until("input_audio_buffer.speech_started"))["audio_start_ms"] == 2000 - 300
        assert (await client.until("input_audio_buffer.speech_stopped"))["audio_end_ms"] == 3000 + 400

    talk("openai-realtime", program)


def test_a_setting_that_is_not_of_detection_leaves_a_turn_as_it_is(talk):
    async def program(client):
        await client.append(1000)
        await client.update(noise_reduction={"type": "near_field"})
        await client.until("session.updated")
        await client.append(500, 0.0)
        await client.until("input_audio_buffer.committed")

    assert talk("openai-realtime", program).conversations[0].items[0].audio_ms == 1000 + 200


def test_words_of_the_user_are_told_to_who_asked_for_them(talk):
    async def program(client):
        await client.update(transcription={"model": "gpt-realtime-whisper"})
        await turn(client)
        told = await client.until(f"{TRANSCRIPTION}.completed")
        committed = next(m for _, m in client.seen if m["type"] == "input_audio_buffer.committed")
        assert (told["item_id"], told["transcript"]) == (committed["item_id"], "sound of 1.2 seconds")
        assert told["usage"] == {"type": "duration", "seconds": 1.2}
        deltas = [m["delta"] for _, m in client.seen if m["type"] == f"{TRANSCRIPTION}.delta"]
        assert "".join(deltas).strip() == told["transcript"]

    async def without(client):
        await turn(client)
        await client.until("response.done")
        await client.append(2000, 0.0)
        assert not kinds_of(client, TRANSCRIPTION)

    async def failing(client):
        await client.update(transcription={"model": "gpt-realtime-whisper"})
        await turn(client)
        assert (await client.until(f"{TRANSCRIPTION}.failed"))["error"]["code"]

    talk("openai-realtime", program)
    talk("openai-realtime", without)
    talk("openai-realtime", failing, Faults(no_transcription=True))


def test_items_can_be_placed_asked_for_and_deleted(talk):
    async def program(client):
        last = await said(client, "two")
        first = await said(client, "one", previous_item_id="root")
        middle = await said(client, "between", previous_item_id=first)
        await client.say("conversation.item.retrieve", item_id=middle)
        item = (await client.until("conversation.item.retrieved"))["item"]
        assert item["content"] == [{"type": "input_text", "text": "between"}]
        await client.say("conversation.item.delete", item_id=last)
        assert (await client.until("conversation.item.deleted"))["item_id"] == last
        for kind in ("retrieve", "delete"):
            await client.say(f"conversation.item.{kind}", item_id=last, event_id="e")
            error = (await client.until("error"))["error"]
            assert (error["event_id"], error["param"]) == ("e", "item_id")
        await client.say("conversation.item.create", item=user("lost"), previous_item_id="nowhere")
        assert (await client.until("error"))["error"]["param"] == "previous_item_id"

    assert [item.text for item in talk("openai-realtime", program).conversations[0].items] == ["one", "between"]


def test_a_reply_can_be_had_in_writing(talk):
    async def program(client):
        await client.say("session.update", session={"type": "realtime", "output_modalities": ["text"]})
        await said(client, "hello")
        await client.say("response.create")
        done = (await client.until("response.done"))["response"]
        assert done["output_modalities"] == ["text"]
        (part,) = done["output"][0]["content"]
        assert part["type"] == "output_text"
        told = "".join(m["delta"] for _, m in client.seen if m["type"] == "response.output_text.delta")
        assert told.split() == part["text"].split()
        assert not kinds_of(client, "response.output_audio")
        await client.say("response.create", response={"output_modalities": ["audio"]})
        await client.until("response.output_audio.done")

    talk("openai-realtime", program)


def test_a_reply_aside_has_a_context_of_its_own_and_leaves_no_trace(talk):
    async def program(client):
        await said(client, "the conversation")
        asked = {"conversation": "none", "input": [user("the aside")], "metadata": {"topic": "a"},
                 "output_modalities": ["text"]}  # fmt: skip
        await client.say("response.create", response=asked)
        done = (await client.until("response.done"))["response"]
        assert (done["metadata"], done["conversation_id"]) == ({"topic": "a"}, None)
        assert "the aside" in done["output"][0]["content"][0]["text"]

    assert [item.text for item in talk("openai-realtime", program).conversations[0].items] == ["the conversation"]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"temperature": 1}, "response.temperature"),
        ({"output_modalities": ["audio", "text"]}, "response.output_modalities"),
        ({"conversation": "mine"}, "response.conversation"),
        ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, "response.input"),
        ({"input": [{"type": "item_reference", "id": "nowhere"}]}, "response.input"),
    ],
)
def test_options_of_a_reply_are_refused_by_name(asked, param, talk):
    async def program(client):
        await said(client, "hello")
        await client.say("response.create", response=asked, event_id="r")
        error = (await client.until("error"))["error"]
        assert (error["param"], error["event_id"]) == (param, "r")
        assert "response.created" not in client.kinds()

    talk("openai-realtime", program)


def test_streamed_parts_have_other_names_than_kept_ones(talk):
    async def program(client):
        await turn(client)
        done = await client.until("response.done")
        parts = {m["type"]: m.get("part") for _, m in client.seen if "content_part" in m["type"]}
        assert parts["response.content_part.done"]["type"] == "audio"
        assert done["response"]["output"][0]["content"][0]["type"] == "output_audio"

    async def xai(client):
        await client.say(
            "session.update", session={"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}
        )
        await turn(client)
        done = await client.until("response.done")
        assert "part" not in next(m for _, m in client.seen if m["type"] == "response.content_part.done")
        assert done["response"]["output"][0]["content"][0]["type"] == "audio"

    talk("openai-realtime", program)
    talk("xai-realtime", xai)


@pytest.mark.parametrize(("model", "taken"), [("gpt-realtime-2.1", True), ("gpt-realtime", False)])
def test_effort_is_a_setting_of_models_that_reason(model, taken, talk):
    async def program(client):
        await client.say("session.update", session={"type": "realtime", "reasoning": {"effort": "low"}})
        await client.until("session.updated" if taken else "error")

    talk("openai-realtime", program, address=f"ws://memory/v1/realtime?model={model}")


def test_a_client_of_the_first_protocol_is_told_that_it_is_no_more(talk):
    async def program(client):
        assert (await client.until("error"))["error"]["code"] == "beta_api_shape_disabled"
        with pytest.raises(WireClosedError, match="code 4000"):
            await client.until("never")

    talk("openai-realtime", program, headers={"OpenAI-Beta": "realtime=v1"})


def test_what_the_server_cannot_do_it_does_not_take(talk):
    async def program(client):
        await client.update(turn_detection={"type": "server_vad", "idle_timeout_ms": 5000})
        assert "idle_timeout_ms" in (await client.until("error"))["error"]["param"]

    async def xai(client):
        await client.say(
            "session.update", session={"audio": {"input": {"format": {"type": "audio/pcm", "rate": 8000}}}}
        )
        assert "24000" in (await client.until("error"))["error"]["message"]
        await client.say("conversation.item.retrieve", item_id="x")
        assert "Invalid value" in (await client.until("error"))["error"]["message"]

    talk("openai-realtime", program)
    talk("xai-realtime", xai)


def test_xai_corrects_its_words_pings_always_speaks_and_ends_in_its_own_way(talk):
    async def program(client):
        session = {
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
            "audio": {"input": {"transcription": {"model": "g"}}},
        }
        await client.say("session.update", session=session)
        await turn(client)
        await client.until("response.done")
        told = [m for _, m in client.seen if m["type"] == f"{TRANSCRIPTION}.updated"]
        assert len(told) > 1
        assert not told[1]["transcript"].startswith(told[0]["transcript"])
        assert {m["status"] for _, m in client.seen if m["type"] == f"{TRANSCRIPTION}.completed"} == {"in_progress"}
        assert f"{TRANSCRIPTION}.delta" not in client.kinds()
        await client.say("response.create", response={"output_modalities": ["text"]})
        await client.until("response.output_audio.done")
        assert (await client.until("error"))["error"]["type"] == "max_duration"
        assert client.kinds().count("ping") > 2
        with pytest.raises(WireClosedError, match="code 1001"):
            await client.until("never")

    talk("xai-realtime", program, Faults(max_session_s=60.0))


def test_gemini_tells_words_where_asked_and_answers_what_is_written(talk):
    setup = {"model": "models/m", "generationConfig": {"responseModalities": ["AUDIO"]}, "inputAudioTranscription": {}}

    async def program(client):
        await client.tell({"setup": setup})
        await client.tell({"realtimeInput": {"text": "written to you"}})
        told = await client.until("outputTranscription")
        assert "written to you" in told["serverContent"]["outputTranscription"]["text"]
        await client.until("turnComplete")
        assert not any("inputTranscription" in m.get("serverContent", {}) for _, m in client.seen)

    async def resuming(client):
        await client.tell({"setup": {**setup, "sessionResumption": {"handle": None}}})
        with pytest.raises(WireClosedError, match="code 1007"):
            await client.until("setupComplete")

    talk("gemini-live", program)
    talk("gemini-live", resuming)
