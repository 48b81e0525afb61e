"""Tables of a review as CSV: agreement with the engine and between people, window checks, listener answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import polars as pl

from duplex_bench.review import agreement
from duplex_bench.review.accepted import accepted_rows
from duplex_bench.review.desk import ReviewDesk
from duplex_bench.review.listeners import human_rows, human_scores, pause_lengths
from duplex_bench.review.regions import regions_of
from duplex_bench.review.store import LabelCopy

NAMES: Final = (
    "engine-agreement",
    "pair-agreement",
    "frame-kappa",
    "windows",
    "window-agreement",
    "accepted-scores",
    "listeners",
    "listener-metrics",
)


def table(desk: ReviewDesk, name: str) -> list[dict[str, object]]:
    """One table as rows.

    Raises:
        KeyError: no table of that name.
    """
    return {
        "engine-agreement": engine_rows,
        "pair-agreement": pair_rows,
        "frame-kappa": kappa_rows,
        "windows": window_rows,
        "window-agreement": window_agreement_rows,
        "accepted-scores": accepted_score_rows,
        "listeners": listener_rows,
        "listener-metrics": listener_metric_rows,
    }[name](desk)


def csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV; cells that a spreadsheet would take for a formula get an apostrophe before them."""
    if not rows:
        return ""
    safe = [{key: _cell(value) for key, value in row.items()} for row in rows]
    return pl.DataFrame(safe, infer_schema_length=None, strict=False).write_csv()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value


def engine_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """P2 Table 6 over approved copies."""
    sessions = [
        agreement.ReviewedSession(
            copy.session_id, material.entry.duration_s, tuple(regions_of(material.labels)), copy.state.regions,
            material.flags,
        )
        for material, copy in desk.reviewed()
    ]  # fmt: skip
    return [{**asdict(row), "share": row.share} for row in agreement.engine_agreement(sessions)]


def _by_session(desk: ReviewDesk) -> dict[str, dict[str, LabelCopy]]:
    found: dict[str, dict[str, LabelCopy]] = {}
    for _, copy in desk.reviewed(("submitted", "approved", "superseded")):
        found.setdefault(copy.session_id, {})[copy.owner] = copy
    return found


def pair_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """F1 of every two people's submitted or decided copies of a session."""
    return [
        asdict(row)
        for session_id, copies in _by_session(desk).items()
        for row in agreement.pair_agreement(session_id, {name: copy.state.regions for name, copy in copies.items()})
    ]


def kappa_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Frame kappa of every two people's copies of a session."""
    rows: list[dict[str, object]] = []
    for session_id, copies in _by_session(desk).items():
        duration_s = desk.material.session(session_id).entry.duration_s
        names = sorted(copies)
        for number, first in enumerate(names):
            for second in names[number + 1 :]:
                kappa = agreement.frame_kappa(copies[first].state.regions, copies[second].state.regions, duration_s)
                rows.append({"session_id": session_id, "first": first, "second": second, "kappa": _value(kappa)})
    return rows


def window_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Every verdict on every window, with what the verdicts add up to."""
    checks = desk.log.checks()
    status = {window.point_id: agreement.window_status(checks, window.point_id) for window in desk.material.windows()}
    return [{**asdict(check), "window": status.get(check.point_id, "no longer selected")} for check in checks]


def window_agreement_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Agreement and kappa of every two people about windows."""
    return [{**asdict(row), "kappa": _value(row.kappa)} for row in agreement.window_agreement(desk.log.checks())]


def accepted_score_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Every system's scores on all windows and on accepted ones."""
    known = {window.point_id for window in desk.material.windows()}
    checks = [check for check in desk.log.checks() if check.point_id in known]
    return [asdict(row) for row in accepted_rows(checks, desk.material.scores())]


def listener_metric_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Listeners as the metrics of systems, and how far people differ."""
    return [asdict(row) for row in human_rows(human_scores(desk.log.answers(), pause_lengths(desk.material.windows())))]


def listener_rows(desk: ReviewDesk) -> list[dict[str, object]]:
    """Every listener's answer with what the window is."""
    known = {window.point_id: window for window in desk.material.windows()}
    return [
        {**asdict(answer), "kind": known[answer.point_id].kind if answer.point_id in known else None}
        for answer in desk.log.answers()
    ]


def _value(number: float) -> float | None:
    return None if math.isnan(number) else number
