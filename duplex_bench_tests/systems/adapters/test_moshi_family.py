"""Moshi's and PersonaPlex's servers through their adapters, on virtual time: prompts, lost frames, faults."""

import numpy as np
import pytest

from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt
from duplex_bench.contract.worker import load_factory
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import run
from duplex_bench.systems.adapters import moshi_server, personaplex_server
from duplex_bench.systems.adapters.wire import Connector
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.model_endpoints import MODEL_SERVICES
from duplex_bench.systems.serving.peers import memory_connector
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = pytest.mark.unit

ADAPTERS = {"moshi": moshi_server.create, "personaplex": personaplex_server.create}
RATE = 24_000


class Tapped:
    """A connection that notes what is sent, and when the handshake came."""

    def __init__(self, wire):
        self._wire = wire
        self.sent_before_ready = []
        self.is_ready = False

    async def send(self, message):
        if not self.is_ready:
            self.sent_before_ready.append(message)
        await self._wire.send(message)

    async def receive(self):
        message = await self._wire.receive()
        self.is_ready = self.is_ready or message[:1] == b"\0"
        return message

    async def round_trip_s(self):
        return await self._wire.round_trip_s()

    async def close(self):
        await self._wire.close()


class Bench:
    def __init__(self, protocol, faults=NONE, **settings):
        self.service = MODEL_SERVICES[protocol](ToneVoice(), None, faults, None, None, 9)
        self.urls, self.wires = [], []
        memory = memory_connector(self.service)

        async def connect(url, headers, key):
            self.urls.append(url)
            self.wires.append(Tapped(await memory.connect(url, headers, key)))
            return self.wires[-1]

        connector = Connector(connect, virtual_time=True)
        self.system = ADAPTERS[protocol]({"url": "http://memory", **settings}, connector)

    def run(self, seconds=2.0, silence_s=4.0, **told):
        live = np.zeros(round(RATE * seconds), dtype=np.float32)
        live[4800:28_800] = 0.2 * np.sin(np.arange(24_000) * 0.1)
        request = OpenRequest(seed=1, stimulus_id="x", **told)
        return run(self.system, request, live, RATE, StreamPlan(silence_s))


def samples_of(result):
    return sum(event["samples"] for event in result.events if event["kind"] == "audio")


@pytest.mark.parametrize(("protocol", "lost"), [("moshi", 1), ("personaplex", 0)])
def test_a_question_is_heard_and_answered_and_frames_are_lost_as_documented(protocol, lost):
    bench = Bench(protocol)
    result = bench.run()
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert any("sound of" in words for words in bench.service.conversations[0].talker.heard)
    said = "".join(event["text"] for event in result.events if event["kind"] == "text")
    assert said.strip().startswith("I heard")
    # 6 s are 75 frames; the last one's answer comes when the timeline has ended.
    assert 73 - lost <= samples_of(result) / 1920 <= 75 - lost
    first = next(event for event in result.events if event["kind"] == "audio")
    # Our server's decoder holds back some milliseconds: its first frame is whole with the second message.
    assert first["at_s"] == pytest.approx(0.08 * (2 + lost), abs=0.021)
    assert bench.wires[0].sent_before_ready == []


def test_persona_and_voice_are_in_the_address_and_never_a_seed():
    bench = Bench("personaplex", voice="VARF3.pt")
    assert bench.run(prompt=Prompt(text="You are Zoë & know 50% of it.")).outcome is Outcome.COMPLETED
    assert bench.run(prompt=Prompt(voice="NATF0.pt")).outcome is Outcome.COMPLETED
    first, second = (conversation.query for conversation in bench.service.conversations)
    assert first == {"text_prompt": ["You are Zoë & know 50% of it."], "voice_prompt": ["VARF3.pt"]}
    assert second == {"text_prompt": [personaplex_server.NEUTRAL_PROMPT], "voice_prompt": ["NATF0.pt"]}
    assert not any("seed" in url for url in bench.urls)


def test_moshi_is_asked_for_nothing():
    bench = Bench("moshi")
    bench.run()
    assert bench.urls == ["ws://memory/api/chat"]


def test_a_longer_persona_takes_longer_to_be_ready_and_the_stream_waits_for_it():
    ready = []
    for words in (5, 500):
        result = Bench("personaplex").run(prompt=Prompt(text="word " * words))
        assert result.outcome is Outcome.COMPLETED
        ready.append(next(event["took_s"] for event in result.events if event["kind"] == "opened"))
    assert ready[1] > ready[0] + 1.0


def test_an_unknown_voice_dies_without_a_word_and_the_message_says_where_to_look():
    result = Bench("personaplex", voice="MINE.pt").run()
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "--voice-prompt-dir" in result.reason


@pytest.mark.parametrize("told", [{"prompt": Prompt(text="  ")}, {"prompt": Prompt(voice="")}])
def test_an_empty_prompt_is_refused_before_it_kills_the_server(told):
    bench = Bench("personaplex")
    result = bench.run(**told)
    assert (result.outcome, bench.urls) == (Outcome.REFUSED, [])
    assert "empty" in result.reason


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_history_is_refused_over_the_wire(protocol):
    pcm = np.zeros(RATE, dtype=np.float32)
    result = Bench(protocol).run(history=(HistoryPart("both", "", 0.0, 1.0, pcm, pcm),))
    assert result.outcome is Outcome.REFUSED
    assert "force_history" in result.reason


@pytest.mark.parametrize("settings", [{"voice": ""}, {"text_prompt": " "}, {"sed": 1}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="personaplex"):
        personaplex_server.create(settings)


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (Faults(close_at="created", close_code=0), "closed"),
        (Faults(close_at="audio", close_code=1011), "1011"),
        (Faults(stall_at="created"), "the server hangs"),
        (Faults(garbage_at="committed"), "no Ogg stream"),
        (Faults(slow_share=0.4), "slower than real time"),
        (Faults(refuse_status=503), "503"),
    ],
)
def test_each_fault_is_a_transport_error_that_says_what_happened(protocol, faults, message):
    result = Bench(protocol, faults).run(seconds=6.0)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert message in result.reason


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("faults", [Faults(odd_lengths=True), Faults(flood_at="created")])
def test_odd_pieces_and_a_flood_change_nothing_that_is_heard(protocol, faults):
    result = Bench(protocol, faults).run()
    assert result.outcome is Outcome.COMPLETED
    assert np.array_equal(result.listener, Bench(protocol).run().listener)


@pytest.mark.parametrize("name", ["moshi-server", "personaplex-server"])
def test_a_card_makes_its_system_without_a_connection_and_says_what_it_cannot_do(name):
    card = load_cards(None, plug_ins=False).cards[name].card
    system = load_factory(card.adapter)(dict(card.settings))
    assert set(card.omitted).isdisjoint(system.spec.capabilities)
    assert {"force_history", "sampling", "seedable"} <= set(card.omitted)
    assert len(card.needs_env) == 1
