"""The report's tables of what people said about windows come from the review's log, and its absence is said."""

import polars as pl
import pytest

from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.review.judgements import JudgementLog, ListenerAnswer, WindowCheck
from duplex_bench.review.store import ReviewStore
from duplex_bench.stages import conversation
from duplex_bench.stages.human_windows import human_tables, state, stored_scores
from duplex_bench.stages.report import track_tables
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit


@pytest.fixture
def measured(quick_engines, small_workspace, tmp_path, monkeypatch):
    """A workspace, and its track with one takeover measured on every pause."""
    monkeypatch.delenv("DUPLEX_BENCH_REVIEW_DATABASE", raising=False)
    opened = small_workspace(tmp_path)
    sessions = conversation.lively_sessions(opened).frame
    filled = conversation.gap_fill(opened, sessions).frame
    labels = conversation.engine_labels(opened, sessions, filled).frame
    points = conversation.points(opened, conversation.candidates(opened, sessions, filled, labels).frame).frame
    items = conversation.items(opened, sessions, filled, labels, points).frame
    rows = [
        {
            "measurement_id": f"m{number}", "system": "fast", "item_id": row["item_id"], "rollout_key": "r",
            "window_id": "pause", "cluster": row["cluster"], "condition": "pause", "metric": "pause_takeover",
            "metric_version": 1, "value": float(number == 0), "reason": None, "at_s": 0.0, "details": "{}",
        }
        for number, row in enumerate(items.filter(pl.col("condition") == "pause").iter_rows(named=True))
    ]  # fmt: skip
    measurements = pl.DataFrame(rows, schema=dict(MEASUREMENTS))
    stored = {name: {} for name in ("rollouts", "activity", "words", "judgements")}
    empty = track_tables(
        "conversation",
        {
            **stored, "measurements": {"fast": measurements}, "items": items,
            "statistics": _empty("STATISTICS"), "comparisons": _empty("COMPARISONS"),
        },
    )  # fmt: skip
    return opened, empty, [row["item_id"] for row in rows]


def _empty(name):
    from duplex_bench.records import tables

    return pl.DataFrame(schema=dict(getattr(tables, name)))


def test_without_a_review_there_is_no_table_and_no_database_is_made(measured):
    opened, track, _ = measured
    assert human_tables(opened, track) == ([], "")
    assert not (opened.data / "review.sqlite").exists()


def test_verdicts_and_answers_become_tables(measured):
    opened, track, points = measured
    log = JudgementLog(ReviewStore(f"sqlite:///{opened.data / 'review.sqlite'}"))
    for person in ("Ben", "Cia"):
        log.add_check(WindowCheck(points[0], "s", person, True, ""))
        log.add_check(WindowCheck(points[1], "s", person, False, "noise"))
        log.add_answer(ListenerAnswer(points[0], "s", person, person == "Ben", 0.1 if person == "Ben" else None, ""))
    log.add_check(WindowCheck("left the draw", "s", "Ben", True, ""))
    (accepted, listeners), note = human_tables(opened, track)
    assert note == ""
    (row,) = accepted.frame.iter_rows(named=True)
    assert (row["n_all"], row["n_accepted"], row["n_rejected"]) == (len(points), 1, 1)
    assert row["estimate_all"] == pytest.approx(1 / len(points))
    assert row["estimate_accepted"] == 1.0
    assert "2 people" in accepted.caption
    takeover = listeners.frame.row(by_predicate=pl.col("metric") == "pause_takeover", named=True)
    assert (takeover["center"], takeover["people_differ"], takeover["n_people"]) == (0.5, 1.0, 2)


def test_the_state_of_the_log_moves_with_every_verdict_and_answer(measured):
    opened, _, points = measured
    seen = [state(opened)]
    log = JudgementLog(ReviewStore(f"sqlite:///{opened.data / 'review.sqlite'}"))
    for add in (
        lambda: log.add_check(WindowCheck(points[0], "s", "Ben", True, "")),
        lambda: log.add_check(WindowCheck(points[0], "s", "Ben", False, "noise")),
        lambda: log.add_answer(ListenerAnswer(points[0], "s", "Ben", False, None, "")),
    ):
        add()
        seen.append(state(opened))
        assert seen[-1] == state(opened)
    assert seen[0] == ""
    assert len(set(seen)) == 4


def test_a_log_that_cannot_be_read_is_said(measured):
    opened, track, _ = measured
    path = opened.data / "review.sqlite"
    JudgementLog(ReviewStore(f"sqlite:///{path}"))
    path.write_bytes(b"no database" * 100)
    found, note = human_tables(opened, track)
    assert found == []
    assert "could not be read" in note


def test_the_page_reads_the_scores_of_every_measured_system(measured):
    opened, track, points = measured
    assert stored_scores(opened) == []
    key = opened.table_key(("conversation", "measurements"), "fast")
    write_frame(opened.store, key, track.measurements)
    found = stored_scores(opened)
    assert [(one.point_id, one.system, one.statistic) for one in found] == [(point, "fast", "rate") for point in points]
