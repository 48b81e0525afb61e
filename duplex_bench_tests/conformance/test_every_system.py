"""The conformance suite over every shipped card, every shape of system, and another environment."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.speech.engines import text_to_speech
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.conformance import check
from duplex_bench.systems.environments import SystemStartError, open_system
from duplex_bench.systems.registry import load_cards

# Realtime systems have a suite of their own: systems/test_hosted_adapters.py.
CARDS = {
    name: found
    for name, found in load_cards(None, plug_ins=False).cards.items()
    # Those of other environments have their tests where these are made: systems/moshi.
    if found.card.driver == "frame_stepped" and found.card.environment.kind == "none"
}
FACTORIES = ("lockstep", "one_second")
REQUEST = OpenRequest(seed=11, stimulus_id="x")
PLAN = StreamPlan(4.0)


@pytest.fixture(scope="session")
def engine_store(tmp_path_factory):
    return FolderStore(tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="session")
def spoken(engine_store):
    """A sentence that a cascade replies to, and the silence for it."""
    clip = text_to_speech("embedded", engine_store).speak("We went to the lake on Sunday.", "a")
    return np.concatenate([clip.samples, np.zeros(24_000 * 3, dtype=np.float32)])


@pytest.fixture
def noise():
    """Three seconds of noise between silences, as speech would come and go."""
    generator = np.random.default_rng(5)
    audio = np.zeros(24_000 * 6, dtype=np.float32)
    audio[24_000:72_000] = generator.standard_normal(48_000) * 0.1
    audio[110_000:130_000] = generator.standard_normal(20_000) * 0.1
    return audio


@pytest.mark.engine
@pytest.mark.parametrize("name", list(CARDS))
def test_every_shipped_card_conforms(name, engine_store, spoken):
    with open_system(CARDS[name].card, store=engine_store) as system:
        assert check(system, spoken) == []
        result = run(system, REQUEST, spoken, 24_000, PLAN)
    # What was checked includes speech, wherever the system speaks at all.
    assert result.listener.any() == (name != "never-speak")


@pytest.mark.unit
@pytest.mark.parametrize("factory", FACTORIES)
def test_the_shapes_of_the_contract_conform(factory, under_test):
    assert check(getattr(under_test, factory)({})) == []


@pytest.mark.process
@pytest.mark.parametrize("factory", FACTORIES)
def test_another_environment_conforms_and_gives_the_same_bytes(factory, under_test, foreign_card, noise, tmp_path):
    here = run(getattr(under_test, factory)({}), REQUEST, noise, 24_000, PLAN)
    with open_system(foreign_card(factory), cache_folder=tmp_path) as system:
        assert check(system) == []
        there = run(system, REQUEST, noise, 24_000, PLAN)
    assert here.outcome is there.outcome is Outcome.COMPLETED
    assert here.listener.any()
    assert here.listener.tobytes() == there.listener.tobytes()
    assert here.events == there.events


@pytest.mark.process
def test_the_other_environment_is_another_one_with_numpy_alone(foreign_card, foreign_interpreter, tmp_path):
    with (
        pytest.raises(SystemStartError, match="polars=False") as error,
        open_system(foreign_card("numpy_folder"), cache_folder=tmp_path),
    ):
        pass
    assert f"prefix={Path(foreign_interpreter).parent.parent}" in str(error.value)


@pytest.mark.process
def test_a_worker_that_is_killed_is_a_transport_error_and_the_next_session_finds_a_new_one(
    foreign_card, noise, tmp_path
):
    with open_system(foreign_card("lockstep"), cache_folder=tmp_path) as system:
        first = run(system, REQUEST, noise, 24_000, PLAN)
        session = system.new_session()
        session.open(REQUEST)
        killed = system.worker_pid
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(ConnectionError, match="lost"):
            session.step(np.zeros(1920, dtype=np.float32))
        second = run(system, REQUEST, noise, 24_000, PLAN)
        assert system.worker_pid != killed
    assert first.listener.tobytes() == second.listener.tobytes()


@pytest.mark.unit
def test_lockstep_with_shift_and_priming_echoes_each_unit_in_its_place(under_test, noise):
    result = run(under_test.lockstep({}), REQUEST, noise, 24_000, PLAN)
    expected = np.zeros(240_000, dtype=np.float32)
    expected[: len(noise)] = noise * 0.5
    track = np.zeros(240_000, dtype=np.float32)
    track[: len(result.listener)] = result.listener
    assert np.abs(track - expected).max() < 0.006


@pytest.mark.unit
def test_the_one_second_system_is_flushed_when_it_hears_speech(under_test, noise):
    """Noise in seconds 1-3 and 4.58-5.42: a reply after each, the first cut when second 4 has been heard."""
    result = run(under_test.one_second({}), REQUEST, noise, 24_000, PLAN)
    heard = np.flatnonzero(result.listener) / 24_000
    assert heard[0] == 4.0
    assert not ((heard >= 5.0) & (heard < 7.0)).any()
    flushes = [event for event in result.events if event["kind"] == "flush" and event["cut"]]
    assert [(event["available_s"], event["cut"]) for event in flushes] == [
        (5.0, [{"response_id": "r3", "heard_s": 1.0, "cut_samples": 36_000}])
    ]
