import base64
import json

import numpy as np
import pytest

from duplex_bench.systems.adapters.wire import WireClosedError
from duplex_bench.systems.serving.faults import Faults

pytestmark = pytest.mark.unit

SETUP = {"model": "models/m", "generationConfig": {"responseModalities": ["AUDIO"]}}
MANUAL = {"realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}


def gemini_audio(ms, level=0.1, rate=16_000):
    pcm = np.full(rate * ms // 1000, int(level * 32768), dtype="<i2").tobytes()
    return {"realtimeInput": {"audio": {"data": base64.b64encode(pcm).decode(), "mimeType": f"audio/pcm;rate={rate}"}}}


def test_xai_greets_in_three_and_has_detection_off_until_told(talk):
    async def program(client):
        await client.until("ping")
        assert client.kinds() == ["session.created", "conversation.created", "ping"]
        assert client.seen[0][1]["session"]["turn_detection"] == {"type": None}
        nested = {"audio": {"input": {"turn_detection": {"type": "server_vad"}}}}
        await client.say("session.update", session=nested)
        assert (await client.until("session.updated"))["session"]["turn_detection"] == {}
        await client.say("session.update", session={"turn_detection": {"type": "server_vad"}})
        assert (await client.until("session.updated"))["session"]["turn_detection"] == {"type": "server_vad"}
        await client.append(1000)
        await client.append(1000, 0.0)
        item = (await client.until("conversation.item.added"))["item"]
        assert item["status"] == "in_progress"
        done = await client.until("response.done")
        assert done["response"]["usage"] == {}
        assert done["response"]["status_details"] == "unimplemented"
        assert done["usage"]["billable_audio_seconds"] > 0
        assert "conversation.item.done" not in client.kinds()
        await client.say("input_audio_buffer.commit")
        assert "turn_detection.type is null" in (await client.until("error"))["error"]["message"]

    talk("xai-realtime", program)


def test_xai_commits_later_than_it_is_told_to(talk):
    async def program(client):
        await client.until("ping")
        await client.append(1000)
        told_s = client.loop.time()
        await client.say("input_audio_buffer.commit")
        await client.until("input_audio_buffer.committed")
        assert 0.05 <= client.loop.time() - told_s <= 0.3

    talk("xai-realtime", program)


def test_gemini_wants_its_setup_first_and_speaks_in_binary(talk):
    async def nothing_before(client):
        await client.tell(gemini_audio(20))
        with pytest.raises(WireClosedError, match="code 1007"):
            await client.until("setupComplete")

    async def both_spellings(client):
        await client.tell({"setup": SETUP})
        assert isinstance(raw := await client.wire.receive(), bytes)
        assert json.loads(raw) == {"setupComplete": {}}
        await client.tell({"realtime_input": gemini_audio(1000)["realtimeInput"]})
        await client.tell(gemini_audio(2000, 0.0))
        await client.until("turnComplete")

    talk("gemini-live", nothing_before)
    assert len(talk("gemini-live", both_spellings).conversations[0].turns) == 2


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ({}, {"realtimeInput": {"activityStart": {}}}),
        (MANUAL, {"realtimeInput": {"audioStreamEnd": True}}),
        (MANUAL, {"realtimeInput": {"activityEnd": {}}}),
        ({}, {"clientContent": {"turns": [{"role": "user", "parts": [{"text": "x"}]}], "turnComplete": True}}),
        ({}, gemini_audio(20, rate=24_000)),
        ({}, {"unknown": {}}),
        ({"historyConfig": {"initialHistoryInClientContent": True}},
         {"clientContent": {"turns": [{"role": "system", "parts": [{"text": "x"}]}], "turnComplete": True}}),
    ],
)  # fmt: skip
def test_gemini_closes_on_what_it_does_not_take(setup, message, talk):
    async def program(client):
        await client.tell({"setup": {**SETUP, **setup}})
        await client.until("setupComplete")
        await client.tell(message)
        with pytest.raises(WireClosedError, match="code 1007"):
            await client.until("never")

    talk("gemini-live", program)


def test_gemini_answers_a_marked_window_and_throws_away_what_lies_outside(talk):
    async def program(client):
        await client.tell({"setup": {**SETUP, **MANUAL}})
        await client.tell(gemini_audio(3000))
        await client.tell({"realtimeInput": {"activityStart": {}}})
        await client.tell(gemini_audio(1000))
        await client.tell({"realtimeInput": {"activityEnd": {}}})
        assert (await client.until("voiceActivity"))["voiceActivity"]["audioOffset"] == "4.0s"
        generated = await client.until("generationComplete")
        complete = await client.until("turnComplete")
        assert "usageMetadata" in complete
        assert "usageMetadata" not in generated
        # The end of the turn is held back until 2 s of audio would have been played.
        first = next(at for at, m in client.seen if "modelTurn" in m.get("serverContent", {}))
        assert client.loop.time() - first == pytest.approx(2.0, abs=0.05)

    turns = talk("gemini-live", program).conversations[0].turns
    assert turns == [("user", "sound of 1.0 seconds"), ("model", "I heard a sound of 1.0 seconds.")]


def test_gemini_says_interrupted_and_ends_the_turn_without_completing_it(talk):
    async def program(client):
        await client.tell({"setup": SETUP})
        await client.tell(gemini_audio(1000))
        await client.tell(gemini_audio(900, 0.0))
        await client.until("outputTranscription")
        await client.tell(gemini_audio(100))
        await client.until("interrupted")
        await client.until("turnComplete")
        assert not any("generationComplete" in m.get("serverContent", {}) for _, m in client.seen)

    talk("gemini-live", program)


def test_gemini_may_ignore_the_silence_it_is_set_to(talk):
    waits = []

    async def program(client):
        detection = {"automaticActivityDetection": {"silenceDurationMs": 300}}
        await client.tell({"setup": {**SETUP, "realtimeInputConfig": detection}})
        await client.tell(gemini_audio(1000))
        for _ in range(100):
            await client.tell(gemini_audio(20, 0.0))
        await client.until("outputTranscription")
        await client.until("turnComplete")
        waits.append(1)

    for faults in (Faults(), Faults(ignore_detection=True)):
        heard = talk("gemini-live", program, faults).conversations[0].turns[0][1]
        waits.append(heard)
    assert waits[1] == "sound of 1.3 seconds"
    assert waits[3] == "sound of 3.0 seconds"
