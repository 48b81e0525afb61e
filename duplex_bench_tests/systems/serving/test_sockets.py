"""The same protocols over real WebSockets on loopback, in real time: handshakes, keys, the vendor's own client."""

import asyncio
import base64
import json
import logging

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import RealtimeSettings, run_session
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.systems.adapters import gemini_live, openai_realtime, xai_realtime
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.host import hosted
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = pytest.mark.process

KEY = "sk-canary-90d1b2"
MADE = {
    "openai-realtime": (openai_realtime.create, "OPENAI_API_KEY", "/v1/realtime"),
    "xai-realtime": (xai_realtime.create, "XAI_API_KEY", "/v1/realtime"),
    "gemini-live": (gemini_live.create, "GOOGLE_API_KEY", "/ws/BidiGenerateContent"),
}
# A slow processor is none of the faults that are looked for here.
TOLERANT = RealtimeSettings(PacingRule(1000.0, 5000.0))
LIVE = np.concatenate([np.full(12_000, 0.1), np.zeros(12_000)]).astype(np.float32)


@pytest.fixture
def go(monkeypatch, on_patient_clock):
    def runner(protocol, faults=NONE, key=KEY, live=LIVE):
        create, variable, path = MADE[protocol]
        monkeypatch.setenv(variable, key)

        async def main():
            service = SERVICES[protocol](ToneVoice(0.4), Manner(think_s=0.1), faults, None, KEY)
            async with hosted(service) as port:
                system = create({"url": f"ws://127.0.0.1:{port}{path}", "silence_ms": 300})
                return await run_session(system, OpenRequest(1, "x"), live, 24_000, StreamPlan(0.3), TOLERANT)

        return on_patient_clock(main())

    return runner


@pytest.mark.parametrize("protocol", list(MADE))
def test_a_turn_over_a_real_socket_keeps_its_times_and_its_pacing(protocol, go, caplog):
    caplog.set_level(logging.DEBUG)
    result = go(protocol)
    assert result.outcome is Outcome.COMPLETED, result.reason
    heard = np.flatnonzero(np.abs(result.listener) > 0.01) / 24_000
    # Half a second of sound, 300 ms of silence, 100 ms of thinking.
    assert heard[0] == pytest.approx(0.9, abs=0.3)
    pacing = next(event for event in result.events if event["kind"] == "pacing")
    assert pacing["sends"]["n"] == 65
    # The sender is no later than a timer that does nothing: what lateness there is comes from the machine.
    assert pacing["sends"]["worst_ms"] <= pacing["idle"]["worst_ms"] + 20
    close = next(event for event in result.events if event["kind"] == "close")
    assert 0 <= close["round_trip_s"][0] < 1
    assert KEY not in caplog.text + json.dumps(result.events)


@pytest.mark.parametrize("protocol", list(MADE))
@pytest.mark.parametrize(
    ("faults", "outcome", "words"),
    [
        (Faults(refuse_status=429, retry_after="9"), Outcome.TRANSPORT_ERROR, "rate limit"),
        (Faults(refuse_status=404), Outcome.REFUSED, "model"),
        (Faults(close_at="audio", close_code=0), Outcome.TRANSPORT_ERROR, "1006"),
        (Faults(close_at="audio", close_code=1011, close_reason="overloaded"), Outcome.TRANSPORT_ERROR, "overloaded"),
    ],
)
def test_faults_of_the_transport_are_what_they_are_in_memory(protocol, faults, outcome, words, go):
    result = go(protocol, faults)
    assert result.outcome is outcome, result.reason
    assert words in result.reason
    assert result.retry_after_s == (9.0 if faults.retry_after else None)


@pytest.mark.parametrize("protocol", list(MADE))
def test_a_wrong_key_is_refused_at_the_door_and_not_shown(protocol, go, caplog):
    caplog.set_level(logging.DEBUG)
    result = go(protocol, key="sk-not-the-right-one")
    assert result.outcome is Outcome.REFUSED
    assert "sk-not-the-right-one" not in result.reason + caplog.text


def test_nobody_listening_is_a_transport_error(monkeypatch):
    system = openai_realtime.create({"url": "ws://127.0.0.1:9/v1/realtime"})
    result = asyncio.run(run_session(system, OpenRequest(1, "x"), LIVE, 24_000, StreamPlan(0.3)))
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "no connection" in result.reason


def test_the_vendors_own_client_talks_to_the_server():
    from openai import AsyncOpenAI

    async def main():
        async with hosted(SERVICES["openai-realtime"](ToneVoice(0.5), Manner(think_s=0.0), NONE, None, "k")) as port:
            client = AsyncOpenAI(api_key="k", base_url=f"http://127.0.0.1:{port}/v1")
            seconds, words = 0.0, ""
            async with client.realtime.connect(model="m") as connection:
                detection = {"type": "server_vad", "silence_duration_ms": 300}
                await connection.session.update(
                    session={"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
                )
                audio = base64.b64encode(to_pcm16(LIVE).tobytes()).decode()
                await connection.input_audio_buffer.append(audio=audio)
                async for event in connection:
                    if event.type == "response.output_audio.delta":
                        seconds += len(base64.b64decode(event.delta)) / 48_000
                    elif event.type == "response.output_audio_transcript.done":
                        words = event.transcript
                    elif event.type == "response.done":
                        break
                return event.response.status, seconds, words

    status, seconds, words = asyncio.run(main())
    assert status == "completed"
    assert seconds == pytest.approx(0.5)
    assert words.startswith("I heard a sound of")
