"""The planted system through the whole chain of stages: real scenes, sessions, voices and detectors."""

import importlib
import json
import pkgutil
import sys
import types
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from duplex_bench import stages
from duplex_bench.audio.mixing import trim_silence
from duplex_bench.audio.resample import resample
from duplex_bench.speech.engines import text_to_speech
from duplex_bench.stages import conversation, evaluation, multiparty
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.items import items_of
from duplex_bench.stages.pool import pool as start_pool
from duplex_bench.stages.profile import parse_profile
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.systems.adapters import always_speak
from duplex_bench.systems.adapters.planted import PlantedSystem
from duplex_bench.systems.card import SystemCard

RATE_HZ = 24_000
FACTORY = "planted_schedules_of_the_tests"
# Small texts, a small recogniser; every rule and every number of the scores is the default one.
SMALL = {
    "name": "planted",
    "seed": 1,
    "multiparty": {
        "grammar": {
            "n_pairs": 1,
            "seed": 3,
            "four_humans_share": 0.0,
            "size": {"silence_turns_mean": 5.0, "n1_turns_mean": 1.0, "n3_turns_mean": 1.0, "elaborations_mean": 0.0},
        }
    },
    "conversation": {
        "generator": {"n_sessions": 1, "seed": 5, "minutes": 1.2, "sample_rate_hz": RATE_HZ},
        "corpus": {"liveliness_top_share": 1.0},
    },
    "speech": {"recogniser": "whisper-tiny.en"},
}


@dataclass
class Voice:
    """Speech with an exact first and last sample, at 24 kHz."""

    store: object

    def says(self, text):
        spoken = text_to_speech("embedded", self.store).speak(text, "narrator")
        return trim_silence(resample(spoken.samples, spoken.sample_rate_hz, RATE_HZ), RATE_HZ, threshold_db=30.0)

    @cached_property
    def story(self):
        return always_speak.create({}, self.store).loop

    def talks(self, seconds):
        """Speech without a gap for so long, from its first sample to its last."""
        assert seconds * RATE_HZ <= len(self.story)
        return self.story[: round(seconds * RATE_HZ)]

    def hums(self, seconds):
        """Above the gate, and no voice: a tone of 120 Hz."""
        return (0.1 * np.sin(2 * np.pi * 120 * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)).astype(np.float32)


@dataclass(frozen=True)
class Chain:
    """A workspace, and the stages from items to measurements for one system at a time."""

    workspace: Workspace
    schedules: dict
    voice: Voice

    def plant(self, name, items, plan):
        """A card whose system plays ``plan(item)``: clips as (second, samples), for every item."""
        # A system is opened once per card: another plan under the same name would not be played.
        assert name not in self.schedules
        self.schedules[name] = {
            stimulus_digest(item.stimulus): [(round(at_s * RATE_HZ), clip) for at_s, clip in plan(item)]
            for item in items_of(items).values()
        }
        return SystemCard(
            name=name,
            title=name,
            family="policy",
            adapter=f"{FACTORY}:create",
            settings={"schedule": name},
            licence="test",
        )

    def measure(self, track, items, card, detector="vad"):
        """Measurements of one system; what does not depend on the detector is found finished the second time."""
        profile = self.workspace.profile
        workspace = replace(
            self.workspace, profile=replace(profile, multiparty=replace(profile.multiparty, detector=detector))
        )
        run = run_rollouts(workspace, track, items, card).frame
        heard = evaluation.activity(workspace, track, run, card.name).frame
        said = evaluation.words(workspace, track, run, card.name).frame
        verdicts = evaluation.judgements(workspace, track, items, run, heard, said, card.name).frame
        return evaluation.measurements(workspace, track, items, run, heard, said, verdicts, card.name).frame


@dataclass(frozen=True)
class Scores:
    """Measurements of one system, to be asked for one window and metric at a time."""

    frame: pl.DataFrame

    def row(self, metric, window, item_id=None):
        rows = self.frame.filter((pl.col("metric") == metric) & (pl.col("window_id") == window))
        rows = rows if item_id is None else rows.filter(pl.col("item_id") == item_id)
        assert rows.height == 1, f"{metric} of {window}: {rows.height} rows"
        return rows.row(0, named=True)

    def value(self, metric, window, item_id=None):
        return self.row(metric, window, item_id)["value"]

    def reason(self, metric, window, item_id=None):
        return self.row(metric, window, item_id)["reason"]

    def details(self, metric, window, item_id=None):
        return json.loads(self.row(metric, window, item_id)["details"])


@pytest.fixture(scope="session")
def scores_of():
    return Scores


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    schedules = {}
    factory = types.ModuleType(FACTORY)
    factory.create = lambda settings: PlantedSystem(schedules[settings["schedule"]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, FACTORY, factory)
        # In this process: the schedules are here, and a pool's start would cost more than the work.
        for found in pkgutil.iter_modules(stages.__path__):
            module = importlib.import_module(f"{stages.__name__}.{found.name}")
            if getattr(module, "pool", None) is start_pool:
                patch.setattr(module, "pool", lambda _n=None: None)
        workspace = Workspace(tmp_path_factory.mktemp("planted"), parse_profile(SMALL, "test"))
        yield Chain(workspace, schedules, Voice(workspace.store))


@pytest.fixture(scope="session")
def policies():
    cards, errors = readable_cards(Path("no-such-folder"))
    assert not errors
    return cards


@pytest.fixture(scope="session")
def scenes(chain):
    """Items of both conditions of one scenario."""
    workspace = chain.workspace
    scenarios = multiparty.scenarios(workspace).frame
    pairs = multiparty.pairs(workspace, scenarios).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    built = multiparty.scenes(workspace, pairs, speech).frame
    assert multiparty.scene_faults(built) == []
    return multiparty.items(workspace, pairs, built).frame


@pytest.fixture(scope="session")
def points(chain):
    """Pause and turn-end items of one session."""
    workspace = chain.workspace
    sessions = conversation.lively_sessions(workspace).frame
    filled = conversation.gap_fill(workspace, sessions).frame
    labels = conversation.labels(workspace, conversation.engine_labels(workspace, sessions, filled).frame).frame
    candidates = conversation.candidates(workspace, sessions, filled, labels).frame
    drawn = conversation.points(workspace, candidates).frame
    return conversation.items(workspace, sessions, filled, labels, drawn).frame
