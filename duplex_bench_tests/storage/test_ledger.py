"""Finished work is found again; what cannot be read is left out and named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.storage.ledger import FLUSH_EVERY, ItemLedger, LedgerRecord
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit


def test_finished_work_is_found_by_another_ledger(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "rollouts/never-speak")
    ledger.add(LedgerRecord("k1", "item-1", "ok", payload='{"a":1}'))
    ledger.add(LedgerRecord("k2", "item-2", "failed", error="boom"))
    ledger.flush()
    assert ItemLedger(store, "rollouts/never-speak").finished() == {"k1": LedgerRecord("k1", "item-1", "ok", '{"a":1}')}
    assert ItemLedger(store, "rollouts/other").finished() == {}


def test_a_full_buffer_is_written_without_being_asked(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "words")
    for number in range(FLUSH_EVERY + 1):
        ledger.add(LedgerRecord(f"k{number}", "item", "ok"))
    assert len(ItemLedger(store, "words").finished()) == FLUSH_EVERY


def test_a_cut_segment_is_named_and_not_taken_for_whole(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "words")
    ledger.add(LedgerRecord("k1", "item", "ok"))
    ledger.flush()
    (name,) = store.keys("ledger/words")
    store.put(name, store.get(name)[:-12])
    reader = ItemLedger(store, "words")
    assert reader.finished() == {}
    assert reader.unreadable_segments == (name,)


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\u0085", "\x0b", "\x1c"])
def test_words_with_a_line_separator_stay_one_record(tmp_path, sign):
    """A judge's reason or a system's words may hold one: the work would else be done, and paid for, in every run."""
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "words")
    ledger.add(LedgerRecord("k1", "item", "ok", payload=f"first{sign}second"))
    ledger.add(LedgerRecord("k2", "item", "ok"))
    ledger.flush()
    reader = ItemLedger(store, "words")
    assert reader.finished()["k1"].payload == f"first{sign}second"
    assert set(reader.finished()) == {"k1", "k2"}
    assert reader.unreadable_segments == ()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["ok", "failed"])), max_size=60))
def test_a_key_is_finished_if_any_attempt_was_ok(tmp_path_factory, attempts):
    store = FolderStore(tmp_path_factory.mktemp("ledger"))
    ledger = ItemLedger(store, "stage")
    for key, status in attempts:
        ledger.add(LedgerRecord(key, key, status))
    ledger.flush()
    assert set(ItemLedger(store, "stage").finished()) == {key for key, status in attempts if status == "ok"}


def test_a_changed_digit_is_found_although_it_is_still_a_record(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "words")
    ledger.add(LedgerRecord("k1", "item", "ok", payload='{"value":0.25}'))
    ledger.flush()
    (name,) = store.keys("ledger/words")
    store.put(name, store.get(name).replace(b"0.25", b"0.75"))
    reader = ItemLedger(store, "words")
    assert reader.finished() == {}
    assert reader.unreadable_segments == (name,)


def test_segments_without_a_digest_in_their_name_are_read(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "words")
    ledger.add(LedgerRecord("k1", "item", "ok"))
    ledger.flush()
    (name,) = store.keys("ledger/words")
    store.put("ledger/words/0123456789abcdef.jsonl", store.get(name))
    store.delete(name)
    assert set(ItemLedger(store, "words").finished()) == {"k1"}
