"""``doctor --live`` against our servers of the vendors' protocols on loopback: answer, price, and no key anywhere."""

import asyncio
import re
import threading

import pytest

from duplex_bench.cli.live import try_live
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.host import hosted
from duplex_bench.systems.serving.voices import ToneVoice
from duplex_bench.textmodels.spend import SpendLedger

pytestmark = pytest.mark.process

KEY = "sk-canary-7c1e90"
VENDORS = {
    "gpt-realtime-500ms": ("openai-realtime", "OPENAI_API_KEY", "DUPLEX_BENCH_OPENAI_REALTIME_URL", "/v1/realtime"),
    "grok-voice": ("xai-realtime", "XAI_API_KEY", "DUPLEX_BENCH_XAI_REALTIME_URL", "/v1/realtime"),
    "gemini-live": ("gemini-live", "GOOGLE_API_KEY", "DUPLEX_BENCH_GEMINI_LIVE_URL", "/ws/BidiGenerateContent"),
}


@pytest.fixture
def vendor(monkeypatch):
    """``vendor(card, faults)`` serves the card's protocol from a thread and points the card at it."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    threads = []

    def serve(name, faults=NONE):
        protocol, key, address, path = VENDORS[name]
        ready = threading.Event()
        bound = []

        async def main():
            service = SERVICES[protocol](ToneVoice(0.3), Manner(think_s=0.05), faults, None, KEY)
            async with hosted(service) as port:
                bound.append(port)
                ready.set()
                await stop.wait()

        threads.append(threading.Thread(target=loop.run_until_complete, args=(main(),)))
        threads[0].start()
        assert ready.wait(120)
        monkeypatch.setenv(key, KEY)
        monkeypatch.setenv(address, f"ws://127.0.0.1:{bound[0]}{path}")

    yield serve
    loop.call_soon_threadsafe(stop.set)
    for thread in threads:
        thread.join()
    loop.close()


def files_with(text, folder):
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("name", list(VENDORS))
def test_one_question_is_answered_with_its_price(name, vendor, tmp_path, capsys):
    vendor(name)
    assert try_live(tmp_path, "demo", name)
    told = capsys.readouterr().out
    assert re.search(r"answered \d\.\d\d s after the question", told)
    assert re.search(r"cost: \d\.\d{4} US dollars by the prices of 20\d\d-", told), told
    assert "ready after" in told
    assert KEY not in told
    assert files_with(KEY, tmp_path) == []
    calls = list(SpendLedger(open_workspace("demo", tmp_path).store).calls())
    assert [(call.role, call.subject) for call in calls] == [("live check", name)]
    assert calls[0].usd is not None


def test_what_the_vendor_refuses_is_told_with_what_to_do_and_without_the_key(vendor, tmp_path, capsys):
    vendor("gpt-realtime-500ms", Faults(refuse_status=401, refuse_body=f"bad key {KEY}"))
    assert not try_live(tmp_path, "demo", "gpt-realtime-500ms")
    told = capsys.readouterr().out
    assert "refused" in told
    assert "check the variable named by the card" in told
    assert KEY not in told
    assert files_with(KEY, tmp_path) == []


def test_a_silent_system_has_not_answered(tmp_path, capsys):
    assert not try_live(tmp_path, "demo", "never-speak")
    assert "no_audio" in capsys.readouterr().out


def test_without_its_key_it_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="set XAI_API_KEY"):
        try_live(tmp_path, "demo", "grok-voice")
