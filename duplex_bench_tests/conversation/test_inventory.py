"""Inventory and accuracy of labels, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.inventory import floor_transfers, take_inventory
from duplex_bench.conversation.label_accuracy import Accuracy, accuracy_by_kind, matches
from duplex_bench.conversation.labels import Label

pytestmark = pytest.mark.unit


def label(speaker: str, kind: str, start_s: float, end_s: float) -> Label:
    return Label(speaker, kind, start_s, end_s, "test", 1.0)


#          0    5    10   15   20
# left     TTTTPPTTTT       TTTT
# right           b  TTTTT            T
DRAWN = [
    label("left", "turn", 0, 10),
    label("left", "pause", 4, 6),
    label("right", "backchannel", 7, 8),
    label("right", "turn", 9, 15),
    label("right", "overlap", 9, 10),
    label("left", "turn", 17, 21),
    label("left", "turn", 27, 28),
    label("right", "turn", 30, 31),
]


def test_inventory_counts_rates_and_lengths():
    inventory = take_inventory(DRAWN, 120.0)
    assert inventory.counts == {"turn": 5, "pause": 1, "backchannel": 1, "overlap": 1, "failed_take": 0}
    assert inventory.per_minute["turn"] == 2.5
    assert inventory.lengths_s["turn"].tolist() == [10, 6, 4, 1, 1]
    assert inventory.lengths_s["failed_take"].tolist() == []


def test_floor_transfers_are_at_changes_of_speaker_only():
    assert floor_transfers(DRAWN).tolist() == [-1, 2, 2]
    assert floor_transfers([]).tolist() == []


def test_no_length_no_rates():
    with pytest.raises(ValueError, match="length"):
        take_inventory(DRAWN, 0.0)


def test_accuracy_needs_speaker_kind_and_both_boundaries():
    true = [label("left", "turn", 0, 2), label("left", "turn", 5, 7), label("right", "pause", 3, 4)]
    found = [
        label("left", "turn", 0.1, 1.9),
        label("right", "turn", 5, 7),
        label("left", "turn", 5, 7.5),
        label("right", "pause", 3, 4),
    ]
    assert matches(found, true, 0.1) == [(0, 0), (3, 2)]
    assert accuracy_by_kind(found, true, 0.1) == {"turn": Accuracy(1, 3, 2), "pause": Accuracy(1, 1, 1)}
    assert accuracy_by_kind(found, true, 0.0999)["turn"].matched == 0
    assert accuracy_by_kind(found, true, 0.5)["turn"].matched == 2


def test_one_true_label_is_matched_once_and_the_matching_is_largest():
    true = [label("left", "turn", 1.0, 2.0), label("left", "turn", 1.2, 2.2)]
    found = [label("left", "turn", 1.1, 2.1), label("left", "turn", 1.0, 2.0)]
    # The first could take either true one; only with the second of them are both matched.
    assert matches(found, true, 0.1) == [(0, 1), (1, 0)]
    assert len(matches([true[0]] * 3, [true[0]], 0.1)) == 1


def test_nothing_found_has_no_precision():
    accuracy = Accuracy(0, 0, 3)
    assert accuracy.precision is None
    assert accuracy.recall == 0.0
    assert (accuracy + Accuracy(2, 4, 2)) == Accuracy(2, 4, 5)
    with pytest.raises(ValueError, match="tolerance_s"):
        accuracy_by_kind([], [], -1)


@given(st.lists(st.tuples(st.sampled_from(["left", "right"]), st.sampled_from(["turn", "pause"]), st.integers(0, 30))))
def test_labels_match_themselves(rows):
    labels = [label(speaker, kind, start, start + 1) for speaker, kind, start in rows]
    assert len(matches(labels, list(reversed(labels)), 0.0)) == len(labels)
