import wave

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, Prompt
from duplex_bench.rollout.plan import ProtocolSettings, plan_for
from duplex_bench.rollout.realtime import RealtimeSettings, run
from duplex_bench.systems.adapters import flm_audio, freeze_omni, minicpm_o
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import NONE
from duplex_bench.systems.serving.peers import memory_connector
from duplex_bench.systems.serving.voices import ToneVoice

RATE = 24_000
FACTORIES = {
    "flm-audio": (flm_audio.create, {}),
    "freeze-omni": (freeze_omni.create, {}),
    "minicpm-o-realtime": (minicpm_o.create, {"dialect": "realtime"}),
    "minicpm-o-demo": (minicpm_o.create, {"dialect": "demo"}),
    "vllm-omni-duplex": (minicpm_o.create, {"dialect": "vllm-omni"}),
}
PLANS = {name: plan_for(name, ProtocolSettings()) for name in ("pause", "turn_end", "multiparty")}


@pytest.fixture(scope="session")
def voice_file(tmp_path_factory):
    """Two seconds of a tone, as a recording that lends a model its voice."""
    path = tmp_path_factory.mktemp("voice") / "voice.wav"
    tone = (8000 * np.sin(np.arange(32_000) / 8)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(tone.tobytes())
    return str(path)


@pytest.fixture
def set_up(voice_file, monkeypatch):
    """A system and its server: ``make(protocol, faults, think_s, **settings)``."""
    for name in (
        "DUPLEX_BENCH_MINICPM_O_VOICE",
        "DUPLEX_BENCH_FLM_AUDIO_URL",
        "DUPLEX_BENCH_FREEZE_OMNI_URL",
        "DUPLEX_BENCH_MINICPM_O_URL",
        "DUPLEX_BENCH_MINICPM_O_DEMO_URL",
        "DUPLEX_BENCH_MINICPM_O_VLLM_URL",
    ):
        monkeypatch.delenv(name, raising=False)  # fmt: skip

    def make(protocol, faults=NONE, think_s=0.3, seconds=2.0, **settings):
        service = SERVICES[protocol](ToneVoice(seconds), Manner(think_s=think_s), faults, keep=9)
        create, fixed = FACTORIES[protocol]
        extra = {"url": "ws://memory", **fixed}
        if protocol == "vllm-omni-duplex":
            extra["voice"] = voice_file
        return create({**extra, **settings}, memory_connector(service)), service

    return make


@pytest.fixture
def talk():
    """Live audio of (seconds, level) parts; a level of None is silence."""

    def make(*parts):
        generator = np.random.default_rng(3)
        return np.concatenate(
            [
                np.zeros(round(s * RATE)) if level is None else level * generator.standard_normal(round(s * RATE))
                for s, level in parts
            ]
        ).astype(np.float32)

    return make


@pytest.fixture
def go(talk):
    """One rollout: by default a turn with a pause of 1.5 s in it."""

    def once(system, plan="pause", live=None, request=None, **changes):
        live = talk((0.2, None), (2.0, 0.1), (1.5, None), (2.0, 0.1)) if live is None else live
        request = request or OpenRequest(1, "0123456789abcdef0123", _prompt(system))
        return run(system, request, live, RATE, PLANS[plan], RealtimeSettings(**changes))

    return once


def _prompt(system):
    return Prompt(text="You are Bo, an old friend.") if "text_prompt" in system.spec.capabilities else Prompt()


@pytest.fixture
def spans():
    """Where a result is audible, in seconds."""

    def find(result, gap_s=0.1):
        loud = np.flatnonzero(np.abs(result.listener) > 0.01) / RATE
        if not len(loud):
            return []
        cuts = np.flatnonzero(np.diff(loud) > gap_s)
        return list(zip(loud[np.r_[0, cuts + 1]], loud[np.r_[cuts, len(loud) - 1]], strict=True))

    return find
