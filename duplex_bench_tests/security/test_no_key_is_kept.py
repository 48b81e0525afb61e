"""A whole run with a canary key for every provider, in which everybody repeats keys: no file it writes holds one."""

import asyncio
import gzip
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import threading
from http import HTTPStatus
from pathlib import Path

import polars as pl
import pytest
from websockets.asyncio.server import serve

from duplex_bench.storage.secrets import redacted, secret_values
from duplex_bench.systems.registry import load_cards
from duplex_bench.textmodels import access

# The report measures voices and a recogniser, which takes minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
PROFILE = """
name = "canary"
seed = 1
processes = 1
[multiparty.grammar]
n_pairs = 1
seed = 3
[multiparty.grammar.size]
silence_turns_mean = 5.0
n1_turns_mean = 1.0
n3_turns_mean = 1.0
elaborations_mean = 0.0
[multiparty.construction]
clips_checked = 2
[conversation.generator]
n_sessions = 1
[speech]
recogniser = "whisper-tiny.en"
[statistics]
n_resamples = 50
[text_calls]
attempts = 1
[judge]
engine = "model"
[judge.model]
vendor = "openai"
model = "a-model"
base_url = "{url}"
"""
CARD = """
name = "{name}"
title = "{name}"
family = "{family}"
adapter = "{adapter}"
driver = "{driver}"
tracks = ["multiparty"]
licence = "test"
"""
HOSTED = """
[settings]
url = "{url}"
silence_ms = 500
key_env = ["OPENAI_API_KEY"]
"""


def provider_variables():
    """Every variable that a card or a text model takes a key from."""
    named = set(re.findall(r"\b[A-Z][A-Z0-9_]*(?:_KEY|_TOKEN|_SECRET)\b", Path(access.__file__).read_text()))
    for found in load_cards(None, plug_ins=False).cards.values():
        for needed in found.card.needs_env:
            named |= {name for name in needed.split("|") if re.search("KEY|TOKEN|SECRET", name)}
    for path in (ROOT / "duplex_bench").rglob("*.py"):
        named |= set(re.findall(r"\"([A-Z][A-Z0-9_]*_(?:API_KEY|TOKEN|SECRET))\"", path.read_text()))
    return named


class Servers(threading.Thread):
    """Realtime endpoints that repeat the key they are shown: in a refusal, and in an error after the session began."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ready = threading.Event()
        self.start()
        self.ready.wait(20)

    def run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        async def told(socket):
            shown = socket.request.headers.get("Authorization", "")
            await socket.send(json.dumps({"type": "error", "error": {"type": "invalid", "message": f"bad {shown}"}}))
            await socket.close(1008, f"bad key {shown}"[:120])

        def refuse(socket, request):
            if "refuse" in request.path:
                return socket.respond(HTTPStatus.UNAUTHORIZED, f"bad key {request.headers.get('Authorization')}\n")
            return None

        async with serve(told, "127.0.0.1", 0, process_request=refuse) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self.ready.set()
            self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
            await self.stop.wait()


def texts(path, data=None):
    """Everything readable in a file, whatever it is packed in."""
    data = path.read_bytes() if data is None else data
    yield data
    if path.name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                stream = archive.extractfile(member)
                if stream is not None:
                    yield from texts(Path(member.name), stream.read())
    elif path.suffix == ".gz":
        yield gzip.decompress(data)
    elif path.suffix == ".parquet":
        yield pl.read_parquet(io.BytesIO(data)).write_ndjson().encode()
    elif path.suffix in {".db", ".sqlite"}:
        # A value may lie on several pages of the file.
        with sqlite3.connect(path) as connection:
            yield "\n".join(connection.iterdump()).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    spec = __import__("importlib.util").util.spec_from_file_location(
        "canary_text_apis", ROOT / "duplex_bench_tests" / "textmodels" / "loopback.py"
    )
    loopback = __import__("importlib.util").util.module_from_spec(spec)
    sys.modules[spec.name] = loopback
    spec.loader.exec_module(loopback)
    root = tmp_path_factory.mktemp("canary")
    canaries = {name: f"sk-canary-{number:04d}-5ca1ab1e" for number, name in enumerate(sorted(provider_variables()))}
    canaries |= {"OPENAI_API_KEY": loopback.CANARY, "REVIEW_PASSWORD": "canary-password-77"}
    turn = {"n": 0}

    def reply(prompt, body):
        turn["n"] += 1
        if turn["n"] % 10 == 0:
            api.mishaps.append((503, {"error": {"message": f"down, key {loopback.CANARY}", "type": "server_error"}}))
        verdict = "correct" if "spoken request" in prompt else "acknowledgement"
        # A judge that was told nothing of a key cannot say it; its host, which was shown it, can.
        return {"reason": f"host says {loopback.CANARY}", "verdict": verdict}

    api = loopback.FakeApi("openai", reply=reply)
    server = loopback.serve(api)
    hosts = Servers()
    (root / "canary.toml").write_text(PROFILE.format(url=api.url))
    cards = root / "data" / "systems"
    cards.mkdir(parents=True)
    compatible = "duplex_bench.systems.adapters.openai_compatible:create"
    for name, path in (("refused", "/refuse"), ("broken-off", "/realtime")):
        text = CARD.format(name=name, family="hosted", adapter=compatible, driver="realtime")
        (cards / f"{name}.toml").write_text(text + HOSTED.format(url=f"ws://127.0.0.1:{hosts.port}{path}"))
    for name, function in (("in-step", "in_step"), ("at-start", "at_start")):
        text = CARD.format(name=name, family="policy", adapter=f"leaky_systems:{function}", driver="frame_stepped")
        (cards / f"{name}.toml").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUPLEX_BENCH_")} | canaries
    environment |= {"PYTHONPATH": str(Path(__file__).parent), "DUPLEX_BENCH_LOG": "json", "OMP_NUM_THREADS": "1",
                    "DUPLEX_BENCH_LOG_FILE": str(root / "log.jsonl"), "HF_HUB_OFFLINE": "1"}  # fmt: skip
    systems = [
        part for name in ("always-speak", "refused", "broken-off", "in-step", "at-start") for part in ("-s", name)
    ]
    command = [sys.executable, "-m", "duplex_bench.cli.main"]
    done = []
    for words in (["init"], ["run", "--profile", "canary.toml", "--track", "multiparty", *systems],
                  ["report", "--profile", "canary.toml"], ["release", "--profile", "canary.toml"]):  # fmt: skip
        one = subprocess.run([*command, *words], cwd=root, env=environment, capture_output=True, text=True, check=False)
        done.append(one)
    server.shutdown()
    server.server_close()
    hosts.loop.call_soon_threadsafe(hosts.stop.set)
    hosts.join()
    return root, canaries, done, api


def test_the_run_did_what_it_was_to_do(run):
    root, _, done, api = run
    assert [one.returncode for one in done] == [0, 0, 0, 0], [one.stderr[-2000:] for one in done]
    table = {name: pl.read_parquet(root / f"data/store/tables/canary/multiparty/rollouts/{name}.parquet")
             for name in ("always-speak", "refused", "broken-off", "in-step", "at-start")}  # fmt: skip
    assert set(table["always-speak"]["outcome"]) == {"completed"}
    assert set(table["refused"]["outcome"]) <= {"refused", "transport_error"}
    for name in ("refused", "broken-off", "in-step", "at-start"):
        # The adapters' wire takes out its own key; what passes it is taken out where it is kept.
        reasons = " ".join(table[name]["reason"].to_list())
        assert "[OPENAI_API_KEY]" in reasons or "[removed]" in reasons, reasons
    assert (root / "data/reports/canary/index.html").is_file()
    assert any("Bearer" in str(seen.headers) for seen in api.seen)
    log = (root / "log.jsonl").read_text()
    assert '"outcome": "completed"' in log


def test_no_file_and_no_output_holds_a_key(run):
    root, canaries, done, _ = run
    assert len(canaries) >= 8, canaries
    for one in done:
        for value in canaries.values():
            assert value not in one.stdout + one.stderr
    seen = 0
    found = []
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        seen += 1
        for data in texts(path):
            found += [(str(path), name) for name, value in canaries.items() if value.encode() in data]
    assert found == []
    assert seen > 60
    kinds = {path.suffix for path in root.rglob("*") if path.is_file()}
    assert {".db", ".parquet", ".gz", ".jsonl", ".json", ".html", ".flac"} <= kinds


def test_what_would_be_found_is_found(tmp_path):
    """The search itself: a key in each kind of file that a run writes."""
    pl.DataFrame({"text": ["sk-canary-1"] * 100}).write_parquet(tmp_path / "a.parquet", compression="zstd")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 4090 + "sk-canary-1" + "x" * 5000,))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"sk-canary-1"))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.parquet", "folder/a.parquet")
    for path in tmp_path.iterdir():
        assert any(b"sk-canary-1" in data for data in texts(path)), path


def test_values_of_variables_that_hold_keys_are_replaced_and_others_are_not():
    environ = {"A_KEY": "0123456789abc", "B_TOKEN": "0123456789abcdef", "C_KEY": "short", "NAME": "0123456789zzz"}
    environ |= {"SSH_KEY_FILE": "/home/x/.ssh/id", "DB": "postgresql+psycopg2://user:p%40ssw0rd!@host/db"}
    assert redacted("0123456789abcdef and 0123456789abc and short", environ) == "[B_TOKEN] and [A_KEY] and short"
    assert redacted("p%40ssw0rd! or p@ssw0rd! of /home/x/.ssh/id 0123456789zzz", environ) == (
        "[DB] or [DB] of /home/x/.ssh/id 0123456789zzz"
    )
    assert secret_values({}) == {}
