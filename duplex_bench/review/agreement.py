"""How far people agree: with the engine (P2 Table 6), with one another, and about selected windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_accuracy import accuracy_by_kind
from duplex_bench.conversation.label_types import SPEAKERS, Speaker
from duplex_bench.review.judgements import WindowCheck
from duplex_bench.review.regions import KINDS, Region
from duplex_bench.statistics.agreement import cohen_kappa

# P2 App. B: matched turns with a boundary moved by more than this.
MOVED_S: Final = (0.1, 0.25, 1.0)
TOLERANCES_S: Final = (0.1, 0.25)
# Frames over which two people's labels are compared (ours).
FRAME_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class ReviewedSession:
    """One session twice: the engine's labels (with its flags) and a person's."""

    session_id: str
    duration_s: float
    engine: tuple[Region, ...]
    human: tuple[Region, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: ``count`` of ``total``; a line that is no share has no total."""

    measure: str
    count: float
    total: float | None = None

    @property
    def share(self) -> float | None:
        """Count by total; None without one."""
        return self.count / self.total if self.total else None


def partner(turn: Region, others: Sequence[Region]) -> Region | None:
    """The region of the same speaker that overlaps ``turn`` most, if it covers more than half of it (P2 App. B)."""
    best, most = None, (turn.end_s - turn.start_s) / 2
    for other in others:
        if other.speaker == turn.speaker:
            overlap = min(turn.end_s, other.end_s) - max(turn.start_s, other.start_s)
            if overlap > most:
                best, most = other, overlap
    return best


def moved_s(first: Region, second: Region) -> float:
    """The larger shift of the two boundaries in seconds, to a tenth of a millisecond."""
    return round(max(abs(first.start_s - second.start_s), abs(first.end_s - second.end_s)), 4)


def engine_agreement(sessions: Sequence[ReviewedSession]) -> list[Row]:
    """P2 Table 6: how reviewed sessions differ from the engine's labels.

    An engine turn is *matched* if a human turn of the same speaker covers more than half of it, *dropped* otherwise;
    it *became a backchannel* if it was dropped and a human backchannel covers more than half of it. It was *changed*
    if it was dropped or a boundary moved by more than 100 ms (ours: the paper does not define it).
    """
    matched = dropped = backchannels = human_turns = 0
    moves: list[float] = []
    flagged, unflagged = [0, 0], [0, 0]
    for session in sessions:
        turns = [one for one in session.engine if one.kind == "turn"]
        theirs = [one for one in session.human if one.kind == "turn"]
        short = [one for one in session.human if one.kind == "backchannel"]
        human_turns += len(theirs)
        doubtful = {(flag.speaker, round(flag.start_s, 3), round(flag.end_s, 3)) for flag in session.flags}
        for turn in turns:
            mate = partner(turn, theirs)
            if mate is None:
                dropped += 1
                backchannels += partner(turn, short) is not None
            else:
                matched += 1
                moves.append(moved_s(turn, mate))
            marked = (turn.speaker, round(turn.start_s, 3), round(turn.end_s, 3)) in doubtful
            tally = flagged if marked else unflagged
            tally[0] += mate is None or moved_s(turn, mate) > MOVED_S[0]
            tally[1] += 1
    turns_in_all = matched + dropped
    return [
        Row("conversations", len(sessions)),
        Row("minutes", round(sum(session.duration_s for session in sessions) / 60, 2)),
        Row("engine turns", turns_in_all),
        Row("human turns", human_turns),
        Row("engine turns matched", matched, turns_in_all),
        Row("engine turns dropped", dropped, turns_in_all),
        Row("engine turns that became backchannels", backchannels, turns_in_all),
        *(
            Row(f"matched, a boundary moved by more than {limit * 1000:.0f} ms", sum(m > limit for m in moves), matched)
            for limit in MOVED_S
        ),
        Row("flagged engine turns changed", flagged[0], flagged[1]),
        Row("unflagged engine turns changed", unflagged[0], unflagged[1]),
    ]


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two people's agreement on one kind of label: F1 at a tolerance, None where neither has one."""

    first: str
    second: str
    session_id: str
    kind: str
    tolerance_s: float
    f1: float | None
    n_first: int
    n_second: int


def pair_agreement(
    session_id: str, copies: Mapping[str, Sequence[Region]], tolerances_s: Sequence[float] = TOLERANCES_S
) -> list[PairRow]:
    """F1 between every two people's labels of one session, by kind; it is the same in both directions."""
    rows = []
    for first, second in combinations(sorted(copies), 2):
        for tolerance in tolerances_s:
            found = accuracy_by_kind(copies[first], copies[second], tolerance)
            for kind in KINDS:
                if kind in found:
                    one = found[kind]
                    f1 = 2 * one.matched / (one.found + one.true)
                    rows.append(PairRow(first, second, session_id, kind, tolerance, f1, one.found, one.true))
    return rows


def frame_kappa(first: Sequence[Region], second: Sequence[Region], duration_s: float) -> float:
    """Cohen's kappa of who says what when: 10 ms frames of both speakers as turn, backchannel or neither.

    NaN where both left everything unlabelled.
    """
    return cohen_kappa(_frames(first, duration_s).tolist(), _frames(second, duration_s).tolist())


def _frames(regions: Sequence[Region], duration_s: float) -> npt.NDArray[np.int8]:
    n_frames = round(duration_s / FRAME_S)
    frames = np.zeros((2, n_frames), dtype=np.int8)
    for code, kinds in ((1, {"turn", "failed_take"}), (2, {"backchannel"})):
        for region in regions:
            if region.kind in kinds:
                start, stop = round(region.start_s / FRAME_S), round(region.end_s / FRAME_S)
                frames[_channel(region.speaker), start:stop] = code
    return frames.reshape(-1)


def _channel(speaker: Speaker) -> int:
    return SPEAKERS.index(speaker)


@dataclass(frozen=True, slots=True)
class WindowAgreement:
    """Two people's verdicts on the windows that both have checked. ``kappa`` is NaN where chance agreement is 1."""

    first: str
    second: str
    n_both: int
    n_agree: int
    kappa: float


def window_agreement(checks: Sequence[WindowCheck]) -> list[WindowAgreement]:
    """Agreement of every two people who share a window."""
    said: dict[str, dict[str, bool]] = {}
    for check in checks:
        said.setdefault(check.person, {})[check.point_id] = check.accepted
    found = []
    for first, second in combinations(sorted(said), 2):
        both = sorted(said[first].keys() & said[second].keys())
        if both:
            a, b = [said[first][one] for one in both], [said[second][one] for one in both]
            agree = sum(x == y for x, y in zip(a, b, strict=True))
            found.append(WindowAgreement(first, second, len(both), agree, cohen_kappa(a, b)))
    return found


def window_status(checks: Sequence[WindowCheck], point_id: str, needed: int = 2) -> str:
    """``accepted`` by at least ``needed`` people and rejected by none, ``rejected``, ``split``, or ``open``."""
    verdicts = [check.accepted for check in checks if check.point_id == point_id]
    if any(verdicts) and not all(verdicts):
        return "split"
    if len(verdicts) < needed:
        return "open"
    return "accepted" if all(verdicts) else "rejected"
