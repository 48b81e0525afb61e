"""Any two-channel recording as a session: labels beside it where there are some, own detector and recogniser else."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.files import AudioFileError, AudioInfo, probe, read
from duplex_bench.audio.time import to_seconds
from duplex_bench.conversation.annotations import SUFFIXES, AnnotatedTrack, AnnotationError, read_annotation
from duplex_bench.conversation.label_types import SPEAKERS, Speaker
from duplex_bench.conversation.rights import FILE, LANGUAGES, Rights, read_rights
from duplex_bench.conversation.sessions import Correction, LoadedSessions, Rejection, Session, Side
from duplex_bench.conversation.timed_rows import parse_speech, parse_words, speech_from_words, word_corrections
from duplex_bench.speech.interfaces import Recogniser, VoiceActivityDetector

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg")


@dataclass(frozen=True, slots=True)
class SideSource:
    """Where one side's labels are: an annotation file, what to add to its times, which of its speakers (None: the
    only one).
    """

    path: Path
    offset_s: float = 0.0
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class TwoChannelRules:
    """Numbers of the two-channel loader (ours).

    Attributes:
        bridge_s: speech taken from words joins gaps up to this. 0: such files carry their silences, and the label
            engine closes 250 ms on its own.
        max_engine_s: longer recordings go to no engine, since they would be held in memory; give labels with them.
    """

    bridge_s: float = 0.0
    max_engine_s: float = 3600.0


Annotations = Path | Mapping[Speaker, SideSource]


class _UnusableError(ValueError):
    def __init__(self, rule: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.rule, self.remedy = rule, remedy


def load_two_channel(
    path: Path,
    *,
    licence: str,
    annotations: Annotations | None = None,
    vad: VoiceActivityDetector | None = None,
    recogniser: Recogniser | None = None,
    language: str = "en",
    session_id: str | None = None,
    rules: TwoChannelRules | None = None,
) -> Session | Rejection:
    """One recording as a session, or why not. Channel 0 is left, channel 1 right.

    Args:
        path: a file with two channels.
        licence: of the recording; it goes with every row made from it.
        annotations: one file for both speakers (named left and right, or the first two in the file's order), or a
            source for each side. None looks for a file of the same name (.rttm, .TextGrid, .json).
        vad: finds the speech of a side that has neither speech nor word times.
        recogniser: finds the words of a side that has none.
        language: of the recording.
        session_id: the file's stem by default.
        rules: limits.
    """
    rules = rules or TwoChannelRules()
    try:
        info = probe(path)
        if info.channels != 2:
            message = f"has {info.channels} channel(s)"
            raise _UnusableError("not_two_channels", message, "give one file with one speaker on each of two channels")
        if not licence:
            raise _UnusableError(
                "no_licence", "comes without a licence", "say under which licence it may be used (recordings.csv)"
            )
        if language not in LANGUAGES:
            message = f"is in {language!r}; words can be found and compared in {', '.join(sorted(LANGUAGES))} only"
            raise _UnusableError("language", message, "leave it out")
        tracks = _tracks(path, annotations)
        loaded = _Loader(path, info, vad, recogniser, rules)
        corrections: list[Correction] = []
        sides = {
            speaker: loaded.side(channel, speaker, *tracks[speaker], corrections)
            for channel, speaker in enumerate(SPEAKERS)
        }
    except _UnusableError as error:
        return Rejection(str(path), error.rule, str(error), error.remedy)
    except AudioFileError as error:
        return Rejection(str(path), "bad_audio", str(error), "see the message")
    except AnnotationError as error:
        return Rejection(str(path), "bad_annotation", str(error), "see the message")
    return Session(
        session_id or path.stem, sides["left"], sides["right"], info.sample_rate_hz, info.duration_s, licence, language,
        tuple(corrections),
    )  # fmt: skip


def load_two_channel_folder(
    folder: Path,
    *,
    licence: str,
    vad: VoiceActivityDetector | None = None,
    recogniser: Recogniser | None = None,
    language: str = "en",
    rules: TwoChannelRules | None = None,
) -> LoadedSessions:
    """Every recording of a folder, in the order of names, each a session or a rejection.

    A row of ``recordings.csv`` says licence and language of its file; ``licence`` and ``language`` are those of files
    without a row.

    Raises:
        FileNotFoundError: there is no such folder.
        RightsError: a ``recordings.csv`` that cannot be read.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    given, others = read_rights(folder), Rights(licence, language)
    paths = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in AUDIO_SUFFIXES]
    outcomes: list[Session | Rejection] = []
    for path in paths:
        one = given.get(path.name, others)
        outcomes.append(
            load_two_channel(
                path, licence=one.licence, vad=vad, recogniser=recogniser, language=one.language, rules=rules
            )
        )
    absent = sorted(given.keys() - {path.name for path in paths})
    outcomes += [
        Rejection(str(folder / name), "missing", f"is named in {FILE} and not there", "correct its name there")
        for name in absent
    ]
    return LoadedSessions(
        tuple(outcome for outcome in outcomes if isinstance(outcome, Session)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, Rejection)),
    )


_Named = tuple[str, AnnotatedTrack, float]


def _tracks(path: Path, annotations: Annotations | None) -> dict[Speaker, _Named]:
    """Name, rows and time offset of each side."""
    if annotations is None:
        beside = [found for found in path.parent.iterdir() if found.stem == path.stem]
        annotations = next((found for found in sorted(beside) if found.suffix.lower() in SUFFIXES), None)
    if annotations is None:
        return {speaker: (speaker, AnnotatedTrack(), 0.0) for speaker in SPEAKERS}
    if isinstance(annotations, Path):
        found = read_annotation(annotations)
        names = list(SPEAKERS) if set(found) <= set(SPEAKERS) else list(found)
        if len(names) != 2:
            raise AnnotationError(annotations, f"has speakers {names}", "give it two, or a source for each side")
        return {
            speaker: (str(name), found.get(name, AnnotatedTrack()), 0.0)
            for speaker, name in zip(SPEAKERS, names, strict=True)
        }
    return {speaker: _sourced(speaker, annotations.get(speaker)) for speaker in SPEAKERS}


def _sourced(speaker: Speaker, source: SideSource | None) -> _Named:
    if source is None:
        return speaker, AnnotatedTrack(), 0.0
    found = read_annotation(source.path)
    name = source.speaker if source.speaker is not None else next(iter(found), "")
    if name not in found or (source.speaker is None and len(found) > 1):
        raise AnnotationError(source.path, f"has speakers {list(found)}", f"name the one that is {speaker}")
    return name or speaker, found[name], source.offset_s


@dataclass(slots=True)
class _Loader:
    path: Path
    info: AudioInfo
    vad: VoiceActivityDetector | None
    recogniser: Recogniser | None
    rules: TwoChannelRules
    samples: npt.NDArray[np.float32] | None = None

    def side(
        self, channel: int, speaker: Speaker, name: str, track: AnnotatedTrack, offset_s: float,
        corrections: list[Correction],
    ) -> Side:  # fmt: skip
        where = f"{self.path}#{speaker}"
        rows = [
            (text, _later(start, offset_s), _later(end, offset_s), score) for text, start, end, score in track.words
        ]
        words = parse_words(rows, self.info.duration_s)
        corrections.extend(word_corrections(words, where))
        if track.words_spread:
            corrections.append(Correction("words_spread", where, "only utterances have times: words spread over them"))
        pairs = [(_later(start, offset_s), _later(end, offset_s)) for start, end in track.speech]
        speech, dropped = parse_speech(pairs, self.info.duration_s)
        if dropped:
            message = f"{dropped} speech rows are null, backwards or outside the audio: dropped"
            corrections.append(Correction("bad_speech_rows", where, message))
        timed, untimed = words.timed, words.untimed
        if not rows and self.recogniser is not None:
            heard = self.recogniser.words(self._channel(channel), self.info.sample_rate_hz)
            found = parse_words([(w.text, w.start_s, w.end_s, None) for w in heard], self.info.duration_s)
            timed, untimed = found.timed, found.untimed
            corrections.extend(word_corrections(found, where))
            corrections.append(Correction("words_by_engine", where, f"words by {self.recogniser.engine_id}"))
        if not speech and self.vad is not None and not words.timed:
            regions = self.vad.speech_regions(self._channel(channel), self.info.sample_rate_hz)
            rate = self.info.sample_rate_hz
            speech = [(to_seconds(start, rate), to_seconds(stop, rate)) for start, stop in regions.tolist()]
            corrections.append(Correction("speech_by_engine", where, f"speech by {self.vad.engine_id}"))
        elif not speech and timed:
            speech = speech_from_words(timed, self.rules.bridge_s)
            corrections.append(Correction("speech_from_words", where, "speech taken from the times of the words"))
        elif not speech and self.vad is None and not rows and not pairs:
            raise _UnusableError(
                "no_speech_source", f"has neither labels nor an engine for the {speaker} channel",
                "give annotations, or a voice activity detector",
            )  # fmt: skip
        return Side(str(self.path), channel, tuple(speech), tuple(timed), name, tuple(untimed))

    def _channel(self, channel: int) -> npt.NDArray[np.float32]:
        if self.samples is None:
            self.samples, _ = read(self.path, channels=2, max_duration_s=self.rules.max_engine_s)
        return np.ascontiguousarray(self.samples[:, channel])


def _later(value: object, offset_s: float) -> object:
    return value + offset_s if isinstance(value, (int, float)) and not isinstance(value, bool) else value
