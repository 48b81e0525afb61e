"""The vendor's own server process on loopback, on a tiny model, driven by our client in real time."""

import contextlib
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, Prompt
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import run
from duplex_bench.systems.adapters import moshi_server
from duplex_bench.systems.environments import worker_command

pytestmark = [pytest.mark.moshi, pytest.mark.timeout(3000)]

# The server waits for CUDA after its warm-up, whatever device it was told: without a GPU that raises. Nothing else of
# it is touched.
START = """
import runpy, sys, torch
if not torch.cuda.is_available():
    torch.cuda.synchronize = lambda *_: None
torch.set_num_threads(1)
sys.argv[0] = "moshi.server"
runpy.run_module("moshi.server", run_name="__main__")
"""
REQUEST = OpenRequest(seed=1, stimulus_id="x")
START_LIMIT_S = 240.0
ATTEMPTS = 6


@pytest.fixture(scope="module")
def checkpoint(moshi_card, moshi_python, moshi_cache, tmp_path_factory):
    """A tiny checkpoint as files, which is what the server takes."""
    folder = tmp_path_factory.mktemp("moshi")
    ours = worker_command(moshi_card, moshi_cache).python_path[0]
    environment = {"PYTHONPATH": ours, "NO_TORCH_COMPILE": "1"}
    module = "duplex_bench.systems.adapters.mimi_models.tiny"
    subprocess.run([moshi_python, "-m", module, folder], env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def server(moshi_python, checkpoint, tmp_path_factory):
    """Its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    files = {
        "--config-path": "config.json",
        "--moshi-weight": "model.safetensors",
        "--mimi-weight": "mimi.safetensors",
        "--tokenizer": "tokenizer.model",
    }
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--static", "none"]
    arguments += [word for option, name in files.items() for word in (option, str(checkpoint / name))]
    environment = {"NO_TORCH_COMPILE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("w") as file:
        process = subprocess.Popen(
            [moshi_python, "-c", START, *arguments], stdout=file, stderr=subprocess.STDOUT, env=environment
        )
    deadline = time.monotonic() + START_LIMIT_S
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"the server did not start: {log.read_text()[-3000:]}")
        threading.Event().wait(0.2)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


def _listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _live(seconds):
    return (np.random.default_rng(4).standard_normal(round(24_000 * seconds)) * 0.1).astype(np.float32)


def _run(server, seconds, silence_s):
    """A rollout, tried again where this machine was too busy for real time, as a run would."""
    for _ in range(ATTEMPTS):
        result = run(moshi_server.create({"url": server}), REQUEST, _live(seconds), 24_000, StreamPlan(silence_s))
        is_slow = result.outcome is Outcome.PACING_VIOLATION or "slower than real time" in result.reason
        if not is_slow:
            break
    return result


def test_the_real_server_hears_and_answers_frame_by_frame(server):
    result = _run(server, 3.0, 2.0)
    assert result.outcome is Outcome.COMPLETED, result.reason
    audio = [event for event in result.events if event["kind"] == "audio"]
    samples = sum(event["samples"] for event in audio)
    # One frame is lost at the start; what the last frames caused may still be on its way.
    assert 4.0 * 24_000 < samples <= (5.0 - 0.08) * 24_000
    # The first audio can come after two frames of input at the earliest.
    assert audio[0]["at_s"] >= 0.16 - 0.02
    assert np.abs(result.listener).max() > 0.01
    assert any(event["kind"] == "text" for event in result.events)


def test_a_second_session_finds_the_server_as_the_first_did(server):
    for _ in range(2):
        result = _run(server, 1.0, 0.5)
        # Whether this machine kept the pace is not what is asked here.
        assert result.outcome in (Outcome.COMPLETED, Outcome.PACING_VIOLATION), result.reason
        assert next(event for event in result.events if event["kind"] == "audio")["at_s"] >= 0.16 - 0.02


def test_what_the_protocol_cannot_carry_is_refused(server):
    system = moshi_server.create({"url": server})
    asked = OpenRequest(seed=1, stimulus_id="x", prompt=Prompt(text="You are Aria."))
    result = run(system, asked, _live(0.5), 24_000, StreamPlan(0.5))
    assert result.outcome is Outcome.REFUSED
    assert "text_prompt" in result.reason


def test_our_codec_and_the_vendors_understand_each_other(moshi_python, tmp_path):
    """Sound through our writer and sphn's reader, and back, keeps its place to a few milliseconds."""
    from duplex_bench.systems.adapters.ogg_opus import OggOpusReader, OggOpusWriter

    time_s = np.arange(48_000) / 24_000
    sound = (0.3 * np.sin(2 * np.pi * (300 + 400 * time_s) * time_s)).astype(np.float32)
    sound[:12_000] = 0.0
    writer = OggOpusWriter(24_000)
    sent = b"".join(writer.append(frame) for frame in sound.reshape(-1, 1920))
    (tmp_path / "ours").write_bytes(sent)
    code = """
import sys, numpy as np, sphn
folder = sys.argv[1]
reader, writer = sphn.OpusStreamReader(24000), sphn.OpusStreamWriter(24000)
heard = reader.append_bytes(open(folder + "/ours", "rb").read())
np.save(folder + "/heard.npy", heard)
n = len(heard) // 1920 * 1920
open(folder + "/theirs", "wb").write(b"".join(writer.append_pcm(f) for f in heard[:n].reshape(-1, 1920)))
"""
    subprocess.run([moshi_python, "-c", code, tmp_path], check=True)
    there = np.load(tmp_path / "heard.npy")
    back = OggOpusReader(24_000).append((tmp_path / "theirs").read_bytes())
    assert len(there) == len(sound)
    for heard, legs in ((there, 1), (back, 2)):
        lag = _lag(sound, heard)
        assert 0 < lag <= legs * 0.0075 * 24_000, lag


def _lag(sound, heard):
    n = min(len(sound), len(heard))
    spectrum = np.fft.rfft(heard[:n], 2 * n) * np.conj(np.fft.rfft(sound[:n], 2 * n))
    return int(np.fft.irfft(spectrum)[: n // 2].argmax())
