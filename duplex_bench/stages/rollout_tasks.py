"""Work on one rollout, as functions that a worker process can be handed by name."""

import atexit
import contextlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import System
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Stimulus
from duplex_bench.records.outcome import RETRIED_OUTCOMES
from duplex_bench.records.transcripts import Activity, Transcript
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.record import run_item
from duplex_bench.rollout.session_loop import SessionLoop
from duplex_bench.speech import engines
from duplex_bench.stages.profile import SpeechSettings
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import open_system


@dataclass(frozen=True, slots=True)
class RolloutTask:
    """One run to make: the stimulus as JSON is all that crosses to the system's side, its word times only if taken."""

    rollout_key: str
    stimulus: str
    plan: StreamPlan
    repeat: int
    attempts: int
    word_times: bool = False


@dataclass(frozen=True, slots=True)
class ListenTask:
    """One rollout's listener audio to measure; ``listener_audio`` is None when nothing was ever heard."""

    rollout_key: str
    listener_audio: str | None


# A worker process opens each system once and closes it at its end.
_opened = contextlib.ExitStack()
atexit.register(_opened.close)


@cache
def _system(data: str, card: str) -> System | PushSystem:
    described = SystemCard.model_validate_json(card)
    return _opened.enter_context(open_system(described, store=open_store(data), cache_folder=Path(data) / "cache"))


def run_rollout(data: str, card: str, name: str, task: RolloutTask) -> str:
    """Run one system on one stimulus and store what was heard; the RolloutRecord as JSON."""
    return run_on(_system(data, card), data, name, task)


def run_on(
    system: System | PushSystem, data: str, name: str, task: RolloutTask, sessions: SessionLoop | None = None
) -> str:
    """``run_rollout`` on a system that is open already; its session runs in ``sessions``, if given."""
    stimulus = from_json(Stimulus, task.stimulus)
    record = run_item(
        system,
        stimulus if task.word_times else replace(stimulus, history_words=()),
        BlobStore(open_store(data)),
        system_name=name,
        rollout_key=task.rollout_key,
        plan=task.plan,
        repeat=task.repeat,
        max_attempts=task.attempts,
        sessions=sessions,
    )
    return to_json(record)


def _heard(data: str, digest: str) -> tuple[np.ndarray, int]:
    samples, rate = BlobStore(open_store(data)).read_audio(digest)
    return from_pcm16(samples[:, 0]), rate


def measure_activity(data: str, gate: GateSettings, speech: SpeechSettings, task: ListenTask) -> str:
    """Speech intervals of what was heard, by energy gate and voice detector; the Activity as JSON."""
    detector = engines.voice_activity(speech.voice_activity)
    gate_s: tuple[tuple[float, float], ...] = ()
    vad_s: tuple[tuple[float, float], ...] = ()
    if task.listener_audio is not None:
        samples, rate = _heard(data, task.listener_audio)
        gate_s = _pairs(intervals_s(samples, rate, gate))
        if gate_s:
            vad_s = _pairs(detector.speech_regions(samples, rate) / rate)
    activity = Activity(
        task.rollout_key,
        gate_s,
        vad_s,
        gate.threshold,
        gate.release_ratio,
        gate.min_duration_s,
        detector.engine_id,
    )
    return to_json(activity)


def transcribe(data: str, speech: SpeechSettings, task: ListenTask) -> str:
    """Words of what was heard; the Transcript as JSON. Equal stretches of sound are recognised once for all systems."""
    recogniser = engines.recogniser(speech.recogniser, open_store(data))
    words: tuple[TimedWord, ...] = ()
    if task.listener_audio is not None:
        samples, rate = _heard(data, task.listener_audio)
        if np.any(samples):
            words = recogniser.words(samples, rate)
    return to_json(Transcript(task.rollout_key, words, recogniser.engine_id))


def _pairs(intervals: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple((float(start), float(stop)) for start, stop in intervals)


def is_final(payload: str) -> bool:
    """Whether a rollout record is kept for good; what failed in transport is tried again by the next run."""
    return json.loads(payload)["outcome"] not in RETRIED_OUTCOMES
