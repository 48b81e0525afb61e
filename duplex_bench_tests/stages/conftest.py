"""Stages with quick engines: noise for speech, words from the gate. Tested is which work is done, not hearing."""

import importlib
import importlib.util
import pkgutil
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from duplex_bench import stages
from duplex_bench.audio.activity import bridge
from duplex_bench.audio.gate import intervals_s
from duplex_bench.conversation.generator_plan import typical_timing
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech import engines
from duplex_bench.speech.interfaces import SpokenClip
from duplex_bench.stages import scoring
from duplex_bench.stages.pool import pool as start_pool
from duplex_bench.stages.profile import parse_profile
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import generator_from
from duplex_bench.systems.adapters.planted import PlantedSystem

RATE_HZ = 24_000
FACTORY = "resume_systems_of_the_tests"
SMALL = {
    "name": "small",
    "seed": 1,
    "multiparty": {
        "grammar": {
            "n_pairs": 1,
            "seed": 3,
            "size": {"silence_turns_mean": 5.0, "n1_turns_mean": 1.0, "n3_turns_mean": 1.0, "elaborations_mean": 0.0},
        }
    },
    "conversation": {
        "generator": {"n_sessions": 1, "seed": 5, "minutes": 1.2, "sample_rate_hz": RATE_HZ},
        "corpus": {"liveliness_top_share": 1.0},
        "curation": {"cap_per_kind": 2},
    },
    "rollout": {"protocols": {"turn_end_cap_s": 6.0}},
    "statistics": {"n_resamples": 50},
}


class NoiseVoices:
    """A text to speech whose clips are noise as long as speech would be."""

    engine_id = "noise/1"
    voices = ("a", "b", "c", "d", "narrator")

    def speak(self, text, voice):
        timing = typical_timing(text, voice)
        rng = generator_from("noise voice", text, voice)
        samples = rng.uniform(-0.2, 0.2, round(timing.duration_s * RATE_HZ)).astype(np.float32)
        return SpokenClip(samples, RATE_HZ, timing.word_starts_s)


class GateAsVoiceDetector:
    engine_id = "gate as detector/1"

    def speech_regions(self, samples, sample_rate_hz):
        found = bridge(intervals_s(samples, sample_rate_hz), 0.25)
        return np.rint(found * sample_rate_hz).astype(np.int64)


class GateAsRecogniser:
    """One word for each stretch of speech, which says how long it is."""

    engine_id = "gate as recogniser/1"

    def words(self, samples, sample_rate_hz):
        found = bridge(intervals_s(samples, sample_rate_hz), 0.25)
        return tuple(TimedWord(f"{round(stop - start, 2)} seconds", start, stop) for start, stop in found.tolist())


def planted(settings):
    """Speaks noise at the seconds that the card's settings name, whatever it hears."""
    noise = generator_from("planted noise").uniform(-0.2, 0.2, RATE_HZ).astype(np.float32)
    return PlantedSystem({}, [(round(at_s * RATE_HZ), noise) for at_s in settings["at_s"]])


@pytest.fixture
def quick_engines(monkeypatch):
    """No models and no worker processes; yields the dotted name of a planted system's factory for cards."""
    factory = types.ModuleType(FACTORY)
    factory.planted = planted
    monkeypatch.setitem(sys.modules, FACTORY, factory)
    monkeypatch.setattr(engines, "text_to_speech", lambda *_: NoiseVoices())
    monkeypatch.setattr(engines, "voice_activity", lambda *_: GateAsVoiceDetector())
    monkeypatch.setattr(engines, "recogniser", lambda *_: GateAsRecogniser())
    monkeypatch.setattr(scoring, "vectors", lambda: None)
    for found in pkgutil.iter_modules(stages.__path__):
        module = importlib.import_module(f"{stages.__name__}.{found.name}")
        if getattr(module, "pool", None) is start_pool:
            monkeypatch.setattr(module, "pool", lambda _n=None: None)
    return f"{FACTORY}:planted"


@pytest.fixture
def small_workspace():
    """A workspace of the small profile in a folder."""

    def build(folder: Path, table=SMALL):
        return Workspace(folder, parse_profile(table, "test"))

    return build


def _helper(name):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def _planted_run():
    return _helper("planted_run")


# Test modules import them by their names.
_planted_run()
_helper("recall_probes")
_helper("reviewed_chain")


@pytest.fixture
def chain(quick_engines, small_workspace, tmp_path, monkeypatch):
    """Three short sessions of which three pauses and three turn ends are drawn; nobody has reviewed anything."""
    monkeypatch.delenv("DUPLEX_BENCH_REVIEW_DATABASE", raising=False)
    found = _helper("reviewed_chain")
    return found.Chain(small_workspace(tmp_path, found.TABLE), quick_engines)


@pytest.fixture
def probes(quick_engines, small_workspace, tmp_path):
    """The track with recall probes at 30 and 60 s."""
    found = _helper("recall_probes")
    return found.Probes(small_workspace(tmp_path, found.profile(SMALL)))


@pytest.fixture
def small_table():
    """The table of the small profile."""
    return SMALL


@pytest.fixture(scope="session")
def kept_run(tmp_path_factory):
    return tmp_path_factory.mktemp("run") / "data"


@pytest.fixture
def run(quick_engines, small_workspace, kept_run, tmp_path):
    """A run of both tracks in a folder of the test's own; made once, then copied."""
    if not kept_run.exists():
        _planted_run().build(kept_run, small_workspace, quick_engines)
    shutil.copytree(kept_run, tmp_path / "data")
    return small_workspace(tmp_path / "data", _planted_run().three_pairs(small_workspace))
