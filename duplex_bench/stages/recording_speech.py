"""Who speaks and what they say in a user's recording: from labels where there are some, else from our own engines."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from duplex_bench.audio.gate import GateSettings
from duplex_bench.audio.time import to_seconds
from duplex_bench.conversation.annotations import SUFFIXES, AnnotationError, read_annotation
from duplex_bench.conversation.label_types import SPEAKERS, Speaker
from duplex_bench.conversation.sessions import Correction, Rejection, Session, Side
from duplex_bench.conversation.two_channel import SideSource, TwoChannelRules, load_two_channel
from duplex_bench.speech import engines
from duplex_bench.speech.interfaces import Samples, VoiceActivityDetector
from duplex_bench.speech.silero import SileroVoiceActivity
from duplex_bench.stages import progress
from duplex_bench.stages.recording_audio import PARTIES, Party, Recording
from duplex_bench.stages.recording_engines import ChunkedRecogniser, EdgedVoiceActivity, RecordingError, SpeechSettings
from duplex_bench.storage.object_store import FolderStore

SIDE_OF: Final[Mapping[Party, Speaker]] = {"user": "left", "system": "right"}
LICENCE: Final = "not stated: the recording of whoever ran this"
_SYSTEM_NAMES: Final = ("system", "assistant", "agent")


@dataclass(frozen=True, slots=True)
class Speech:
    """A recording as a session (left the user), and why its system's words are not known, if so."""

    session: Session
    no_words: str | None
    notes: tuple[str, ...]


def speech_of(
    recording: Recording,
    files: Sequence[Path],
    labels: Path | None,
    store: FolderStore,
    gate_settings: GateSettings,
    settings: SpeechSettings | None = None,
) -> Speech:
    """Speech and words of both channels.

    Args:
        recording: the stored recording.
        files: the user's files, to name it by and to find labels beside.
        labels: an annotation file for both speakers; None looks for one beside each file.
        store: where recognised words are kept.
        gate_settings: the gate that refines the voice detector's edges.
        settings: numbers.

    Raises:
        AnnotationError: the labels cannot be read or do not name two speakers.
        RecordingError: the recording is no session, or a stretch of it could not be recognised.
    """
    chosen = settings or SpeechSettings()
    annotations, notes = _annotations(files, labels)
    voice = EdgedVoiceActivity(engines.voice_activity(), gate_settings, chosen.reach_s)
    name = " + ".join(path.stem for path in files)
    if recording.duration_s <= chosen.max_words_s:
        recogniser = ChunkedRecogniser(chosen, store)
        session = _loaded(recording, annotations, name, voice, recogniser, chosen)
        return Speech(session, None, notes)
    limit = f"recordings over {chosen.max_words_s / 60:g} min go to no recogniser"
    labelled = _loaded(recording, annotations, name, None, None, chosen) if len(annotations) == len(PARTIES) else None
    if labelled is not None and labelled.right.words:
        return Speech(labelled, None, notes)
    no_words = f"words are not known: {limit}; give labels with words, or cut the recording"
    if labelled is not None:
        return Speech(labelled, no_words, (*notes, no_words))
    sides = {
        party: Side(str(recording.path), place, tuple(_streamed(recording, party, voice)), (), party)
        for place, party in enumerate(PARTIES)
    }
    session = Session(
        name, sides["user"], sides["system"], recording.sample_rate_hz, recording.duration_s, LICENCE,
        corrections=tuple(Correction("speech_by_engine", party, f"speech by {voice.engine_id}") for party in PARTIES),
    )  # fmt: skip
    return Speech(session, no_words, (*notes, no_words))


def _loaded(
    recording: Recording,
    annotations: Mapping[Speaker, SideSource],
    name: str,
    voice: VoiceActivityDetector | None,
    recogniser: ChunkedRecogniser | None,
    settings: SpeechSettings,
) -> Session:
    found = load_two_channel(
        recording.path,
        licence=LICENCE,
        annotations=annotations,
        vad=voice,
        recogniser=recogniser,
        session_id=name,
        rules=TwoChannelRules(max_engine_s=settings.max_words_s),
    )
    if isinstance(found, Rejection):
        raise RecordingError(f"{name}: {found.message}; {found.remedy}")
    named = {f"{recording.path}#{SIDE_OF[party]}": party for party in PARTIES}
    corrections = tuple(dataclasses.replace(one, where=named.get(one.where, one.where)) for one in found.corrections)
    return dataclasses.replace(found, corrections=corrections)


def _annotations(files: Sequence[Path], labels: Path | None) -> tuple[dict[Speaker, SideSource], tuple[str, ...]]:
    """Where the labels of each side are, and a note on who was taken for the user."""
    if labels is None and len(files) == 1:
        labels = _beside(files[0])
    if labels is None:
        sources: dict[Speaker, SideSource] = {}
        for party, path in zip(PARTIES, files, strict=False) if len(files) > 1 else ():
            beside = _beside(path)
            if beside is not None:
                sources[SIDE_OF[party]] = SideSource(beside)
        return sources, tuple(f"{one.path.name} was read as labels" for one in sources.values())
    names = list(read_annotation(labels))
    if len(names) != 2:
        raise AnnotationError(labels, f"has speakers {names}", "give labels of two speakers, the user and the system")
    if set(names) <= set(SPEAKERS):
        user, system = "left", "right"
    else:
        first = names[0].lower()
        user, system = reversed(names) if first in _SYSTEM_NAMES else names
    note = f"{labels.name} was read as labels: {user!r} as the user, {system!r} as the system"
    return {"left": SideSource(labels, speaker=user), "right": SideSource(labels, speaker=system)}, (note,)


def _beside(path: Path) -> Path | None:
    found = (other for other in sorted(path.parent.iterdir()) if other.stem == path.stem)
    return next((other for other in found if other.suffix.lower() in SUFFIXES), None)


def _streamed(recording: Recording, party: Party, voice: EdgedVoiceActivity) -> list[tuple[float, float]]:
    """Speech of one channel of a recording of hours."""
    detector = voice.voice if isinstance(voice.voice, SileroVoiceActivity) else SileroVoiceActivity()
    rate_hz, total = recording.sample_rate_hz, max(1, round(recording.duration_s))

    def told() -> Iterator[Samples]:
        done = 0
        for block in recording.blocks(party):
            yield block
            done += len(block)
            progress.tell(progress.Progress(f"finding the {party}'s speech (s)", min(total, done // rate_hz), total))

    regions = voice.edged(detector.regions_of_blocks(told(), rate_hz), recording.gate[party], rate_hz)
    return [(to_seconds(start, rate_hz), to_seconds(stop, rate_hz)) for start, stop in regions.tolist()]
