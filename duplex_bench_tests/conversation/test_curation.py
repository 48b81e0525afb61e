import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.conversation.candidates import LabelledSession
from duplex_bench.conversation.curation import NO_JUDGE, PointVerdict, curate, curate_session, draw
from duplex_bench.conversation.curation_rules import RULES, CurationSettings
from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.conversation.ranking import RankingSettings

pytestmark = pytest.mark.unit

GOOD = (
    ("left", [(0.0, 2.0, "so we went to the lake"), (3.0, 4.0, "and swam all day")]),
    ("right", [(4.5, 6.5, "that sounds lovely to me")]),
)


def rules_of(curation, kind):
    return [rejection.rule for rejection in curation.rejections if rejection.kind == kind]


def test_a_clean_pause_and_turn_end_pass(conversation):
    result = curate([conversation(GOOD)])
    assert [(p.kind, p.speaker, p.boundary_s) for p in result.points] == [
        ("pause", "left", 2.0),
        ("turn_end", "left", 4.0),
    ]
    assert result.drawn == result.points
    assert rules_of(result, "turn_end") == ["reply_follows"]
    assert result.judge == NO_JUDGE


# One thing changed at a time: (rule, turns, what else is in the recording).
BROKEN_PAUSES = [
    ("pause_length", (("left", [(0.0, 2.0, "so we went to the lake"), (2.599, 4.0, "and swam")]),), {}),
    ("context_length", (("left", [(0.0, 0.999, "so we went there"), (2.0, 4.0, "and swam")]),), {}),
    ("context_words", (("left", [(0.0, 2.0, "so we"), (3.0, 4.0, "and swam")]),), {}),
    ("no_listener_words", GOOD, {"extra_words": [("right", Word("mm", 2.9, 3.0))]}),
    ("no_listener_labels", GOOD, {"extra_labels": [Label("right", "backchannel", 2.2, 2.5, "short", 1.0)]}),
    ("pause_is_silent", GOOD, {"extra_gate": [("left", (2.2, 2.46))]}),
    ("listener_is_silent", GOOD, {"extra_gate": [("right", (2.2, 2.46))]}),
]


@pytest.mark.parametrize(("rule", "turns", "extra"), BROKEN_PAUSES, ids=[case[0] for case in BROKEN_PAUSES])
def test_each_pause_gate_rejects(conversation, rule, turns, extra):
    assert rules_of(curate([conversation(turns, **extra)]), "pause") == [rule]


BROKEN_TURN_ENDS = [
    ("context_length", (("left", [(0.0, 0.9, "are you there")]), ("right", [(1.5, 3.0, "yes I am right here")]))),
    ("context_words", (("left", [(0.0, 2.0, "hello you")]), ("right", [(2.5, 4.0, "yes I am right here")]))),
    (
        "reply_follows",
        (
            ("left", [(0.0, 2.0, "are you there now")]),
            ("left", [(2.5, 2.9, "hello")]),
            ("right", [(3.2, 5.0, "yes I am right here")]),
        ),
    ),
    ("reply_start", (("left", [(0.0, 2.0, "are you there now")]), ("right", [(5.001, 7.0, "yes I am right here")]))),
    ("reply_start", (("left", [(0.0, 2.0, "are you there now")]), ("right", [(1.4, 7.0, "yes I am right here")]))),
    ("reply_words", (("left", [(0.0, 2.0, "are you there now")]), ("right", [(2.5, 4.0, "yes I am here")]))),
]


@pytest.mark.parametrize(("rule", "turns"), BROKEN_TURN_ENDS)
def test_each_turn_end_gate_rejects(conversation, rule, turns):
    assert rules_of(curate([conversation(turns)]), "turn_end")[0] == rule


@pytest.mark.parametrize(
    ("rule", "speaker", "kept"),
    [("lead_in_is_speech", "left", (0.0, 0.3)), ("reply_is_speech", "right", (4.5, 4.8))],
)
def test_what_should_be_speech_must_gate_as_speech(conversation, rule, speaker, kept):
    session = conversation(GOOD)
    quiet = LabelledSession(
        session.session_id, session.labels, session.words, {**session.gate_s, speaker: np.array([kept])}
    )
    assert rules_of(curate([quiet]), "turn_end")[0] == rule


def test_limits_are_inclusive(conversation):
    turns = (
        ("left", [(0.0, 1.0, "so we went"), (1.6, 2.6, "and then swam")]),
        ("right", [(5.6, 7.0, "that sounds lovely to me")]),
    )
    session = conversation(turns, extra_gate=[("left", (1.6 - 0.15, 1.6))])
    assert {(p.kind, p.boundary_s) for p in curate([session]).points} == {("pause", 1.0), ("turn_end", 2.6)}


def test_the_listener_gate_is_ours_and_can_be_switched_off(conversation):
    session = conversation(GOOD, extra_gate=[("right", (2.2, 2.6))])
    assert not [p for p in curate([session]).points if p.kind == "pause"]
    off = CurationSettings(max_listener_speech=None)
    assert [p.boundary_s for p in curate([session], off).points if p.kind == "pause"] == [2.0]


def long_session(conversation, name, n_turns, pauses=(0.7, 0.9, 1.1, 1.3, 1.5)):
    turns, at = [], 0.0
    for number in range(n_turns):
        pause = pauses[number % len(pauses)]
        turns.append(
            ("left", [(at, at + 2, "so we went to the lake"), (at + 2 + pause, at + 3 + pause, "and swam all day")])
        )
        turns.append(("right", [(at + 3.5 + pause, at + 5.5 + pause, "that sounds lovely to me")]))
        at += 6 + pause
    return conversation(turns, session_id=name)


def test_the_cap_keeps_the_highest_ranked(conversation):
    result = curate([long_session(conversation, "s", 5)])
    pauses = [p for p in result.points if p.kind == "pause"]
    assert sorted(round(p.pause_end_s - p.boundary_s, 3) for p in pauses) == [1.1, 1.3, 1.5]
    assert rules_of(result, "pause") == ["cap", "cap"]


def check_funnel(result, sessions):
    for kind, column in (("pause", "n_pause"), ("turn_end", "n_turn_end")):
        rejected = "rejected_pause" if kind == "pause" else "rejected_turn_end"
        for before, row in zip(result.funnel, result.funnel[1:], strict=False):
            assert getattr(before, column) - getattr(row, rejected) == getattr(row, column)
            listed = [r for r in result.rejections if (r.stage, r.rule, r.kind) == (row.stage, row.rule, kind)]
            assert len(listed) == getattr(row, rejected)
        labels = [one for s in sessions for one in s.labels if one.kind == ("pause" if kind == "pause" else "turn")]
        assert getattr(result.funnel[0], column) == len(labels)
        assert getattr(result.funnel[-1], column) == sum(p.kind == kind for p in result.drawn)
    assert [row.rule for row in result.funnel[1 : 1 + len(RULES)]] == [rule.name for rule in RULES]


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_funnel_adds_up(data):
    sessions = []
    for number in range(data.draw(st.integers(0, 4))):
        labels, words, gate = [], {"left": [], "right": []}, {"left": [], "right": []}
        at = 0.0
        for _ in range(data.draw(st.integers(0, 8))):
            speaker = data.draw(st.sampled_from(["left", "right"]))
            length, pause, gap = (data.draw(st.integers(2, 30)) / 10 for _ in range(3))
            end = at + 2 * length + pause
            labels += [
                Label(speaker, "turn", at, end, "r", 1.0),
                Label(speaker, "pause", at + length, at + length + pause, "r", 1.0),
            ]
            for place in range(data.draw(st.integers(0, 8))):
                words[speaker].append(Word(f"w{place}", at + place * 0.1, at + place * 0.1 + 0.1))
            if data.draw(st.booleans()):
                gate[speaker].append((at, at + length))
            at = end + gap / 3
        spans = {side: np.array(rows, dtype=float).reshape(-1, 2) for side, rows in gate.items()}
        sessions.append(LabelledSession(f"s{number}", labels, words, spans))
    chosen = CurationSettings(n_pause=data.draw(st.integers(0, 4)), n_turn_end=None, seed=data.draw(st.integers(0, 9)))
    result = curate(sessions, chosen)
    check_funnel(result, sessions)
    assert result == curate(list(reversed(sessions)), chosen)
    assert len({point.point_id for point in result.points}) == len(result.points)


class ZeroOnShort:
    judge_id = "test-judge/1"

    def verdict(self, point, session):
        length = (point.pause_end_s or point.boundary_s + 9) - point.boundary_s
        if length < 1.2:
            return PointVerdict(0.0, "hands the turn over")
        return PointVerdict(None if length < 1.4 else 0.8, "holds")


def test_a_judge_rejects_at_zero_only_and_is_named(conversation):
    sessions = [long_session(conversation, "s", 5)]
    result = curate(sessions, judge=ZeroOnShort())
    pauses = [p for p in result.points if p.kind == "pause"]
    assert sorted((round(p.pause_end_s - p.boundary_s, 3), p.judge_score) for p in pauses) == [(1.3, None), (1.5, 0.8)]
    assert result.judge == "test-judge/1"
    assert [(r.stage, r.message) for r in result.rejections if r.rule == "judge_zero"] == [
        ("judge", "hands the turn over")
    ]
    check_funnel(result, sessions)


def test_the_draw_takes_what_is_asked_and_changes_by_one_neighbour(conversation):
    sessions = [long_session(conversation, f"s{number}", 3) for number in range(12)]
    chosen = CurationSettings(n_pause=10, n_turn_end=7)
    parts = [curate_session(session, chosen, RankingSettings()) for session in sessions]
    full = draw(parts, chosen)
    assert sum(p.kind == "pause" for p in full.drawn) == 10
    assert sum(p.kind == "turn_end" for p in full.drawn) == 7
    names = {p.point_id for p in full.drawn}
    gone = next(p for p in full.drawn if p.kind == "pause")
    rest = [
        type(part)(part.session_id, part.n_candidates, tuple(p for p in part.points if p != gone), part.rejections)
        for part in parts
    ]
    after = {p.point_id for p in draw(rest, chosen).drawn}
    assert len(names - after) == 1
    assert len(after - names) == 1
    more = {p.point_id for p in draw(parts, CurationSettings(n_pause=11, n_turn_end=7)).drawn}
    assert names < more
    assert {p.point_id for p in draw(parts, CurationSettings(n_pause=10, n_turn_end=7, seed=1)).drawn} != names


def test_an_edit_of_one_label_changes_only_that_sessions_points(conversation):
    sessions = [long_session(conversation, f"s{number}", 3) for number in range(4)]
    before = curate(sessions)
    edited = long_session(conversation, "s2", 3, pauses=(0.75, 0.9, 1.1))
    after = curate([edited if session.session_id == "s2" else session for session in sessions])
    changed = {p.session_id for p in set(before.points) ^ set(after.points)}
    assert changed == {"s2"}
    # The boundary of the edited pause has not moved, so its id has not either; what lies after it has.
    kept = {p.point_id for p in before.points if p.session_id == "s2"} & {p.point_id for p in after.points}
    assert len(kept) == 1


def test_sides_are_treated_alike(conversation, mirrored):
    session = long_session(conversation, "s", 5)
    # Without the cap, whose ties are broken by ids, and the ids know the side.
    uncapped = CurationSettings(cap_per_kind=99)
    plain, swapped = curate([session], uncapped), curate([mirrored(session)], uncapped)
    assert [(p.kind, p.boundary_s) for p in plain.points] == [(p.kind, p.boundary_s) for p in swapped.points]
    assert plain.funnel == swapped.funnel


def test_bad_settings_and_sessions_are_named(conversation):
    with pytest.raises(ValueError, match="cap_per_kind"):
        CurationSettings(cap_per_kind=0)
    with pytest.raises(ValueError, match="n_pause"):
        CurationSettings(n_pause=-1)
    with pytest.raises(ValueError, match="'session-1' was curated twice"):
        curate([conversation(GOOD), conversation(GOOD)])
