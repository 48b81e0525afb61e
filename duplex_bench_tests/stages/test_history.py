"""What a system is told of the conversation before a point, through the whole track, by what it can take."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from duplex_bench.stages import conversation
from duplex_bench.stages.items import items_of
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.storage.blobs import from_pcm16
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.systems.adapters.lockstep_track import TRACK_SPEC, TrackSession
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

MODULE = "history_systems_of_the_tests"


class Listening(TrackSession):
    """Says nothing and keeps what it was told."""

    def __init__(self, requests):
        super().__init__(lambda _request, _unit: None)
        self.requests = requests

    def open(self, request):
        self.requests.append(request)
        super().open(replace(request, history=()))


@pytest.fixture
def told(quick_engines, small_workspace, tmp_path, monkeypatch):
    """Runs a silent system with given capabilities on every point: (item, what its session was told), and blobs."""
    opened = small_workspace(tmp_path)
    sessions = conversation.lively_sessions(opened).frame
    filled = conversation.gap_fill(opened, sessions).frame
    labels = conversation.engine_labels(opened, sessions, filled).frame
    points = conversation.points(opened, conversation.candidates(opened, sessions, filled, labels).frame).frame
    items = conversation.items(opened, sessions, filled, labels, points).frame

    def go(*capabilities):
        requests = []
        spec = replace(TRACK_SPEC, capabilities=frozenset(capabilities))
        module = types.ModuleType(MODULE)
        module.create = lambda _settings: types.SimpleNamespace(spec=spec, new_session=lambda: Listening(requests))
        monkeypatch.setitem(sys.modules, MODULE, module)
        name = "-".join(("hears", *capabilities)).replace("_", "-")
        card = SystemCard(name=name, title="t", family="policy", adapter=f"{MODULE}:create", licence="test")
        run_rollouts(opened, "conversation", items, card)
        by_digest = {request.stimulus_id: request for request in requests}
        pairs = [(item, by_digest[stimulus_digest(item.stimulus)]) for item in items_of(items).values()]
        return [(item, request) for item, request in pairs if item.stimulus.history], opened.blobs

    return go


def user_turns(item):
    return [turn for turn in item.stimulus.history if turn.role == "user"]


def test_a_reader_gets_the_turns_and_no_sound(told):
    found, _ = told("text_history")
    assert found
    for item, request in found:
        assert [(part.role, part.text) for part in request.history] == [
            (turn.role, turn.text) for turn in item.stimulus.history
        ]
        assert all(part.user_pcm is None and part.assistant_pcm is None for part in request.history)


def test_with_audio_history_the_users_sound_stands_where_the_turns_say(told):
    found, blobs = told("text_history", "audio_history")
    assert found
    for item, request in found:
        *turns, sound = request.history
        assert [turn.text for turn in turns] == [turn.text for turn in item.stimulus.history]
        stored = item.stimulus.history_user
        assert np.array_equal(sound.user_pcm, from_pcm16(blobs.read_slice(stored)))
        assert sound.assistant_pcm is None
        rate = stored.sample_rate_hz
        for turn in user_turns(item):
            # Speech of the noise voices is at 0.2; a turn's sound begins and ends within its times.
            part = sound.user_pcm[round(turn.start_s * rate) : round(turn.end_s * rate)]
            assert np.abs(part[: rate // 10]).max() > 0.05
            assert np.abs(part).mean() > 0.02


def test_a_full_duplex_system_is_given_both_channels_and_its_own_words(told):
    found, blobs = told("force_history", "text_history", "audio_history")
    assert found
    for item, request in found:
        (part,) = request.history
        for heard, stored in (
            (part.user_pcm, item.stimulus.history_user),
            (part.assistant_pcm, item.stimulus.history_assistant),
        ):
            assert np.array_equal(heard, from_pcm16(blobs.read_slice(stored)))
        own = [turn.text for turn in item.stimulus.history if turn.role == "assistant"]
        assert [text for text, _, _ in part.words] == own


def test_who_can_take_nothing_is_told_nothing(told):
    found, _ = told()
    assert found
    assert all(request.history == () for _, request in found)
