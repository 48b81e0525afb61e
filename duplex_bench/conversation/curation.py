"""From candidates to points: gates, ranking, cap, judge, draw, and the funnel that counts every loss (P2 App. A)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from duplex_bench.conversation.candidates import Candidate, LabelledSession, PointKind, candidates_of
from duplex_bench.conversation.curation_rules import RULES, CurationSettings
from duplex_bench.conversation.points import Point, point_of
from duplex_bench.conversation.ranking import RankingSettings, ranking_of
from duplex_bench.storage.digests import draw_order

_KINDS: tuple[PointKind, PointKind] = ("pause", "turn_end")
# Stage and rule of what people turned down.
WINDOW_CHECK = ("window_check", "rejected_by_people")
NO_JUDGE = "heuristic ranking alone (no judge ran)"
"""What stands in for the judge where none is configured."""


@dataclass(frozen=True, slots=True)
class PointVerdict:
    """What a judge says of one point: ``score`` how tempting it is, 0 rejects; None is no verdict, and keeps it."""

    score: float | None
    reason: str


class PointJudge(Protocol):
    """Reads the transcript around a point and scores it (P2: incoherent, handing over, interrupted, unresponsive)."""

    @property
    def judge_id(self) -> str:
        """Name, model and prompt version."""
        ...

    def verdict(self, point: Point, session: LabelledSession) -> PointVerdict:
        """The verdict on one point of a session."""
        ...


@dataclass(frozen=True, slots=True)
class CurationRejection:
    """Why one boundary gave no point: the first stage and rule that turned it down."""

    session_id: str
    kind: PointKind
    speaker: str
    boundary_s: float
    stage: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One step: what it turned down and what was left. The step before minus the rejected is what is left."""

    stage: str
    rule: str
    rejected_pause: int
    rejected_turn_end: int
    n_pause: int
    n_turn_end: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class SessionCuration:
    """What one conversation gives: depends on that conversation and the settings alone."""

    session_id: str
    n_candidates: dict[PointKind, int]
    points: tuple[Point, ...]
    rejections: tuple[CurationRejection, ...]


@dataclass(frozen=True, slots=True)
class Curation:
    """The point set: ``points`` all that passed, ``drawn`` those the run uses, in session and boundary order."""

    points: tuple[Point, ...]
    drawn: tuple[Point, ...]
    rejections: tuple[CurationRejection, ...]
    funnel: tuple[FunnelRow, ...]
    judge: str


def curate_session(
    session: LabelledSession,
    settings: CurationSettings,
    ranking: RankingSettings,
    judge: PointJudge | None = None,
) -> SessionCuration:
    """Gates, ranking, cap and judge for one conversation."""
    candidates = candidates_of(session)
    rejections: list[CurationRejection] = []
    survivors: list[Point] = []
    for candidate in candidates:
        rejection = _first_rejection(candidate, session, settings)
        if rejection is None:
            survivors.append(point_of(candidate, ranking_of(candidate, ranking)))
        else:
            rejections.append(rejection)
    kept: list[Point] = []
    for kind in _KINDS:
        ordered = sorted((p for p in survivors if p.kind == kind), key=lambda point: (-point.ranking, point.point_id))
        kept += ordered[: settings.cap_per_kind]
        rejections += [
            _rejected(point, "rank", "cap", f"ranked {place} of {len(ordered)}, {settings.cap_per_kind} are kept")
            for place, point in enumerate(ordered[settings.cap_per_kind :], settings.cap_per_kind + 1)
        ]
    if judge is not None:
        kept, judged = _judged(kept, session, judge)
        rejections += judged
    kept.sort(key=lambda point: (point.boundary_s, point.speaker, point.kind))
    counts = Counter(candidate.kind for candidate in candidates)
    return SessionCuration(session.session_id, {kind: counts[kind] for kind in _KINDS}, tuple(kept), tuple(rejections))


def curate(
    sessions: Iterable[LabelledSession],
    settings: CurationSettings | None = None,
    ranking: RankingSettings | None = None,
    judge: PointJudge | None = None,
) -> Curation:
    """The point set of a corpus, with its funnel and the reason for every boundary that is not in it."""
    chosen, weights = settings or CurationSettings(), ranking or RankingSettings()
    parts = [curate_session(session, chosen, weights, judge) for session in sessions]
    return draw(parts, chosen, judge.judge_id if judge else NO_JUDGE)


def draw(
    parts: Sequence[SessionCuration],
    settings: CurationSettings,
    judge: str = NO_JUDGE,
    rejected: Mapping[str, str] | None = None,
) -> Curation:
    """The drawn points and the funnel over curated conversations; their order does not matter.

    Points are taken by smallest H(seed, id): one that comes or goes changes at most one other. ``rejected`` says by
    point id why people rejected a window after hearing it: such a point is not drawn, and the next takes its place.

    Raises:
        ValueError: two parts are the same conversation.
    """
    ordered = sorted(parts, key=lambda part: part.session_id)
    twice = [name for name, count in Counter(part.session_id for part in ordered).items() if count > 1]
    if twice:
        raise ValueError(f"session {twice[0]!r} was curated twice: give each conversation once")
    known = [point for part in ordered for point in part.points]
    refused = rejected or {}
    points = [point for point in known if point.point_id not in refused]
    rejections = [rejection for part in ordered for rejection in part.rejections]
    rejections += [
        _rejected(point, *WINDOW_CHECK, refused[point.point_id]) for point in known if point.point_id in refused
    ]
    sizes = {"pause": settings.n_pause, "turn_end": settings.n_turn_end}
    taken: set[str] = set()
    for kind in _KINDS:
        order = draw_order(settings.seed, [point.point_id for point in points if point.kind == kind])
        taken.update(order[: sizes[kind]])
    not_drawn = [
        _rejected(point, "draw", "draw", f"not among the {sizes[point.kind]} smallest hashes of seed {settings.seed}")
        for point in points
        if point.point_id not in taken
    ]
    rejections += not_drawn
    start = Counter({kind: sum(part.n_candidates[kind] for part in ordered) for kind in _KINDS})
    return Curation(
        points=tuple(points),
        drawn=tuple(point for point in points if point.point_id in taken),
        rejections=tuple(rejections),
        funnel=_funnel(start, rejections, judge, bool(refused)),
        judge=judge,
    )


def _first_rejection(
    candidate: Candidate, session: LabelledSession, settings: CurationSettings
) -> CurationRejection | None:
    for rule in RULES:
        if candidate.kind not in rule.kinds:
            continue
        message = rule.check(candidate, session, settings)
        if message is not None:
            return _rejected(candidate, rule.stage, rule.name, message)
    return None


def _rejected(what: Candidate | Point, stage: str, rule: str, message: str) -> CurationRejection:
    return CurationRejection(what.session_id, what.kind, what.speaker, what.boundary_s, stage, rule, message)


def _judged(
    points: Sequence[Point], session: LabelledSession, judge: PointJudge
) -> tuple[list[Point], list[CurationRejection]]:
    kept: list[Point] = []
    rejections: list[CurationRejection] = []
    for point in points:
        verdict = judge.verdict(point, session)
        if verdict.score == 0:
            rejections.append(_rejected(point, "judge", "judge_zero", verdict.reason))
        else:
            kept.append(replace(point, judge_score=verdict.score))
    return kept, rejections


def _funnel(
    start: Counter[PointKind], rejections: Sequence[CurationRejection], judge: str, checked: bool
) -> tuple[FunnelRow, ...]:
    lost = Counter((rejection.stage, rejection.rule, rejection.kind) for rejection in rejections)
    steps: list[tuple[str, str, str]] = [(rule.stage, rule.name, "") for rule in RULES]
    steps += [("rank", "cap", ""), ("judge", "judge_zero", judge)]
    steps += [(*WINDOW_CHECK, "two people")] if checked else []
    steps.append(("draw", "draw", ""))
    left = dict(start)
    rows = [FunnelRow("candidates", "labels", 0, 0, start["pause"], start["turn_end"])]
    for stage, rule, note in steps:
        gone = {kind: lost[(stage, rule, kind)] for kind in _KINDS}
        left = {kind: left[kind] - gone[kind] for kind in _KINDS}
        rows.append(FunnelRow(stage, rule, gone["pause"], gone["turn_end"], left["pause"], left["turn_end"], note))
    return tuple(rows)
