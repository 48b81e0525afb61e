"""A hosted system's sessions run side by side in one process, as many as its card allows."""

import asyncio
import os
import threading

import numpy as np
import polars as pl
import pytest

from duplex_bench.records.items import Stimulus
from duplex_bench.stages import rollouts as stage
from duplex_bench.stages import shared_sessions
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.work import IN_FLIGHT_PER_RUN
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, to_pcm16
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.storage.serial import to_json
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import Service
from duplex_bench.systems.serving.host import hosted
from duplex_bench.systems.serving.voices import ToneVoice

pytestmark = pytest.mark.process

RATE = 24_000
SESSIONS = IN_FLIGHT_PER_RUN + 8


class Counting(Service):
    """Greets nobody before all are there, so that no session can end before the last one begins."""

    here = most = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.all_here = asyncio.Event()

    async def converse(self, peer, target, headers):
        self.here += 1
        self.most = max(self.most, self.here)
        if self.most == SESSIONS:
            self.all_here.set()
        await self.all_here.wait()
        try:
            await super().converse(peer, target, headers)
        finally:
            self.here -= 1


@pytest.fixture
def server():
    service, ready, over, found = Counting(ToneVoice(0.3), Manner(think_s=0.0)), threading.Event(), asyncio.Event(), []

    async def main():
        async with hosted(service) as port:
            found[:] = [port, asyncio.get_running_loop()]
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(30)
    yield service, f"ws://127.0.0.1:{found[0]}/v1/realtime"
    found[1].call_soon_threadsafe(over.set)
    thread.join()


def test_more_sessions_than_were_handed_over_at_a_time_are_under_way_in_one_process(server, tmp_path, monkeypatch):
    service, url = server
    workspace = Workspace(tmp_path, load_profile("demo"))
    blobs = BlobStore(workspace.store)
    rows = []
    for number in range(SESSIONS):
        samples = to_pcm16(np.full(RATE // 4, 0.1 + number / 200))[:, None]
        audio = blobs.slice_of(blobs.put_audio(samples[:, 0], RATE), samples, RATE, 0, len(samples))
        stimulus = Stimulus("turn_end", audio)
        rows.append(
            {"item_id": f"i{number}", "protocol": "turn_end", "stimulus_digest": stimulus_digest(stimulus),
             "stimulus": to_json(stimulus), "live_s": 0.25}
        )  # fmt: skip
    card = load_cards(None, plug_ins=False).cards["openai-compatible"].card
    card = card.model_copy(update={"settings": {**card.settings, "url": url}, "max_inflight": SESSIONS})
    processes = set()

    def run_here(*arguments):
        processes.add(os.getpid())
        return run_on(*arguments)

    run_on = shared_sessions.run_on
    monkeypatch.setattr(shared_sessions, "run_on", run_here)
    frame = stage.rollouts(workspace, "conversation", pl.DataFrame(rows), card).frame
    assert frame.height == SESSIONS
    # On a busy machine frames may be late; what was heard is not the matter here.
    assert set(frame["outcome"]) <= {"completed", "pacing_violation"}
    assert service.most == SESSIONS
    assert processes == {os.getpid()}


@pytest.mark.parametrize(
    ("name", "shared"),
    [("gpt-realtime-500ms", True), ("gemini-live", True), ("moshi-server", True), ("loopback-openai-500ms", False),
     ("cascade-500ms", False), ("moshi", False)],
)  # fmt: skip
def test_only_our_adapters_over_sockets_share_a_loop(name, shared):
    card = load_cards(None, plug_ins=False).cards[name].card
    assert shared_sessions.shares_a_loop(card) is shared
    assert not shared_sessions.shares_a_loop(card.model_copy(update={"adapter": "mine:create"}))
