"""Which systems have failed or stale items, on a small run whose tables are spoiled on purpose."""

from dataclasses import replace

import polars as pl
import pytest

from duplex_bench.stages.cards import card_of
from duplex_bench.stages.due import due, failed_items, stale_items
from duplex_bench.stages.scored_with import note_scored
from duplex_bench.stages.stored_run import required, systems_with
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit

TRACK = "multiparty"


@pytest.fixture
def planted_cards(run):
    found = {name: card_of(required(run, "systems", "cards", name)) for name in systems_with(run, TRACK, "rollouts")}
    assert len(found) >= 2
    return found


def spoil(run, name, system, change):
    write_frame(run.store, run.table_key((TRACK, name), system), change(required(run, TRACK, name, system)))


def test_a_run_that_went_well_has_nothing_failed_and_nothing_stale(run, planted_cards):
    assert due(run, [TRACK, "conversation"], planted_cards, "failed") == {}
    assert due(run, [TRACK, "conversation"], planted_cards, "stale") == {}
    assert due(run, [TRACK], planted_cards, "all") == planted_cards
    with pytest.raises(ValueError, match="choose one of all, failed, stale"):
        due(run, [TRACK], planted_cards, "broken")


def test_a_lost_rollout_and_one_that_a_later_stage_lacks_are_failed(run, planted_cards):
    one, other = list(planted_cards)[:2]
    spoil(
        run,
        "rollouts",
        one,
        lambda table: table.with_columns(
            pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("transport_error")).otherwise("outcome").alias("outcome")
        ),
    )
    spoil(run, "words", other, lambda table: table.head(table.height - 2))
    assert failed_items(run, TRACK, one) == 1
    assert failed_items(run, TRACK, other) == 2
    assert due(run, [TRACK], planted_cards, "failed").keys() == {one, other}
    assert due(run, ["conversation"], planted_cards, "failed") == {}
    run.store.delete(run.table_key((TRACK, "measurements"), other))
    assert failed_items(run, TRACK, other) > 2


def test_another_card_or_another_item_makes_its_rollouts_stale(run, planted_cards):
    name, card = next(iter(planted_cards.items()))
    changed = card.model_copy(update={"epoch": card.epoch + 1})
    n = required(run, TRACK, "rollouts", name).height
    # Each rollout that is there is not wanted, each that is wanted is not there.
    assert stale_items(run, TRACK, changed) == 2 * n
    items = required(run, TRACK, "items")
    write_frame(run.store, run.table_key((TRACK, "items"), None), items.head(items.height - 1))
    assert stale_items(run, TRACK, card) == n - (n // items.height) * (items.height - 1)
    assert due(run, [TRACK], planted_cards, "stale") == planted_cards


def test_another_scoring_setting_makes_scores_stale_and_no_rollout(run, planted_cards):
    one, other = list(planted_cards)[:2]
    profile = run.profile
    changed = replace(run, profile=replace(profile, gate=replace(profile.gate, threshold=0.02)))
    # Nothing is noted of a run from before there were notes.
    assert due(changed, [TRACK], planted_cards, "stale") == {}
    note_scored(run, TRACK, one)
    note_scored(changed, TRACK, other)
    assert due(changed, [TRACK], planted_cards, "stale").keys() == {one}
    assert stale_items(changed, TRACK, planted_cards[one]) == required(run, TRACK, "rollouts", one).height
    assert due(run, [TRACK], planted_cards, "stale").keys() == {other}
    # What decides only how many are worked at a time, or the statistics over the scores, moves no score.
    calm = replace(profile, processes=7, statistics=replace(profile.statistics, n_resamples=17))
    assert due(replace(run, profile=calm), [TRACK], planted_cards, "stale").keys() == {other}


def test_a_system_that_was_never_run_is_neither(run, planted_cards):
    card = next(iter(planted_cards.values())).model_copy(update={"name": "never-run"})
    assert failed_items(run, TRACK, "never-run") == stale_items(run, TRACK, card) == 0


def flipped(run, key):
    data = bytearray(run.store.get(key))
    data[len(data) // 2] ^= 1
    run.store.put(key, bytes(data))


@pytest.mark.parametrize("only", ["failed", "stale"])
@pytest.mark.parametrize("name", ["rollouts", "words", "measurements"])
def test_a_system_with_a_table_that_cannot_be_read_is_due(run, planted_cards, name, only):
    one, other = list(planted_cards)[:2]
    flipped(run, run.table_key((TRACK, name), one))
    spoil(run, name, other, lambda table: table.drop(table.columns[-1]))
    assert set(due(run, [TRACK, "conversation"], planted_cards, only)) == {one, other}
