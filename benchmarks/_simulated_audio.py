"""The audio steps of a run, replaced by ones that cost nothing: what is left is the benchmark's own work.

Audio has 1,000 samples a second, so that an hour of it is read and written in milliseconds. A rollout stores audio
and events of its own, made from its key; the gate hears that audio, the voice detector's intervals are the gate's,
and words lie inside them.
"""

import gzip
import json
from functools import cache

import numpy as np

from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Stimulus
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.rollouts import RolloutRecord
from duplex_bench.records.transcripts import Activity, Transcript
from duplex_bench.rollout.record import EVENTS_KIND
from duplex_bench.speech import engines
from duplex_bench.stages import rollout_tasks
from duplex_bench.stages.profile import SpeechSettings
from duplex_bench.stages.rollout_tasks import ListenTask, RolloutTask
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.digests import canonical_json, generator_from, stimulus_digest
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import from_json, to_json

RATE_HZ = 1_000
TAIL_S = 5.0
LOST_SHARE = 0.002
VOCABULARY = ("fifteen", "leashes", "are", "in", "the", "laundry", "and", "two", "more", "at", "the", "front", "desk")


def replace_audio_steps() -> None:
    """Make the stages of this process, and the workers they start, use the steps of this module."""
    rollout_tasks.run_rollout = run_rollout
    rollout_tasks.measure_activity = measure_activity
    rollout_tasks.transcribe = transcribe


@cache
def _eagerness(card: str) -> float:
    return float(json.loads(card)["settings"]["eagerness"])


def run_rollout(data: str, card: str, name: str, task: RolloutTask) -> str:
    """A rollout whose system speaks at drawn times; the RolloutRecord as JSON."""
    stimulus = from_json(Stimulus, task.stimulus)
    blobs = BlobStore(open_store(data))
    rng = generator_from("simulated rollout", task.rollout_key)
    lost = rng.random() < LOST_SHARE
    live_s = stimulus.live.n_samples / stimulus.live.sample_rate_hz
    length_s = live_s + TAIL_S
    audio = np.zeros(round(length_s * RATE_HZ), np.int16)
    events: list[dict[str, object]] = [{"kind": "rollout", "outcome": "completed", "timeline_s": length_s}]
    at_s = float(rng.uniform(0.0, 6.0))
    while at_s < length_s - 0.5:
        stop_s = min(at_s + float(rng.uniform(0.5, 4.0)), length_s)
        if rng.random() < _eagerness(card):
            audio[round(at_s * RATE_HZ) : round(stop_s * RATE_HZ)] = rng.integers(2_000, 6_000)
            events.append({"kind": "response", "at_s": at_s, "stop_s": stop_s, "response_id": f"r{len(events)}"})
        at_s = stop_s + float(rng.uniform(1.0, 6.0))
    text = "".join(canonical_json(event) + "\n" for event in events)
    # A pause and a lost connection both end without a word of the system.
    outcome = Outcome.REFUSED if lost else Outcome.COMPLETED
    return to_json(
        RolloutRecord(
            task.rollout_key, name, stimulus_digest(stimulus), task.repeat, outcome, "drawn" if lost else "",
            None if lost else blobs.put_audio(audio[:, None], RATE_HZ), RATE_HZ, length_s, live_s,
            blobs.put(gzip.compress(text.encode(), mtime=0), EVENTS_KIND), 0.0, 0.0,
        )
    )  # fmt: skip


def _heard_s(data: str, audio: str | None, gate: GateSettings) -> list[tuple[float, float]]:
    if audio is None:
        return []
    samples, rate = BlobStore(open_store(data)).read_audio(audio)
    return [(float(start_s), float(stop_s)) for start_s, stop_s in intervals_s(from_pcm16(samples[:, 0]), rate, gate)]


def measure_activity(data: str, gate: GateSettings, speech: SpeechSettings, task: ListenTask) -> str:
    """The gate's intervals, which stand for the voice detector's too; the Activity as JSON."""
    del speech
    heard = tuple(_heard_s(data, task.listener_audio, gate))
    return to_json(
        Activity(task.rollout_key, heard, heard, gate.threshold, gate.release_ratio, gate.min_duration_s, "simulated")
    )


def transcribe(data: str, speech: SpeechSettings, task: ListenTask) -> str:
    """Four words a second where the gate is open; the Transcript as JSON."""
    rng = generator_from("simulated words", task.rollout_key)
    words = [
        TimedWord(VOCABULARY[int(rng.integers(len(VOCABULARY)))], float(at_s), float(at_s) + 0.22)
        for start_s, stop_s in _heard_s(data, task.listener_audio, GateSettings())
        for at_s in np.arange(start_s + 0.02, stop_s - 0.24, 0.25)
    ]
    return to_json(Transcript(task.rollout_key, tuple(words), engines.recogniser(speech.recogniser).engine_id))
