"""The vendors' own ends of the protocols against ours: clients, a server, the codec."""

import asyncio
import json
import subprocess
import wave

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, Prompt
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import RealtimeSettings, run
from duplex_bench.systems.adapters import freeze_omni
from duplex_bench.systems.adapters.ogg_opus import CODEC_DELAY_S, OggOpusReader, OggOpusWriter
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.host import hosted
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = [pytest.mark.wires, pytest.mark.timeout(120)]

RATE = 24_000


def said_by(command, protocol, *, seconds=2.0):
    """What a vendor's client printed about a conversation with our server."""

    async def main():
        async with hosted(SERVICES[protocol](ToneVoice(seconds), Manner(think_s=0.0))) as port:
            process = await asyncio.create_subprocess_exec(
                *[word.replace("PORT", str(port)) for word in command], stdout=subprocess.PIPE
            )
            told, _ = await process.communicate()
            assert process.returncode == 0
            return json.loads(told)

    return asyncio.run(main())


def test_vllm_omnis_client_holds_a_conversation_with_our_server(wires, tmp_path):
    voice = tmp_path / "voice.wav"
    with wave.open(str(voice), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(64_000))
    told = said_by(wires("omni_client.py", "ws://127.0.0.1:PORT/v1/realtime", voice), "vllm-omni-duplex")
    assert told["chunk_period_ms"] == 1000
    assert told["audio_bytes"] == 2 * RATE * 2
    assert told["transcript"].startswith("I heard a sound")
    assert told["status"] == "completed"


def test_the_socket_io_client_holds_a_conversation_with_our_server(wires):
    came = said_by(wires("socketio_client.py", "http://127.0.0.1:PORT"), "freeze-omni")
    names = [name for name, _ in came]
    assert names[:3] == ["prompt_success", "stop_tts", "stop_tts"]
    assert names[-2:] == ["stop_tts", "audio"]
    assert came[-1][1] == 2 * RATE


def test_our_adapter_holds_a_conversation_with_flask_socketio(wires):
    process = subprocess.Popen(wires("flask_server.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        # The line before it, if any, is the library's own greeting.
        port = next(int(line) for line in process.stdout if line.strip().isdigit())
        system = freeze_omni.create({"url": f"http://127.0.0.1:{port}"})
        live = (0.1 * np.random.default_rng(1).standard_normal(RATE)).astype(np.float32)
        patient = RealtimeSettings(rule=PacingRule(1000.0, 5000.0))
        result = run(system, OpenRequest(1, "x", Prompt(text="You are Bo.")), live, RATE, StreamPlan(2.5), patient)
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
    assert result.outcome is Outcome.COMPLETED, result.reason
    pieces = [event for event in result.events if event["kind"] == "audio"]
    assert [event["samples"] for event in pieces] == [RATE, RATE]
    assert pieces[1]["start_s"] == pytest.approx(pieces[0]["start_s"] + 1.0, abs=0.001)


def test_opus_streams_are_read_by_the_vendors_library_and_its_by_us(wires, tmp_path):
    time_s = np.arange(RATE) / RATE
    audio = np.zeros(2 * RATE, dtype="<f4")
    audio[RATE // 2 : RATE // 2 + RATE] = 0.3 * np.sin(2 * np.pi * (200 + 200 * time_s) * time_s) * np.hanning(RATE)
    writer = OggOpusWriter(RATE)
    (tmp_path / "ours.ogg").write_bytes(b"".join(writer.append(audio[at : at + 1920]) for at in range(0, 48_000, 1920)))
    audio.tofile(tmp_path / "audio.f32")
    subprocess.run(wires("opus.py", "read", tmp_path / "ours.ogg", tmp_path / "heard.f32"), check=True)
    subprocess.run(wires("opus.py", "write", tmp_path / "audio.f32", tmp_path / "theirs.ogg"), check=True)
    data = (tmp_path / "theirs.ogg").read_bytes()
    reader = OggOpusReader(RATE)
    heard = [np.fromfile(tmp_path / "heard.f32", dtype="<f4"),
             np.concatenate([reader.append(data[at : at + 333]) for at in range(0, len(data), 333)])]  # fmt: skip
    for one in heard:
        lag = np.argmax(np.correlate(one.astype(float), audio.astype(float), "full")) - (len(audio) - 1)
        assert lag / RATE == pytest.approx(CODEC_DELAY_S, abs=0.0005)
        assert np.abs(one[lag:] - audio[: len(one) - lag]).max() < 0.05
