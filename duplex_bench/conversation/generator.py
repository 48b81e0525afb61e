"""Synthetic sessions on disk: the Seamless Interaction layout, with the planted truth in a file of its own.

``<root>/corpus/`` is what a loader is given (labels, splits, batches, archives, ``filelist.csv`` and the three other
tables); ``<root>/truth.json`` lies outside it. Format: corpora-and-models reference, sections A.2 to A.5 and A.8.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import soundfile

from duplex_bench.audio.files import write_atomic
from duplex_bench.audio.mixing import place
from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.conversation.generator_faults import FAULTS, Fault, SideFiles, apply_fault, header_only_wav
from duplex_bench.conversation.generator_plan import ClipTiming, PlannedSession, PlanSettings, plan_session
from duplex_bench.conversation.label_types import SPEAKERS, Speaker, Word
from duplex_bench.speech.interfaces import TextToSpeech
from duplex_bench.storage.digests import generator_from
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json

LABEL: Final = "naturalistic"
SPLIT: Final = "dev"
CORPUS_FOLDER: Final = "corpus"
TRUTH_FILE: Final = "truth.json"

_FADE_S = 0.004
_SEGMENT_GAP_S = 0.8
_SEGMENT_MAX_S = 15.0
# Prompt hashes are reused between sessions, session and participant numbers between vendors, as in the corpus.
_INTERACTIONS = ("00000582", "00000009", "00001203")
_UNUSED_CHARADES = "00000777"
_BATCH = 0


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


class _Voices:
    """Clips of one engine at the session's rate, and their timing for the planner; each text is spoken once."""

    def __init__(self, tts: TextToSpeech, sample_rate_hz: int) -> None:
        self._tts = tts
        self._rate = sample_rate_hz
        self._clips: dict[tuple[str, str], tuple[npt.NDArray[np.float32], ClipTiming]] = {}

    def timing(self, text: str, voice: str) -> ClipTiming:
        return self._clip(text, voice)[1]

    def samples(self, text: str, voice: str) -> npt.NDArray[np.float32]:
        return self._clip(text, voice)[0]

    def _clip(self, text: str, voice: str) -> tuple[npt.NDArray[np.float32], ClipTiming]:
        key = (text, voice)
        if key not in self._clips:
            spoken = self._tts.speak(text, voice)
            # Whole 0.1 ms, as the corpus writes times: places and lengths then add up exactly.
            duration = int(len(spoken.samples) / spoken.sample_rate_hz * 1e4) / 1e4
            starts = _word_starts(text, spoken.word_starts_s, duration)
            samples = resample(spoken.samples, spoken.sample_rate_hz, self._rate)
            self._clips[key] = (samples, ClipTiming(duration, starts))
        return self._clips[key]


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
    voices = settings.voices or tuple(tts.voices)
    if len(voices) < 2:
        raise ValueError(f"two speakers need two voices, got {voices}: name at least two of {tuple(tts.voices)}")
    if len(faults) > settings.n_sessions:
        raise ValueError(f"{len(faults)} faults need as many sessions, got {settings.n_sessions}: ask for more")
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        raise ValueError(f"no fault named {unknown[0]!r}: choose of {', '.join(FAULTS)}")
    engine = _Voices(tts, settings.sample_rate_hz)
    store = FolderStore(root)
    planted: list[PlantedSession] = []
    listed: list[SideFiles] = []
    for number in range(settings.n_sessions):
        session = _planned(number, settings, voices, engine, faults[number] if number < len(faults) else None)
        sides = _sides(number, session, settings, engine)
        if session.fault is not None:
            apply_fault(session.fault, *sides, settings.sample_rate_hz)
        for side in sides:
            if side.written:
                _write_side(store, root, side, settings.sample_rate_hz)
        listed.extend(side for side in sides if side.listed)
        planted.append(session)
    _write_tables(store, listed)
    store.put(TRUTH_FILE, to_json({"version": 1, "sessions": planted}).encode())
    return planted


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
    key = f"V{vendor:02d}_S{session:04d}_I{_INTERACTIONS[number % len(_INTERACTIONS)]}"
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


def _write_side(store: FolderStore, root: Path, side: SideFiles, sample_rate_hz: int) -> None:
    key = f"{CORPUS_FOLDER}/{LABEL}/{SPLIT}/{_BATCH:04d}/{side.archive:04d}/{side.file_id}"
    if side.form == "header_only":
        store.put(f"{key}.wav", header_only_wav(sample_rate_hz))
    elif side.form == "float32":
        buffer = io.BytesIO()
        soundfile.write(buffer, side.samples, sample_rate_hz, format="WAV", subtype="FLOAT")
        store.put(f"{key}.wav", buffer.getvalue())
    else:
        write_atomic(root / f"{key}.wav", side.samples, sample_rate_hz)
    text = json.dumps(side.note, indent=4)
    store.put(f"{key}.json", (text[: len(text) // 2] if side.cut_json else text).encode())


def _write_tables(store: FolderStore, sides: list[SideFiles]) -> None:
    """The four tables of the corpus, with its habits: quoted line breaks, vendors with and without the V."""
    types = ("ipc_conversation", "grounded_gesture", "collaborative_storytelling", "charades")
    prompts = [
        [number, key, number, "Talk about\nsomething you like.", "Listen\nand ask.", "APCP", "APCP", types[number]]
        for number, key in enumerate((*_INTERACTIONS, _UNUSED_CHARADES))
    ]
    people = sorted({tuple(side.file_id.replace("V", "").replace("P", "").split("_")) for side in sides})
    sessions = sorted({tuple(side.file_id.split("_")[:2]) for side in sides})
    tables: dict[str, tuple[list[str], list[list[Any]]]] = {
        "filelist.csv": (
            ["file_id", "label", "split", "batch_idx", "archive_idx"],
            [[side.file_id, LABEL, SPLIT, _BATCH, side.archive] for side in sides],
        ),
        "interactions.csv": (
            ["", "prompt_hash", "prompt_id_unique", "participant_a_prompt_text", "participant_b_prompt_text",
             "ipc_a", "ipc_b", "interaction_type"],
            prompts,
        ),
        "participants.csv": (
            ["vendor_id", "participant_id", "extraversion_raw"],
            [[person[0], person[3], "Undisclosed"] for person in people],
        ),
        "relationships.csv": (
            ["vendor_id", "session_id", "relationship", "relationship_detail"],
            [[vendor, session[1:], "stranger", "stranger"] for vendor, session in sessions],
        ),
    }  # fmt: skip
    for name, (header, rows) in tables.items():
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        store.put(f"{CORPUS_FOLDER}/{name}", buffer.getvalue().encode())
