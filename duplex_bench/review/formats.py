"""Other tools' label files: Praat TextGrid, RTTM, Audacity labels, and JSON; each is read and written without loss.

A region needs speaker and kind. TextGrid has a tier for each pair (``left turn``), Audacity has them as the label's
text; RTTM has the speaker as name and the kind as subtype (a row without subtype is a turn).
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from duplex_bench.conversation.label_types import SPEAKERS
from duplex_bench.review.errors import ReviewInputError
from duplex_bench.review.regions import DECIMALS, KINDS, Region, check_regions, clipped, ordered, region_of

Reader = Callable[[str, str], list[Region]]
Writer = Callable[[str, Sequence[Region], float], str]


def read_regions(name: str, text: str, duration_s: float) -> list[Region]:
    """The regions of a file, by its suffix (.TextGrid, .rttm, .txt for Audacity, .json).

    Args:
        name: file name, for the suffix and for messages.
        text: its content.
        duration_s: the recording's length.

    Raises:
        ReviewInputError: another suffix, not what the suffix says, or a row that is reversed, overlaps another of its
            speaker and kind, or lies outside the recording; the message names file, row and remedy.
    """
    reader = _READERS.get(Path(name).suffix.lower())
    if reader is None:
        raise ReviewInputError(f"{name}: has another suffix than {', '.join(sorted(_READERS))}; rename or convert it")
    regions = reader(name, text.removeprefix("\ufeff"))
    check_regions(regions, duration_s, name)
    return ordered(clipped(regions, duration_s))


def write_regions(suffix: str, session_id: str, regions: Sequence[Region], duration_s: float) -> str:
    """The text of a label file.

    Raises:
        ReviewInputError: a suffix that is not written.
    """
    writer = _WRITERS.get(suffix.lower())
    if writer is None:
        raise ReviewInputError(f"{suffix} is not written; choose one of {', '.join(sorted(_WRITERS))}")
    return writer(session_id, ordered(regions), duration_s)


def _row(name: str, number: int, speaker: str, kind: str, start: object, end: object) -> Region:
    try:
        times = {"start_s": float(str(start)), "end_s": float(str(end))}
    except ValueError:
        raise ReviewInputError(f"{name}, row {number}: {start!r} to {end!r} are no times; give seconds") from None
    return region_of(number, {"speaker": speaker, "kind": kind, **times}, name)


def _named(name: str, number: int, text: str) -> tuple[str, str]:
    speaker, _, kind = text.strip().lower().replace("-", " ").partition(" ")
    kind = kind.strip().replace(" ", "_")
    if speaker not in SPEAKERS or kind not in KINDS:
        raise ReviewInputError(
            f"{name}, row {number}: is called {text!r}; call it by speaker and kind, e.g. 'left turn' "
            f"(kinds: {', '.join(KINDS)})"
        )
    return speaker, kind


def _read_audacity(name: str, text: str) -> list[Region]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        # A line that begins with a backslash holds the frequency range of the label above.
        if not line.strip() or line.startswith("\\"):
            continue
        cells = line.split("\t")
        if len(cells) < 3:
            raise ReviewInputError(f"{name}, row {number}: is {line!r}; give start, end and label, separated by tabs")
        found.append(_row(name, number, *_named(name, number, cells[2]), cells[0], cells[1]))
    return found


def _write_audacity(_: str, regions: Sequence[Region], __: float) -> str:
    return "".join(
        f"{one.start_s:.{DECIMALS}f}\t{one.end_s:.{DECIMALS}f}\t{one.speaker} {one.kind}\n" for one in regions
    )


def _read_rttm(name: str, text: str) -> list[Region]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split()
        if not cells or cells[0] != "SPEAKER":
            continue
        if len(cells) < 8:
            raise ReviewInputError(
                f"{name}, row {number}: is {line!r}; give SPEAKER file channel onset duration <NA> kind speaker"
            )
        speaker = cells[7] if cells[7] in SPEAKERS else {"1": "left", "2": "right"}.get(cells[2], cells[7])
        kind = "turn" if cells[6] == "<NA>" else cells[6]
        try:
            end = float(cells[3]) + float(cells[4])
        except ValueError:
            raise ReviewInputError(
                f"{name}, row {number}: onset {cells[3]!r} and duration {cells[4]!r} are no times; give seconds"
            ) from None
        found.append(_row(name, number, speaker, kind, cells[3], end))
    return found


def _write_rttm(session_id: str, regions: Sequence[Region], _: float) -> str:
    file = session_id.replace(" ", "_")
    return "".join(
        f"SPEAKER {file} {SPEAKERS.index(one.speaker) + 1} {one.start_s:.{DECIMALS}f} "
        f"{one.end_s - one.start_s:.{DECIMALS}f} "
        f"<NA> {one.kind} {one.speaker} <NA> <NA>\n"
        for one in regions
    )


def _read_textgrid(name: str, text: str) -> list[Region]:
    from praatio import textgrid
    from praatio.utilities.errors import PraatioException

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.TextGrid"
        path.write_text(text, encoding="utf-8")
        try:
            grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False, reportingMode="silence")
        except (PraatioException, LookupError, ValueError) as error:
            told = " ".join(str(error).replace(str(path), name).split())
            raise ReviewInputError(f"{name}: {told}; correct that interval in Praat and save it again") from error
    found = []
    number = 0
    for tier_name, tier in zip(grid.tierNames, grid.tiers, strict=True):
        if not isinstance(tier, textgrid.IntervalTier):
            continue
        for entry in tier.entries:
            number += 1
            found.append(_row(name, number, *_named(name, number, tier_name), entry.start, entry.end))
    return found


def _write_textgrid(_: str, regions: Sequence[Region], duration_s: float) -> str:
    from praatio import textgrid

    grid = textgrid.Textgrid()
    for speaker in SPEAKERS:
        for kind in KINDS:
            rows = [(one.start_s, one.end_s, kind) for one in regions if (one.speaker, one.kind) == (speaker, kind)]
            grid.addTier(textgrid.IntervalTier(f"{speaker} {kind}", rows, 0.0, duration_s))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.TextGrid"
        grid.save(str(path), format="long_textgrid", includeBlankSpaces=True)
        return path.read_text(encoding="utf-8")


def _read_json(name: str, text: str) -> list[Region]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ReviewInputError(f"{name}: is no JSON ({error}); export it again") from error
    rows = data.get("regions", data.get("labels")) if isinstance(data, dict) else data
    if not isinstance(rows, list):
        raise ReviewInputError(f'{name}: holds no list of regions; give {{"regions": [...]}} or a list')
    return [region_of(number, row, name) for number, row in enumerate(rows, start=1)]


def _write_json(session_id: str, regions: Sequence[Region], duration_s: float) -> str:
    rows = [asdict(region) for region in regions]
    return json.dumps({"session_id": session_id, "duration_s": duration_s, "regions": rows}, indent=1) + "\n"


_READERS: Final[Mapping[str, Reader]] = {
    ".textgrid": _read_textgrid,
    ".rttm": _read_rttm,
    ".txt": _read_audacity,
    ".json": _read_json,
}
_WRITERS: Final[Mapping[str, Writer]] = {
    ".textgrid": _write_textgrid,
    ".rttm": _write_rttm,
    ".txt": _write_audacity,
    ".json": _write_json,
}
