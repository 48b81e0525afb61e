"""Synthetic sessions on disk: the Seamless Interaction layout, with the planted truth in a file of its own.

``<root>/corpus/`` is what a loader is given (labels, splits, batches, archives, ``filelist.csv`` and the three other
tables); ``<root>/truth.json`` lies outside it. Format: corpora-and-models reference, sections A.2 to A.5 and A.8.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.mixing import place
from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.conversation.generator_faults import FAULTS, Fault, SideFiles, apply_fault
from duplex_bench.conversation.generator_files import (
    CORPUS_FOLDER,
    INTERACTIONS,
    LABEL,
    SPLIT,
    ListedSide,
    write_side,
    write_tables,
)
from duplex_bench.conversation.generator_plan import ClipTiming, PlannedSession, PlanSettings, plan_session
from duplex_bench.conversation.label_types import SPEAKERS, Speaker, Word
from duplex_bench.speech.interfaces import TextToSpeech
from duplex_bench.storage.digests import generator_from
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json

TRUTH_FILE: Final = "truth.json"

__all__ = ["CORPUS_FOLDER", "LABEL", "SPLIT", "TRUTH_FILE", "GeneratorSettings", "PlantedSession", "SessionWriter"]

_FADE_S = 0.004
_SEGMENT_GAP_S = 0.8
_SEGMENT_MAX_S = 15.0
# Clips kept in memory: the voices of a session of some minutes; others are spoken, or read from a cache, again.
_CLIPS_KEPT_S = 600.0


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """What to generate.

    Attributes:
        n_sessions: how many sessions.
        seed: all choices follow from it and the session's number.
        minutes: length aimed at for each session.
        sample_rate_hz: the corpus has 48 kHz; 24 kHz halves the disk.
        noise_dbfs: level of the background noise on each side (ours), so that silence is not digital zero.
        voices: voices to cast; empty means all that the engine has.
        plan: shares and lengths; its ``target_s`` is replaced by ``minutes``.
    """

    n_sessions: int = 6
    seed: int = 0
    minutes: float = 1.75
    sample_rate_hz: int = 48000
    noise_dbfs: float = -72.0
    voices: tuple[str, ...] = ()
    plan: PlanSettings = field(default_factory=PlanSettings)

    def __post_init__(self) -> None:
        if self.n_sessions < 1 or self.minutes <= 0 or self.sample_rate_hz < 8000:
            raise ValueError(
                f"generator settings ask for {self.n_sessions} sessions of {self.minutes} minutes at "
                f"{self.sample_rate_hz} Hz: give at least one, a length above 0 and 8000 Hz or more"
            )


@dataclass(frozen=True, slots=True)
class PlantedSession:
    """One generated session: its ids, voices, the plan (clips, true labels, facts) and the fault made in it."""

    session_id: str
    left_file_id: str
    right_file_id: str
    left_voice: str
    right_voice: str
    plan: PlannedSession
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class WrittenSession:
    """What is left to tell of a session once its files are written."""

    planted: PlantedSession
    listed: tuple[ListedSide, ...]


class _Voices:
    """Clips of one engine at the session's rate, and their timing for the planner."""

    def __init__(self, tts: TextToSpeech, sample_rate_hz: int) -> None:
        self._tts = tts
        self._rate = sample_rate_hz
        self._timings: dict[tuple[str, str], ClipTiming] = {}
        self._clips: OrderedDict[tuple[str, str], npt.NDArray[np.float32]] = OrderedDict()
        self._kept = 0

    def timing(self, text: str, voice: str) -> ClipTiming:
        if (text, voice) not in self._timings:
            self._speak(text, voice)
        return self._timings[text, voice]

    def samples(self, text: str, voice: str) -> npt.NDArray[np.float32]:
        if (text, voice) not in self._clips:
            self._speak(text, voice)
        self._clips.move_to_end((text, voice))
        return self._clips[text, voice]

    def _speak(self, text: str, voice: str) -> None:
        spoken = self._tts.speak(text, voice)
        # Whole 0.1 ms, as the corpus writes times: places and lengths then add up exactly.
        duration = int(len(spoken.samples) / spoken.sample_rate_hz * 1e4) / 1e4
        self._timings[text, voice] = ClipTiming(duration, _word_starts(text, spoken.word_starts_s, duration))
        clip = resample(spoken.samples, spoken.sample_rate_hz, self._rate)
        self._clips[text, voice] = clip
        self._kept += len(clip)
        while len(self._clips) > 1 and self._kept > _CLIPS_KEPT_S * self._rate:
            self._kept -= len(self._clips.popitem(last=False)[1])


class SessionWriter:
    """Writes single sessions of one corpus: the same bytes in whatever order, and in whatever process of one machine.

    ``generate`` and ``finish`` say what a whole corpus needs.
    """

    def __init__(self, settings: GeneratorSettings, tts: TextToSpeech, root: Path) -> None:
        """Cast the voices.

        Args:
            settings: how many, how long, from which seed.
            tts: the voices.
            root: folder to write into.

        Raises:
            ValueError: fewer than two voices.
        """
        self._voices = settings.voices or tuple(tts.voices)
        if len(self._voices) < 2:
            raise ValueError(
                f"two speakers need two voices, got {self._voices}: name at least two of {tuple(tts.voices)}"
            )
        self._settings = settings
        self._engine = _Voices(tts, settings.sample_rate_hz)
        self._root = root
        self._store = FolderStore(root)

    def write(self, number: int, fault: Fault | None = None) -> WrittenSession:
        """Plan, render and write session ``number`` (from 0), with ``fault`` made in it."""
        session = _planned(number, self._settings, self._voices, self._engine, fault)
        sides = _sides(number, session, self._settings, self._engine)
        if fault is not None:
            apply_fault(fault, *sides, self._settings.sample_rate_hz)
        for side in sides:
            if side.written:
                write_side(self._store, self._root, side, self._settings.sample_rate_hz)
        # The samples of a corpus of hours are not held.
        return WrittenSession(session, tuple(ListedSide(side.file_id, side.archive) for side in sides if side.listed))


def finish(root: Path, written: Sequence[WrittenSession]) -> list[PlantedSession]:
    """Write the tables and the truth of a corpus whose sessions are there, in order of their numbers."""
    store = FolderStore(root)
    write_tables(store, [side for session in written for side in session.listed])
    planted = [session.planted for session in written]
    store.put(TRUTH_FILE, to_json({"version": 1, "sessions": planted}).encode())
    return planted


def generate(
    settings: GeneratorSettings, tts: TextToSpeech, root: Path, faults: Sequence[Fault] = ()
) -> list[PlantedSession]:
    """Writes a corpus of synthetic sessions and its truth; the same bytes for the same arguments on one machine.

    Args:
        settings: how many, how long, from which seed.
        tts: the voices.
        root: folder to write into: ``corpus/`` and ``truth.json``.
        faults: the first session gets the first fault, and so on; the others are clean.

    Raises:
        ValueError: an unknown fault or voice, more faults than sessions, or fewer than two voices.
    """
    if len(faults) > settings.n_sessions:
        raise ValueError(f"{len(faults)} faults need as many sessions, got {settings.n_sessions}: ask for more")
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        raise ValueError(f"no fault named {unknown[0]!r}: choose of {', '.join(FAULTS)}")
    writer = SessionWriter(settings, tts, root)
    numbered = zip_longest(range(settings.n_sessions), faults)
    return finish(root, [writer.write(number, fault) for number, fault in numbered])


def read_truth(root: Path) -> list[PlantedSession]:
    """The planted truth below ``root``, as ``generate`` returned it.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file is not one that this version wrote.
    """
    return from_json(_Truth, (root / TRUTH_FILE).read_bytes()).sessions


@dataclass(frozen=True, slots=True)
class _Truth:
    version: int
    sessions: list[PlantedSession]


def _planned(
    number: int, settings: GeneratorSettings, voices: tuple[str, ...], engine: _Voices, fault: Fault | None
) -> PlantedSession:
    cast: dict[Speaker, str] = {
        "left": voices[number % len(voices)],
        "right": voices[(number + 1 + number // len(voices) % (len(voices) - 1)) % len(voices)],
    }
    rng = generator_from("synthetic-session/1", settings.seed, number)
    plan = plan_session(rng, cast, engine.timing, replace(settings.plan, target_s=settings.minutes * 60))
    vendor, session = number % 2, number // 2 + 1
    key = f"V{vendor:02d}_S{session:04d}_I{INTERACTIONS[number % len(INTERACTIONS)]}"
    suffix = "A" if number % 5 == 1 else ""
    first = 2 * (number // 2) + 1
    return PlantedSession(
        key, f"{key}_P{first:04d}{suffix}", f"{key}_P{first + 1:04d}", cast["left"], cast["right"], plan, fault
    )


def _sides(
    number: int, session: PlantedSession, settings: GeneratorSettings, engine: _Voices
) -> tuple[SideFiles, SideFiles]:
    made = []
    for speaker in SPEAKERS:
        file_id = session.left_file_id if speaker == "left" else session.right_file_id
        voice = session.left_voice if speaker == "left" else session.right_voice
        # The two sides of every third session lie in different archives of the batch.
        archive = number % 2 if speaker == "left" or number % 3 else (number + 1) % 2
        rng = generator_from("synthetic-noise/1", settings.seed, number, speaker)
        samples = _rendered(session.plan, speaker, voice, engine, settings, rng)
        made.append(SideFiles(file_id, archive, samples, _note(file_id, session.plan, speaker)))
    return made[0], made[1]


def _rendered(
    plan: PlannedSession, speaker: Speaker, voice: str, engine: _Voices, settings: GeneratorSettings,
    rng: np.random.Generator,
) -> npt.NDArray[np.float32]:  # fmt: skip
    rate = settings.sample_rate_hz
    total = to_samples(plan.duration_s, rate)
    parts = []
    for clip in plan.clips:
        if clip.speaker == speaker:
            samples = engine.samples(clip.text, voice)
            part = samples[to_samples(clip.from_s, rate) : to_samples(clip.to_s, rate)]
            start = to_samples(clip.start_s, rate)
            parts.append((start, _faded(part, rate)[: total - start]))
    noise = rng.standard_normal(total, dtype=np.float32) * np.float32(10 ** (settings.noise_dbfs / 20))
    mixed: npt.NDArray[np.float32] = np.clip(place(parts, total).samples + noise, -1.0, 1.0)
    return mixed


def _faded(samples: npt.NDArray[np.float32], sample_rate_hz: int) -> npt.NDArray[np.float32]:
    """A cut through running speech would click."""
    n = min(to_samples(_FADE_S, sample_rate_hz), len(samples) // 2)
    faded = samples.copy()
    if n:
        ramp = np.linspace(0.0, 1.0, n, dtype=np.float32)
        faded[:n] *= ramp
        faded[-n:] *= ramp[::-1]
    return faded


def _note(file_id: str, plan: PlannedSession, speaker: Speaker) -> dict[str, Any]:
    track = plan.track(speaker)
    return {
        "id": file_id,
        "metadata:vad": [{"start": start, "end": end} for start, end in track.speech],
        "metadata:transcript": [_segment(words) for words in _segments(track.words)],
    }


def _segments(words: Sequence[Word]) -> list[list[Word]]:
    segments: list[list[Word]] = []
    for word in words:
        last = segments[-1] if segments else None
        if last and word.start_s - last[-1].end_s <= _SEGMENT_GAP_S and word.end_s - last[0].start_s <= _SEGMENT_MAX_S:
            last.append(word)
        else:
            segments.append([word])
    return segments


def _segment(words: list[Word]) -> dict[str, Any]:
    return {
        "start": words[0].start_s,
        "end": words[-1].end_s,
        "transcript": " ".join(word.text for word in words),
        "words": [{"word": w.text, "start": w.start_s, "end": w.end_s, "score": w.score} for w in words],
    }


def _word_starts(text: str, known: tuple[float, ...], duration_s: float) -> tuple[float, ...]:
    """Starts of the words at spaces: the engine's own where it has one for each, else spread by letters."""
    words = text.split()
    if len(known) == len(words):
        return tuple(min(int(start * 1e4) / 1e4, duration_s) for start in known)
    lengths = np.array([0, *(len(word) + 1 for word in words)])
    shares = np.cumsum(lengths)[:-1] / lengths.sum()
    return tuple(round(float(share) * duration_s, 4) for share in shares)
