"""One participant of one interaction: the WAV and the JSON of the Seamless Interaction release, with known faults.

Schema and faults: corpora-and-models reference, sections A.4 to A.6.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duplex_bench.audio.files import AudioFileError, AudioInfo, probe
from duplex_bench.conversation.sessions import Correction, Rejection, Side
from duplex_bench.conversation.timed_rows import (
    Intervals,
    parse_speech,
    parse_words,
    speech_from_words,
    word_corrections,
)

# A float WAV's header alone: such files are "no audio" (A.5).
_HEADER_BYTES = 58


class SideError(ValueError):
    """A side that cannot be used; carries the rejection."""

    def __init__(self, where: Path, rule: str, message: str, remedy: str) -> None:
        super().__init__(f"{where}: {message}; {remedy}")
        self.rejection = Rejection(str(where), rule, message, remedy)


@dataclass(frozen=True, slots=True)
class SideRules:
    """Numbers of the repairs of one side.

    Attributes:
        bridge_s: where speech is taken from words, gaps up to this are bridged (reference A.6).
        vad_early_s: words going on for longer than this after the last voice activity show that it stops early (ours).
    """

    bridge_s: float = 0.5
    vad_early_s: float = 2.0


@dataclass(frozen=True, slots=True)
class LoadedSide:
    """A side with the header of its audio and what was repaired."""

    side: Side
    audio: AudioInfo
    corrections: tuple[Correction, ...]


def load_side(wav: Path, note: Path, file_id: str, participant: str, rules: SideRules) -> LoadedSide:
    """Speech and words of one participant.

    Raises:
        SideError: no audio, no JSON, or neither speech nor timed words in it.
    """
    audio = _audio(wav)
    record = _record(note, file_id)
    where = str(note)
    corrections: list[Correction] = []
    if "metadata:transcript" not in record:
        corrections.append(Correction("no_transcript", where, "the key metadata:transcript is absent: no words"))
    words = parse_words(_word_rows(record, note), audio.duration_s)
    corrections.extend(word_corrections(words, where))
    speech, dropped = parse_speech(_speech_rows(record, note), audio.duration_s)
    if dropped:
        message = f"{dropped} voice activity rows are null, backwards or outside the audio: dropped"
        corrections.append(Correction("bad_vad_rows", where, message))
    from_words = speech_from_words(words.timed, rules.bridge_s)
    if not speech and not from_words:
        raise SideError(note, "no_speech", "holds neither voice activity nor timed words", "leave the pair out")
    if not speech:
        message = f"voice activity is empty: taken from words, gaps up to {rules.bridge_s} s bridged"
        corrections.append(Correction("speech_from_words", where, message))
        speech = from_words
    else:
        speech = _extended(speech, from_words, rules, where, corrections)
    side = Side(str(wav), 0, tuple(speech), tuple(words.timed), participant, tuple(words.untimed))
    return LoadedSide(side, audio, tuple(corrections))


def _audio(wav: Path) -> AudioInfo:
    if not wav.is_file():
        raise SideError(wav, "missing_audio", "there is no WAV beside the JSON", "download the file set again")
    if wav.stat().st_size <= _HEADER_BYTES:
        size = wav.stat().st_size
        raise SideError(wav, "empty_audio", f"holds only a header ({size} bytes)", "the release has no audio for it")
    try:
        info = probe(wav)
    except AudioFileError as error:
        raise SideError(wav, "bad_audio", str(error), "download it again") from error
    if info.channels != 1:
        raise SideError(wav, "not_mono", f"has {info.channels} channels", "use the two-channel loader for it")
    return info


def _record(note: Path, file_id: str) -> dict[str, Any]:
    if not note.is_file():
        raise SideError(note, "missing_json", "there is no JSON beside the WAV", "download the file set again")
    try:
        record = json.loads(note.read_bytes())
    except ValueError as error:
        raise SideError(note, "broken_json", f"is no JSON ({error})", "download it again") from error
    if not isinstance(record, dict):
        raise SideError(note, "broken_json", "is no JSON object", "download it again")
    named = record.get("id", file_id)
    if named != file_id:
        raise SideError(note, "id_mismatch", f"says it is {named!r}", "rename the file set to what it holds")
    return record


def _rows(record: dict[str, Any], key: str, note: Path) -> list[dict[str, Any]]:
    rows = record.get(key) or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SideError(note, "bad_schema", f"{key} is not a list of objects", "compare it with the release's schema")
    return rows


def _speech_rows(record: dict[str, Any], note: Path) -> Iterator[tuple[Any, Any]]:
    for row in _rows(record, "metadata:vad", note):
        yield row.get("start"), row.get("end")


def _word_rows(record: dict[str, Any], note: Path) -> Iterator[tuple[str, Any, Any, Any]]:
    for segment in _rows(record, "metadata:transcript", note):
        for word in _rows(segment, "words", note):
            yield str(word.get("word", "")), word.get("start"), word.get("end"), word.get("score")


def _extended(
    speech: Intervals, from_words: Intervals, rules: SideRules, where: str, corrections: list[Correction]
) -> Intervals:
    """Speech with the words after its end, where voice activity stopped early (1.8 % of vendor V03)."""
    last = max(end for _, end in speech)
    if not from_words or from_words[-1][1] - last <= rules.vad_early_s:
        return speech
    later = [(max(start, last), end) for start, end in from_words if end > last]
    message = (
        f"voice activity ends at {last:.2f} s, words at {from_words[-1][1]:.2f} s: "
        f"taken from words after that, gaps up to {rules.bridge_s} s bridged"
    )
    corrections.append(Correction("speech_extended_by_words", where, message))
    return speech + later
