"""What was measured on the audio of a rollout before anything is judged."""

from dataclasses import dataclass

from duplex_bench.records.audio import TimedWord


@dataclass(frozen=True, slots=True)
class Activity:
    """Speech intervals of a rollout's listener audio, in seconds, by the energy gate and by the voice detector."""

    rollout_key: str
    gate_s: tuple[tuple[float, float], ...]
    vad_s: tuple[tuple[float, float], ...]
    gate_threshold: float
    gate_release_ratio: float
    gate_min_duration_s: float
    vad_engine: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """Words of a rollout's listener audio. ``engine`` names recogniser and aligner with their versions."""

    rollout_key: str
    words: tuple[TimedWord, ...]
    engine: str
