"""``systems check --all``: which cards are tried, against what, that nothing is paid, and how it ends."""

import asyncio
import json
import os
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest
from typer.testing import CliRunner

from duplex_bench.audio.files import write_atomic
from duplex_bench.cli import check_all as checking
from duplex_bench.cli.check_all import NOT_STARTED, PASSED_OVER, against, check_all, pointed_at, protocol_of, served
from duplex_bench.cli.main import app
from duplex_bench.contract.push import RefusedError
from duplex_bench.contract.types import OpenRequest, Prompt
from duplex_bench.contract.worker import load_factory
from duplex_bench.stages import cards as card_stage
from duplex_bench.stages.conformance import stored_examination
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.adapters.wire import Connector
from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.workers import SystemStartError

pytestmark = pytest.mark.process

CARDS = {name: resolved(found.card, found.folder) for name, found in load_cards(None, plug_ins=False).cards.items()}
SERVED = tuple(name for name, card in CARDS.items() if card.driver == "realtime" and "protocol" not in card.settings)
BROKEN = """
from duplex_bench.systems.adapters.never_speak import create as quiet

def create(settings):
    system = quiet(settings)
    made = system.new_session
    def new_session():
        session = made()
        session.close = lambda: (_ for _ in ()).throw(RuntimeError("close fails"))
        return session
    system.new_session = new_session
    return system
"""


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch):
    for card in CARDS.values():
        for names in card.needs_env:
            for name in names.split("|"):
                monkeypatch.delenv(name, raising=False)


def quiet(name="quiet", **more):
    return SystemCard(
        name=name, title=name, family="policy", licence="test",
        adapter="duplex_bench.systems.adapters.never_speak:create", **more,
    )  # fmt: skip


def test_cards_that_run_here_are_tried_and_kept_for_the_report(tmp_path, store):
    card = quiet()
    (found,) = check_all({card.name: card}, tmp_path, store)
    assert (found.system, found.level, found.broken, found.against) == ("quiet", "optional", (), "in this process")
    assert not found.failed
    assert stored_examination(card, store).examination.level == "optional"


def test_each_card_that_cannot_run_here_says_why_and_is_no_failure(tmp_path, store, monkeypatch):
    monkeypatch.setattr(checking, "_GPU_DEVICES", (str(tmp_path / "no-gpu"),))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    # Held and not listened at, so that nobody else does meanwhile.
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    told = {
        "moshi-tiny": "systems setup moshi-tiny",
        "gpt-realtime-500ms": "opens paid sessions at openai",
        "flm-audio": "set DUPLEX_BENCH_FLM_AUDIO_URL",
        "openai-compatible": f"nobody listens at ws://127.0.0.1:{port}/v1/realtime",
    }
    cards = {name: CARDS[name] for name in told}
    away = cards["openai-compatible"]
    settings = {**away.settings, "url": f"ws://127.0.0.1:{port}/v1/realtime"}
    cards["openai-compatible"] = away.model_copy(update={"settings": settings})
    cards["big"] = quiet("big", gpu=True)
    with held:
        tried = check_all(cards, tmp_path, store)
    for found in tried:
        assert found.level == PASSED_OVER
        assert not found.failed
        assert {**told, "big": "needs a GPU"}[found.system] in found.told[0]


def test_a_card_that_does_not_start_or_breaks_the_contract_is_a_failure(tmp_path, store, monkeypatch):
    (tmp_path / "broken_system.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = quiet("broken").model_copy(update={"adapter": "broken_system:create"})
    absent = quiet("absent").model_copy(update={"adapter": "no_such_module:create"})
    first, second = check_all({"broken": broken, "absent": absent}, tmp_path, store)
    assert first.failed
    assert first.level == "none"
    assert any("close fails" in line for line in first.told)
    assert (second.failed, second.level) == (True, NOT_STARTED)
    assert "no_such_module" in second.told[0]


@pytest.mark.parametrize("name", SERVED)
def test_every_card_of_a_server_has_a_protocol_of_ours_and_is_led_there_alone(name, tmp_path, monkeypatch):
    for variable in ("OPENAI_REALTIME", "XAI_REALTIME", "GEMINI_LIVE"):
        monkeypatch.setenv(f"DUPLEX_BENCH_{variable}_URL", "ws://vendor.invalid")
    for variable in ("OPENAI_API_KEY", "XAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "sk-canary")
    card = CARDS[name]
    assert protocol_of(card)
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"
    voice = tmp_path / "voice.wav"
    write_atomic(voice, np.zeros(1600, dtype=np.float32), 16_000)
    pointed = pointed_at(card, url, str(voice))
    assert (pointed.provider, pointed.needs_env) == ("", ())
    asked = []

    async def connect(address, headers, key):
        asked.append((address, f"{headers} {key.value}"))
        raise RefusedError("that is far enough")

    system = load_factory(pointed.adapter)(dict(pointed.settings), Connector(connect))
    detection = "automatic" if "automatic" in system.detections else "manual"
    prompt = Prompt(text="You are Bo.") if "text_prompt" in system.spec.capabilities else Prompt()
    with pytest.raises(RefusedError, match="far enough"):
        asyncio.run(system.new_push_session().open(OpenRequest(1, "x", prompt), detection))
    for address, shown in asked:
        assert urlsplit(address).netloc == urlsplit(url).netloc
        assert "sk-canary" not in shown


def test_what_a_card_is_held_against_is_said():
    assert against(CARDS["cascade-300ms"]) == "in this process"
    assert against(CARDS["loopback-moshi"]) == "our server of moshi, in memory"
    assert against(CARDS["moshi-tiny"]) == "its own environment, random weights"
    assert against(CARDS["flm-audio"]) == "its own server"


def test_our_server_serves_in_another_process_and_ends_with_the_block(tmp_path, monkeypatch):
    # A key that the user set for a server of theirs would lock the card out.
    monkeypatch.setenv("DUPLEX_BENCH_SERVE_KEY", "secret")
    with served("openai-realtime", tmp_path) as url:
        parts = urlsplit(url)
        assert parts.path == "/v1/realtime"
        assert checking._listens(url)
    assert not checking._listens(url)


def test_a_server_that_does_not_start_says_what_it_wrote(tmp_path):
    with pytest.raises(SystemStartError, match="our server of no-such did not start"), served("no-such", tmp_path):
        pass


def test_with_loopback_a_card_is_tried_against_our_server_and_not_kept(tmp_path, store, monkeypatch):
    card = CARDS["gemini-live"]
    seen = []

    def examine(pointed, data, engines, *, keep=True):
        seen.append((pointed.settings["url"], keep))
        raise SystemStartError("far enough")

    monkeypatch.setattr(checking, "examine_card", examine)
    monkeypatch.setattr(checking, "_voice_file", lambda *_: tmp_path / "voice.wav")
    (found,) = check_all({card.name: card}, tmp_path, store, loopback=True)
    ((url, keep),) = seen
    assert url.startswith("ws://127.0.0.1:")
    assert url.endswith("BidiGenerateContent")
    assert keep is False
    assert found.against == "our server of gemini-live, on a socket"


def command(tmp_path, *arguments):
    environ = {**os.environ, "COLUMNS": "240"}
    return CliRunner().invoke(app, ["systems", "check", *arguments, "--data", str(tmp_path)], env=environ)


def test_the_command_prints_every_card_and_ends_with_1_where_one_fails(tmp_path, monkeypatch):
    cards = {"quiet": quiet(), "gpt-realtime-500ms": CARDS["gpt-realtime-500ms"]}
    monkeypatch.setattr(card_stage, "readable_cards", lambda folder: (cards, ()))
    told = command(tmp_path, "--all")
    assert told.exit_code == 0, told.output
    assert "passed over" in told.output
    rows = json.loads(command(tmp_path, "--all", "--json").stdout)
    assert [row["system"] for row in rows] == list(cards)
    cards["absent"] = quiet("absent").model_copy(update={"adapter": "no_such_module:create"})
    assert command(tmp_path, "--all").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name one system, or give --all"),
        (["never-speak", "--all"], "name one system, or give --all"),
        (["--all", "--paid"], "never pays"),
        (["never-speak", "--loopback"], "belongs to --all"),
    ],
)
def test_arguments_that_contradict_one_another_are_refused(tmp_path, arguments, told):
    refused = command(tmp_path, *arguments)
    assert isinstance(refused.exception, ValueError)
    assert told in str(refused.exception)
