"""The same over real sockets on loopback: adapter, driver and server as a user runs them, and servers that die."""

import asyncio
import ssl

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import RealtimeSettings, run_session
from duplex_bench.systems.adapters import flm_audio, freeze_omni, minicpm_o, moshi_server, personaplex_server
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.host import hosted
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = pytest.mark.process

# What is tested here is the wire, on however slow a processor.
PATIENT = RealtimeSettings(rule=PacingRule(1000.0, 5000.0))
SYSTEMS = {
    "flm-audio": lambda url, voice: flm_audio.create({"url": url}),
    "freeze-omni": lambda url, voice: freeze_omni.create({"url": url}),
    "minicpm-o-realtime": lambda url, voice: minicpm_o.create({"url": url, "dialect": "realtime"}),
    "minicpm-o-demo": lambda url, voice: minicpm_o.create({"url": url, "dialect": "demo"}),
    "vllm-omni-duplex": lambda url, voice: minicpm_o.create({"url": url, "dialect": "vllm-omni", "voice": voice}),
}
CREATES = {
    "moshi": moshi_server.create,
    "personaplex": personaplex_server.create,
    "freeze-omni": freeze_omni.create,
    "minicpm-o-realtime": minicpm_o.create,
}
REQUEST = OpenRequest(1, "0123456789abcdef0123")


def _question():
    return (0.1 * np.random.default_rng(1).standard_normal(24_000)).astype(np.float32)


def test_a_question_is_answered_over_real_sockets_by_all_servers_at_once(voice_file, on_patient_clock):
    async def one(protocol):
        async with hosted(SERVICES[protocol](ToneVoice(0.5), Manner(think_s=0.0))) as port:
            system = SYSTEMS[protocol](f"ws://127.0.0.1:{port}", voice_file)
            assert not system.virtual_time
            return await run_session(system, REQUEST, _question(), 24_000, StreamPlan(2.5), PATIENT)

    async def main():
        return await asyncio.gather(*(one(protocol) for protocol in SYSTEMS))

    for protocol, result in zip(SYSTEMS, on_patient_clock(main()), strict=True):
        assert result.outcome is Outcome.COMPLETED, f"{protocol}: {result.reason}"
        assert np.abs(result.listener).max() > 0.1, protocol
        opened = next(event for event in result.events if event["kind"] == "opened")
        assert opened["took_s"] < 5.0


@pytest.mark.parametrize("protocol", ["flm-audio", "freeze-omni"])
def test_an_address_where_nobody_listens_is_a_transport_error(protocol, voice_file):
    system = SYSTEMS[protocol]("http://127.0.0.1:9", voice_file)
    result = asyncio.run(run_session(system, REQUEST, _question(), 24_000, StreamPlan(0.1), PATIENT))
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "no connection" in result.reason


@pytest.mark.parametrize("protocol", ["moshi", "personaplex", "freeze-omni", "minicpm-o-realtime"])
@pytest.mark.parametrize(
    ("settings", "asked"), [({}, ssl.CERT_REQUIRED), ({"verify_certificate": False}, ssl.CERT_NONE)]
)
def test_a_certificate_that_a_server_made_itself_is_taken_only_where_the_card_says_so(
    protocol, settings, asked, monkeypatch
):
    contexts = []

    async def connect(url, **options):
        contexts.append(options["ssl"])
        raise OSError("nobody there")

    monkeypatch.setattr("websockets.asyncio.client.connect", connect)
    system = CREATES[protocol]({"url": "https://127.0.0.1:9", **settings})
    asyncio.run(run_session(system, REQUEST, _question(), 24_000, StreamPlan(0.1), PATIENT))
    assert [context.verify_mode for context in contexts] == [asked]
