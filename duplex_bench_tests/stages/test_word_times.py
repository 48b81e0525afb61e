"""Word times of a history: who is told them, and whose runs they key."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from duplex_bench.contract.types import Out, SessionStats, Spec
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import HistoryTurn, Stimulus
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.rollout_tasks import RolloutTask, run_on
from duplex_bench.stages.rollouts import planned_rollouts
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import to_json
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

RATE = 24_000
WORDS = (TimedWord("Yes", 0.25, 0.5), TimedWord("indeed", 0.5, 0.9))
CARD = SystemCard(name="one", title="One", family="full_duplex", adapter="one:create", licence="MIT")
TIMED = CARD.model_copy(update={"word_times": True})


class Recording:
    """A system that keeps what it was told."""

    spec = Spec(RATE, RATE, 1920, 1920, True, capabilities=frozenset({"force_history", "word_times"}))

    def __init__(self):
        self.told = []

    def new_session(self):
        return self

    def open(self, request):
        self.told.append(request)

    def step(self, unit):
        return [Out("audio", 0, pcm=unit)]

    def close(self):
        return SessionStats()


@pytest.fixture
def stimulus(tmp_path):
    blobs = BlobStore(open_store(str(tmp_path)))
    samples = (np.random.default_rng(0).standard_normal((RATE * 2, 2)) * 1000).astype(np.int16)
    source = blobs.put_audio(samples, RATE)
    before = [blobs.slice_of(source, samples, RATE, 0, RATE, channel) for channel in (0, 1)]
    live = blobs.slice_of(source, samples, RATE, RATE, 2 * RATE, 0)
    turns = (HistoryTurn("assistant", "Yes indeed", 0.25, 0.9),)
    return Stimulus("pause", live, None, turns, *before, history_words=WORDS)


def keys(card, *stimuli):
    items = pl.DataFrame(
        [
            {"item_id": str(number), "protocol": one.protocol, "stimulus_digest": stimulus_digest(one),
             "stimulus": to_json(one), "live_s": 1.0}
            for number, one in enumerate(stimuli)
        ]
    )  # fmt: skip
    workspace = SimpleNamespace(profile=load_profile("demo"))
    return [one.rollout_key for one in planned_rollouts(workspace, items, card) if one.repeat == 0]


def test_a_moved_word_runs_again_only_what_takes_word_times(stimulus):
    moved = dataclasses.replace(stimulus, history_words=(TimedWord("Yes", 0.33, 0.5), WORDS[1]))
    bare = dataclasses.replace(stimulus, history_words=())
    assert len(set(keys(CARD, stimulus, moved, bare))) == 1
    assert len(set(keys(TIMED, stimulus, moved, bare))) == 3
    # The card says how it is run: comparisons tell the two apart also where no history has words.
    assert keys(TIMED, bare) != keys(CARD, bare)
    assert TIMED.execution_digest() != CARD.execution_digest()


def test_words_cross_only_to_a_card_that_takes_them(stimulus, tmp_path):
    told = {}
    for takes in (True, False):
        system = Recording()
        run_on(system, str(tmp_path), "one", RolloutTask("k", to_json(stimulus), StreamPlan(0.1), 0, 1, takes))
        told[takes] = system.told[0]
    assert told[True].history[0].words == (("Yes", 0.25, 0.5), ("indeed", 0.5, 0.9))
    assert told[False].history[0].words == (("Yes indeed", 0.25, 0.9),)
    assert (told[True].seed, told[True].stimulus_id) == (told[False].seed, told[False].stimulus_id)


def test_cards_that_take_them_are_those_of_models_forced_word_by_word():
    cards = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}
    taking = {name for name, card in cards.items() if card.word_times}
    assert {"moshi", "moshi-tiny", "voila", "voila-tiny"} <= taking
    assert all(cards[name].driver == "frame_stepped" and cards[name].family == "full_duplex" for name in taking)
