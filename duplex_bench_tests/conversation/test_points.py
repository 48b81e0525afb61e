from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.candidates import Candidate
from duplex_bench.conversation.points import point_id, point_of

pytestmark = pytest.mark.unit

CANDIDATE = Candidate(
    "s1", "pause", "left", 1.0, 4.0, ("so", "then", "we"), "resumes", 0.9, pause_end_s=5.0, resume_end_s=6.0
)


def test_a_point_carries_what_the_candidate_knows():
    point = point_of(CANDIDATE, 0.4)
    assert (point.session_id, point.kind, point.speaker) == ("s1", "pause", "left")
    assert (point.turn_start_s, point.boundary_s, point.pause_end_s, point.resume_end_s) == (1.0, 4.0, 5.0, 6.0)
    assert (point.context_text, point.n_context_words, point.ranking) == ("so then we", 3, 0.4)


def test_the_id_survives_everything_but_a_move_of_the_boundary():
    before = point_of(CANDIDATE, 0.4).point_id
    edited = replace(CANDIDATE, turn_start_s=0.0, pause_end_s=5.5, context_words=("other",), label_confidence=0.1)
    assert point_of(edited, 0.9).point_id == before
    assert point_of(replace(CANDIDATE, boundary_s=4.0004), 0.4).point_id == before
    assert point_of(replace(CANDIDATE, boundary_s=4.001), 0.4).point_id != before


@given(st.integers(0, 10_000_000), st.sampled_from(["pause", "turn_end"]), st.sampled_from(["left", "right"]))
def test_ids_depend_on_every_part_and_repeat(milliseconds, kind, speaker):
    name = point_id("s1", kind, speaker, milliseconds / 1000)
    assert name == point_id("s1", kind, speaker, milliseconds / 1000)
    others = {
        point_id("s2", kind, speaker, milliseconds / 1000),
        point_id("s1", "turn_end" if kind == "pause" else "pause", speaker, milliseconds / 1000),
        point_id("s1", kind, "left" if speaker == "right" else "right", milliseconds / 1000),
        point_id("s1", kind, speaker, (milliseconds + 1) / 1000),
    }
    assert name not in others
    assert len(others) == 4
