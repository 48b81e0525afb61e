"""Scores on accepted windows, and listeners as metrics with the variance between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.review.accepted import PointScore, accepted_rows
from duplex_bench.review.exports import table
from duplex_bench.review.judgements import ListenerAnswer, WindowCheck
from duplex_bench.review.listeners import human_rows, human_scores, pause_lengths

pytestmark = pytest.mark.unit


def check(point, person, accepted):
    return WindowCheck(point, "s", person, accepted, "" if accepted else "noise")


def score(point, value, metric="pause_takeover", statistic="rate"):
    return PointScore(point, "fast", "pause", metric, statistic, value)


def answer(point, person, at_s):
    return ListenerAnswer(point, "s", person, at_s is not None, at_s, "")


def test_only_windows_that_two_accept_and_none_rejects_count_as_accepted():
    checks = [
        *[check("both", person, True) for person in ("Ben", "Cia")],
        check("once", "Ben", True),
        *[check("split", person, person == "Ben") for person in ("Ben", "Cia")],
        *[check("rejected", person, False) for person in ("Ben", "Cia")],
    ]
    points = ("both", "once", "split", "rejected", "unseen")
    (row,) = accepted_rows(checks, [score(point, float(point == "both")) for point in points])
    assert (row.n_all, row.estimate_all) == (5, pytest.approx(0.2))
    assert (row.n_accepted, row.estimate_accepted, row.difference) == (1, 1.0, pytest.approx(0.8))
    assert (row.n_rejected, row.n_split, row.n_open) == (1, 1, 2)


def test_without_an_accepted_window_there_is_no_estimate():
    (row,) = accepted_rows([check("a", "Ben", True)], [score("a", 1.0)])
    assert (row.n_accepted, row.estimate_accepted, row.difference) == (0, None, None)
    assert accepted_rows([], [score("a", 1.0)]) == []


def test_latencies_are_medians():
    checks = [check(point, person, True) for point in "abc" for person in ("Ben", "Cia")]
    scores = [
        score(point, value, "takeover_latency", "median") for point, value in zip("abcd", (1, 2, 9, 9), strict=True)
    ]
    (row,) = accepted_rows(checks, scores)
    assert (row.estimate_all, row.estimate_accepted) == (5.5, 2.0)


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        (None, {"pause_silent": 1, "pause_takeover": 0, "pause_after": 0}),
        (0.4, {"pause_silent": 0, "pause_takeover": 1, "pause_after": 0, "takeover_latency": 0.4}),
        (-0.2, {"pause_silent": 0, "pause_takeover": 1, "pause_after": 0, "takeover_latency": 0.0}),
        (1.0, {"pause_silent": 0, "pause_takeover": 0, "pause_after": 1}),
    ],
)
def test_an_answer_at_a_pause_is_scored_as_a_system_would_be(at_s, expected):
    found = human_scores([answer("p", "Ben", at_s)], {"p": 1.0})
    assert {one.metric: one.value for one in found} == expected
    assert {one.condition for one in found} == {"pause"}


def test_an_answer_at_a_turn_end_keeps_its_sign_and_other_windows_are_left_out():
    answers = [answer("t", "Ben", -0.1), answer("t", "Cia", None), answer("gone", "Ben", 1.0)]
    found = human_scores(answers, {"t": None})
    values = [(one.person, one.metric, one.value) for one in found]
    assert values == [("Ben", "response_rate", 1.0), ("Ben", "turn_end_latency", -0.1), ("Cia", "response_rate", 0.0)]


def test_people_who_agree_differ_between_windows_alone():
    answers = [answer(point, person, at_s) for point, at_s in (("p", 0.2), ("q", None)) for person in ("Ben", "Cia")]
    rows = {row.metric: row for row in human_rows(human_scores(answers, {"p": 1.0, "q": 1.0}))}
    takeover = rows["pause_takeover"]
    assert (takeover.n_people, takeover.n_windows, takeover.n_windows_of_two, takeover.n_answers) == (2, 2, 2, 4)
    assert (takeover.center, takeover.people_differ, takeover.sd_between_people) == (0.5, 0.0, 0.0)
    assert takeover.sd_between_windows == pytest.approx(np.sqrt(0.5))
    # One window alone has a latency: nothing can be said of how windows differ.
    assert (rows["takeover_latency"].sd_between_people, rows["takeover_latency"].sd_between_windows) == (0.0, None)


def test_one_listener_has_no_variance_between_people():
    rows = human_rows(human_scores([answer("p", "Ben", 0.3), answer("q", "Ben", None)], {"p": 1.0, "q": 1.0}))
    assert all(row.people_differ is None and row.sd_between_people is None for row in rows)


@given(st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from("BCDE"), st.booleans()), min_size=1, max_size=12))
def test_the_share_of_pairs_that_differ_is_counted_pair_by_pair(said):
    last = {(point, person): speaks for point, person, speaks in said}
    answers = [answer(point, person, 0.5 if speaks else None) for (point, person), speaks in last.items()]
    row = next(
        row for row in human_rows(human_scores(answers, dict.fromkeys("pqr", 1.0))) if row.metric == "pause_takeover"
    )
    keys = sorted(last)
    pairs = [(a, b) for a in keys for b in keys if a < b and a[0] == b[0]]
    differ = sum(last[a] != last[b] for a, b in pairs)
    assert row.people_differ == (pytest.approx(differ / len(pairs)) if pairs else None)


def test_the_page_has_both_tables(desk, visitor):
    ben, cia, ada = (visitor(desk, name) for name in ("Ben", "Cia", "Ada"))
    for client in (ben, cia):
        assert client.post("/api/windows/p1/check", json={"accepted": True, "reason": ""}).status_code == 200
        body = {"would_speak": True, "after_boundary_s": 0.5, "words": "yes"}
        assert client.post("/api/listening/p1", json=body).status_code == 200
    found = ada.get("/api/tables/accepted-scores").json()
    assert [(row["metric"], row["n_accepted"], row["n_open"]) for row in found] == [
        ("pause_takeover", 1, 0), ("turn_end_latency", 0, 1),
    ]  # fmt: skip
    people = {row["metric"]: row for row in ada.get("/api/tables/listener-metrics").json()}
    assert people["pause_takeover"]["center"] == 1.0
    assert people["pause_takeover"]["n_people"] == 2
    assert ben.get("/api/tables/accepted-scores").status_code == 403
    assert table(desk, "accepted-scores") == found
    assert pause_lengths(desk.material.windows()) == {"p1": 1.0, "p2": None}
