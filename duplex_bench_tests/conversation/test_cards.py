from pathlib import Path

import pytest

from duplex_bench.conversation.cards import (
    CARDS,
    PAUSE_METRICS,
    PAUSE_SHARES,
    POINT_CARDS,
    TURN_END_METRICS,
    card,
    markdown,
)

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[2] / "docs" / "metrics-conversation.md"


def test_ids_are_unique_and_split_by_point_kind():
    names = [one.id for one in CARDS]
    assert len(set(names)) == len(names)
    assert set(PAUSE_METRICS) | set(TURN_END_METRICS) == {one.id for one in POINT_CARDS}
    assert not set(PAUSE_METRICS) & set(TURN_END_METRICS)
    assert set(PAUSE_SHARES) < set(PAUSE_METRICS)


def test_headline():
    assert {one.id for one in CARDS if one.headline} == {
        "pause_silent", "pause_takeover", "takeover_latency", "turn_end_latency", "response_rate", "duration_ratio",
        "word_ratio", "token_f1",
    }  # fmt: skip


def test_a_target_is_given_where_it_is_the_direction():
    assert all((one.target is not None) == (one.direction == "target") for one in CARDS)


def test_unknown_card():
    with pytest.raises(KeyError):
        card("total")


def test_the_page_is_what_the_cards_say():
    assert PAGE.read_text("utf-8") == markdown(), "write docs/metrics-conversation.md anew from cards.markdown()"
