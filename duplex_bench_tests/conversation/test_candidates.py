import pytest

from duplex_bench.conversation.candidates import WordIndex, candidates_of
from duplex_bench.conversation.label_types import Label, Word

pytestmark = pytest.mark.unit

TURNS = (
    ("left", [(0.0, 2.0, "so we went to the lake"), (3.0, 4.0, "and swam all day"), (4.8, 5.5, "twice")]),
    ("right", [(6.0, 8.0, "that sounds lovely to me")]),
    ("left", [(8.5, 9.5, "it was")]),
)


def by_kind(session, kind):
    return [candidate for candidate in candidates_of(session) if candidate.kind == kind]


def test_every_pause_and_every_turn_end_is_a_candidate(conversation):
    session = conversation(TURNS)
    assert [(c.speaker, c.boundary_s) for c in by_kind(session, "pause")] == [("left", 2.0), ("left", 4.0)]
    ends = [(c.speaker, c.boundary_s) for c in by_kind(session, "turn_end")]
    assert ends == [("left", 5.5), ("right", 8.0), ("left", 9.5)]


def test_a_pause_knows_its_turn_and_where_the_resumption_ends(conversation):
    first, second = by_kind(conversation(TURNS), "pause")
    assert (first.turn_start_s, first.pause_end_s, first.resume_end_s) == (0.0, 3.0, 4.0)
    assert first.context_words == ("so", "we", "went", "to", "the", "lake")
    assert (second.pause_end_s, second.resume_end_s) == (4.8, 5.5)
    assert len(second.context_words) == 10
    assert first.pause_s == pytest.approx(1.0)


def test_a_turn_end_knows_the_reply(conversation):
    left, right, last = by_kind(conversation(TURNS), "turn_end")
    assert (left.reply.start_s, left.reply.n_words, left.reply.adjacent) == (6.0, 5, True)
    assert left.reply.text == "that sounds lovely to me"
    assert right.reply.text == "it was"
    assert last.reply is None


def test_the_user_speaking_again_makes_the_reply_not_adjacent(conversation):
    session = conversation(
        (("left", [(0.0, 2.0, "are you there")]), ("left", [(3.0, 4.0, "hello")]), ("right", [(4.5, 6.0, "yes I am")]))
    )
    first, second = (c for c in by_kind(session, "turn_end") if c.speaker == "left")
    assert not first.reply.adjacent
    assert second.reply.adjacent


def test_a_turn_inside_the_users_turn_is_not_its_reply(conversation):
    session = conversation(
        (
            ("left", [(0.0, 6.0, "a long story about the lake and the boats")]),
            ("right", [(2.0, 3.5, "but wait what")]),
            ("right", [(6.4, 8.0, "and then what did they do")]),
        )
    )
    (left,) = (c for c in by_kind(session, "turn_end") if c.speaker == "left")
    assert left.reply.start_s == 6.4


def test_listener_words_and_labels_in_a_pause_are_named(conversation):
    session = conversation(
        TURNS,
        extra_labels=[Label("right", "backchannel", 2.4, 2.7, "short_listener_segment", 1.0)],
        extra_words=[("right", Word("yeah", 2.4, 2.7))],
    )
    first, second = by_kind(session, "pause")
    assert first.intruding_words == ("yeah",)
    assert first.intruding_labels == ("backchannel",)
    assert second.intruding_words == second.intruding_labels == ()


def test_a_word_that_reaches_into_the_pause_intrudes_and_one_that_touches_it_does_not(conversation):
    words = [("right", Word("mm", 1.7, 2.1)), ("right", Word("oh", 3.0, 3.2))]
    first, _ = by_kind(conversation(TURNS, extra_words=words), "pause")
    assert first.intruding_words == ("mm",)


def test_sides_are_treated_alike(conversation, mirrored):
    session = conversation(TURNS)
    plain = [(c.kind, c.boundary_s, c.context_words, c.reply) for c in candidates_of(session)]
    swapped = [(c.kind, c.boundary_s, c.context_words, c.reply) for c in candidates_of(mirrored(session))]
    assert plain == swapped


def test_word_index_belongs_by_middle():
    index = WordIndex([Word("b", 1.0, 2.0), Word("a", 0.0, 1.0)])
    assert index.inside(0.0, 1.4) == ("a",)
    assert index.inside(0.5, 1.5) == ("a", "b")
    assert index.overlapping(1.0, 1.2) == ("b",)
