"""Regions: a person's labels, and the rules that every copy keeps."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, get_args

from duplex_bench.conversation.label_types import SPEAKERS, Label, LabelKind, Speaker
from duplex_bench.review.errors import ReviewInputError

KINDS: Final[tuple[LabelKind, ...]] = get_args(LabelKind)
# Times in text files: far finer than a sample, so that a label that went through a file still cuts the same audio.
DECIMALS: Final = 9
# Two regions that share a boundary do not overlap, whatever rounding did to it.
TOUCHING_S: Final = 1e-6
# A label shorter than this cannot be seen or grasped (ours).
SHORTEST_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Region:
    """One label as a person set it: seconds of the recording. ``region_id`` is unique within its copy."""

    region_id: str
    speaker: Speaker
    kind: LabelKind
    start_s: float
    end_s: float

    @property
    def told(self) -> str:
        """For messages: who, what, when."""
        return f"{self.speaker} {self.kind} {self.start_s:.3f}-{self.end_s:.3f} s"


def rounded(value: float) -> float:
    """Seconds as text files hold them."""
    return round(float(value), DECIMALS)


def regions_of(labels: Iterable[Label]) -> list[Region]:
    """The engine's labels as the regions a reviewer begins with; ids by their order in time.

    Times stay as they are, to the last bit: a label that nobody touches must not move, or everything that hangs on it
    would be run again.
    """
    ordered = sorted(labels, key=lambda label: (label.start_s, label.end_s, label.speaker, label.kind))
    return [
        Region(f"e{number}", label.speaker, label.kind, float(label.start_s), float(label.end_s))
        for number, label in enumerate(ordered)
    ]


def region_of(number: int, row: object, where: str) -> Region:
    """A region from plain data (a JSON object); ``where`` names file or request for messages.

    Raises:
        ReviewInputError: naming the row, what is wrong with it and the remedy.
    """
    if not isinstance(row, dict):
        raise ReviewInputError(f"{where}, row {number}: is {row!r}; give an object with speaker, kind, start_s, end_s")
    speaker, kind = row.get("speaker"), row.get("kind")
    if speaker not in SPEAKERS:
        raise ReviewInputError(f"{where}, row {number}: speaker is {speaker!r}; give left or right")
    if kind not in KINDS:
        raise ReviewInputError(f"{where}, row {number}: kind is {kind!r}; give one of {', '.join(KINDS)}")
    times = [row.get("start_s"), row.get("end_s")]
    for name, value in zip(("start_s", "end_s"), times, strict=True):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ReviewInputError(f"{where}, row {number}: {name} is {value!r}; give seconds as a number")
    name = row.get("region_id") or f"i{number}"
    if not isinstance(name, str) or len(name) > 64:
        raise ReviewInputError(f"{where}, row {number}: region_id is {name!r}; give a text of at most 64 characters")
    return Region(name, speaker, kind, rounded(times[0]), rounded(times[1]))  # type: ignore[arg-type]


def ordered(regions: Iterable[Region]) -> list[Region]:
    """Regions by time."""
    return sorted(regions, key=lambda one: (one.start_s, one.end_s, one.speaker, one.kind, one.region_id))


def check_regions(regions: Sequence[Region], duration_s: float, where: str) -> None:
    """Refuse what no label of a recording can be.

    Args:
        regions: in the order of the file, which messages count from 1.
        duration_s: the recording's length; a boundary may lie at most 10 ms beyond it.
        where: file or request, for messages.

    Raises:
        ReviewInputError: reversed, too short or outside the recording; two of one speaker and kind overlap; an id
            twice.
    """
    seen: set[str] = set()
    numbered: dict[str, int] = {}
    for number, region in enumerate(regions, start=1):
        at = f"{where}, row {number} ({region.told})"
        if region.end_s <= region.start_s:
            raise ReviewInputError(f"{at}: ends before it starts; swap the two times or leave the row out")
        if region.end_s - region.start_s < SHORTEST_S - TOUCHING_S:
            raise ReviewInputError(f"{at}: is shorter than {SHORTEST_S * 1000:.0f} ms; lengthen it or leave it out")
        if region.start_s < 0 or region.end_s > duration_s + SHORTEST_S:
            raise ReviewInputError(f"{at}: lies outside the recording of {duration_s:.3f} s; correct its times")
        if region.region_id in seen:
            raise ReviewInputError(f"{at}: a second region with the id {region.region_id!r}; give it another")
        seen.add(region.region_id)
        numbered[region.region_id] = number
    for speaker in SPEAKERS:
        for kind in KINDS:
            row = ordered(one for one in regions if one.speaker == speaker and one.kind == kind)
            for first, second in pairwise(row):
                if second.start_s < first.end_s - TOUCHING_S:
                    raise ReviewInputError(
                        f"{where}, row {numbered[second.region_id]} ({second.told}): overlaps row "
                        f"{numbered[first.region_id]} ({first.told}), of the same speaker and kind; "
                        "move a boundary or merge the two"
                    )


def clipped(regions: Iterable[Region], duration_s: float) -> list[Region]:
    """Regions cut to the recording: a boundary that rounding put beyond its end comes back to it."""
    return [Region(one.region_id, one.speaker, one.kind, one.start_s, min(one.end_s, duration_s)) for one in regions]


def as_before(regions: Iterable[Region], known: Sequence[Region]) -> list[Region]:
    """Regions of a file with boundaries that the file only rounded put back where they were, within 1 microsecond."""
    exact: dict[tuple[Speaker, LabelKind, int], float] = {}
    for one in known:
        for at_s in (one.start_s, one.end_s):
            for step in (-1, 0, 1):
                exact.setdefault((one.speaker, one.kind, round(at_s / TOUCHING_S) + step), at_s)

    def settled(region: Region, at_s: float) -> float:
        found = exact.get((region.speaker, region.kind, round(at_s / TOUCHING_S)), at_s)
        return found if abs(found - at_s) <= TOUCHING_S else at_s

    return [
        Region(one.region_id, one.speaker, one.kind, settled(one, one.start_s), settled(one, one.end_s))
        for one in regions
    ]
