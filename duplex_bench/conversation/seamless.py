"""Loader of Seamless Interaction folders: file sets found, paired by vendor, session and interaction, and checked.

Layout: ``<root>/<label>/<split>/<batch>/<archive>/<file_id>.{wav,json}``. No row stops the others: each interaction is
a session or a rejection with a named rule. Traps and faults: corpora-and-models reference, sections A.2 to A.6.
"""

import csv
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from duplex_bench.conversation.label_types import Word
from duplex_bench.conversation.seamless_side import LoadedSide, SideError, SideRules, load_side
from duplex_bench.conversation.sessions import Correction, LoadedSessions, Rejection, Session
from duplex_bench.conversation.timed_rows import cut_speech, cut_words

LICENCE: Final = "CC BY-NC 4.0"

# Anchored, and with the letter that the official pattern loses (A.2).
FILE_ID: Final = re.compile(r"^(?P<key>(?P<vendor>V\d+)_S\d+_I(?P<prompt>\d+))_(?P<participant>P\d+[A-Z]?)$")
_ECHO_LETTERS: Final = 5
_ECHO_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class SeamlessRules:
    """What is taken from a corpus folder, and the limits of its repairs.

    Attributes:
        label: ``naturalistic`` (the paper's) or ``improvised``.
        splits: splits to read.
        min_duration_s: shorter interactions are left out (the paper: 420 s).
        max_length_difference_s: the longer side is trimmed up to this, beyond it the pair is rejected (ours).
        max_crosstalk_share: pairs with a larger share of echoed words are rejected (normal: 0 to 0.04; A.6).
        only: interaction keys to read; None reads all.
        side: repairs of one side.
    """

    label: str = "naturalistic"
    splits: tuple[str, ...] = ("train", "dev", "test")
    min_duration_s: float = 0.0
    max_length_difference_s: float = 30.0
    max_crosstalk_share: float = 0.10
    only: frozenset[str] | None = None
    side: SideRules = field(default_factory=SideRules)


@dataclass(frozen=True, slots=True)
class _FileSet:
    folder: Path
    file_id: str
    key: str
    participant: str
    prompt: str


def load_seamless(root: Path, rules: SeamlessRules | None = None) -> LoadedSessions:
    """Every interaction below ``root`` as a session or a rejection, in the order of their keys.

    ``session_id`` is vendor, session and interaction; left is the participant whose file id sorts first; a speaker's
    id keeps the vendor, since participant numbers repeat between vendors. Licence and language stand on every session.

    Raises:
        FileNotFoundError: ``root`` has no folder for the label.
    """
    rules = rules or SeamlessRules()
    base = root / rules.label
    if not base.is_dir():
        raise FileNotFoundError(f"{base}: no such folder; give the folder that holds {rules.label}/")
    pairs: dict[str, list[_FileSet]] = {}
    rejections: list[Rejection] = []
    for found in _file_sets(base, rules.splits, rejections):
        if rules.only is None or found.key in rules.only:
            pairs.setdefault(found.key, []).append(found)
    listed = _listed_partners(root)
    silent = _charades(root)
    sessions: list[Session] = []
    for key in sorted(pairs):
        outcome = _session(key, pairs[key], listed, silent, rules)
        if isinstance(outcome, Session):
            sessions.append(outcome)
        else:
            rejections.append(outcome)
    return LoadedSessions(tuple(sessions), tuple(rejections))


def _file_sets(base: Path, splits: Sequence[str], rejections: list[Rejection]) -> list[_FileSet]:
    seen: dict[str, _FileSet] = {}
    for split in splits:
        for path in sorted((base / split).glob("*/*/*")):
            if path.suffix not in {".wav", ".json"}:
                continue
            match = FILE_ID.match(path.stem)
            if match is None:
                message = f"{path.stem!r} is no file id of the corpus"
                rejections.append(Rejection(str(path), "file_id", message, "name it V.._S...._I........_P...."))
            elif path.stem not in seen:
                participant = f"{match['vendor']}_{match['participant']}"
                seen[path.stem] = _FileSet(path.parent, path.stem, match["key"], participant, match["prompt"])
            elif seen[path.stem].folder != path.parent:
                message = f"{path.stem} also lies in {seen[path.stem].folder}, which is used"
                rejections.append(Rejection(str(path), "duplicate_file", message, "remove one of the two"))
    return sorted(seen.values(), key=lambda item: item.file_id)


def _session(
    key: str, sides: list[_FileSet], listed: dict[str, list[tuple[str, str]]], silent: set[str], rules: SeamlessRules
) -> Session | Rejection:
    if sides[0].prompt in silent:
        return Rejection(key, "charades", "the interaction is played without talking", "nothing to do")
    if len(sides) != 2:
        return _unpaired(key, sides, listed)
    loaded: list[LoadedSide] = []
    for found in sides:
        path = found.folder / found.file_id
        wav, note = path.with_name(path.name + ".wav"), path.with_name(path.name + ".json")
        try:
            loaded.append(load_side(wav, note, found.file_id, found.participant, rules.side))
        except SideError as error:
            return error.rejection
    return _paired(key, loaded[0], loaded[1], rules)


def _unpaired(key: str, sides: list[_FileSet], listed: dict[str, list[tuple[str, str]]]) -> Rejection:
    if len(sides) > 2:
        names = ", ".join(found.file_id for found in sides)
        return Rejection(
            key, "more_than_two_sides", f"{len(sides)} sides: {names}", "keep the two that belong together"
        )
    missing = [(other, archive) for other, archive in listed.get(key, []) if other != sides[0].file_id]
    if missing:
        other, archive = missing[0]
        message = f"the partner {other} is listed in archive {archive}, which is not here"
        return Rejection(key, "missing_archive", message, f"download archive {archive}")
    return Rejection(
        key, "missing_partner", f"only {sides[0].file_id} is here", "the corpus has some without a partner"
    )


def _paired(key: str, left: LoadedSide, right: LoadedSide, rules: SeamlessRules) -> Session | Rejection:
    rates = (left.audio.sample_rate_hz, right.audio.sample_rate_hz)
    if rates[0] != rates[1]:
        return Rejection(key, "sample_rates_differ", f"the sides have {rates[0]} and {rates[1]} Hz", "resample one")
    corrections = [*left.corrections, *right.corrections]
    duration = min(left.audio.duration_s, right.audio.duration_s)
    difference = abs(left.audio.duration_s - right.audio.duration_s)
    if difference > rules.max_length_difference_s:
        message = f"the sides differ in length by {difference:.1f} s, more than {rules.max_length_difference_s:g} s"
        return Rejection(key, "unequal_lengths", message, "cut the longer one, or raise max_length_difference_s")
    if difference > 0:
        message = f"the longer side is cut by {difference:.3f} s to {duration:.3f} s"
        corrections.append(Correction("trimmed_to_shorter", key, message))
    if duration < rules.min_duration_s:
        message = f"lasts {duration:.1f} s, less than {rules.min_duration_s:g} s"
        return Rejection(key, "too_short", message, "lower min_duration_s to use it")
    sides = [
        replace(
            loaded.side,
            speech=cut_speech(loaded.side.speech, duration),
            words=cut_words(loaded.side.words, duration),
        )
        for loaded in (left, right)
    ]
    echoes = (echoed_share(sides[0].words, sides[1].words), echoed_share(sides[1].words, sides[0].words))
    if max(echoes) > rules.max_crosstalk_share:
        message = f"{max(echoes):.0%} of one side's words are echoed in the other's transcript: cross-talk"
        return Rejection(key, "crosstalk", message, "separate the voices first, or raise max_crosstalk_share")
    return Session(
        key, sides[0], sides[1], rates[0], duration, LICENCE, "en", tuple(corrections),
        (("crosstalk_left", echoes[0]), ("crosstalk_right", echoes[1]), ("length_difference_s", difference)),
    )  # fmt: skip


def echoed_share(words: Sequence[Word], partner: Sequence[Word]) -> float:
    """Share of ``words`` of five letters or more that the partner's transcript also has within 0.3 s; 0.0 of none.

    Source: the census of the corpus (reference A.6): 0 to 4 % in good pairs, 15 to 49 % in pairs with bleed.
    """
    starts: dict[str, list[float]] = {}
    for word in partner:
        starts.setdefault(_letters(word.text), []).append(word.start_s)
    for times in starts.values():
        times.sort()
    long = [(letters, word.start_s) for word in words if len(letters := _letters(word.text)) >= _ECHO_LETTERS]
    echoed = 0
    for letters, start in long:
        times = starts.get(letters, [])
        at = bisect_left(times, start - _ECHO_S)
        echoed += at < len(times) and times[at] <= start + _ECHO_S
    return echoed / len(long) if long else 0.0


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalpha())


def _listed_partners(root: Path) -> dict[str, list[tuple[str, str]]]:
    """File ids and their batch/archive by interaction key, from ``filelist.csv`` if it is there."""
    partners: dict[str, list[tuple[str, str]]] = {}
    for row in _table(root / "filelist.csv"):
        match = FILE_ID.match(row.get("file_id") or "")
        if match is not None:
            archive = f"{(row.get('batch_idx') or '').zfill(4)}/{(row.get('archive_idx') or '').zfill(4)}"
            partners.setdefault(match["key"], []).append((match[0], archive))
    return partners


def _charades(root: Path) -> set[str]:
    """Prompt hashes of interactions without talk, from ``interactions.csv`` if it is there."""
    rows = _table(root / "interactions.csv")
    return {row.get("prompt_hash") or "" for row in rows if row.get("interaction_type") == "charades"}


def _table(path: Path) -> list[dict[str, str | None]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
