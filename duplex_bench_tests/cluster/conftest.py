"""One cluster of this machine for all tests of the room, and a RabbitMQ that can take Redis' place in it."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.cluster.settings import free_ports, listens, own_services

KEPT_FOLDER = "DUPLEX_BENCH_TEST_CLUSTER"
SYSTEMS = ("-s", "never-speak", "-s", "always-speak")
_RABBITMQ = Path("/usr/lib/rabbitmq/bin")
_RUNS = """{ runsOrError { ... on Runs { results { runId status tags { key value } assetSelection { path } } } } }"""


@dataclass(frozen=True)
class Cluster:
    """A cluster folder with two items a track, and how the proof went that was made in it."""

    folder: Path
    proof: "subprocess.CompletedProcess[str] | None" = None
    systems: tuple[str, ...] = SYSTEMS
    limit: tuple[str, ...] = ("--limit", "2")

    def command(self, *words):
        return [sys.executable, "-m", "duplex_bench.cli.main", "cluster", *words, "--folder", "."]

    def run(self, *words, check=True):
        return subprocess.run(self.command(*words), cwd=self.folder, capture_output=True, text=True, check=check)

    def start(self, *words):
        return subprocess.Popen(self.command(*words), cwd=self.folder, stdout=subprocess.PIPE, text=True)

    def runs(self):
        """Id, status, tags and assets of every run, newest first, as the web server tells them."""
        web = f"http://127.0.0.1:{own_services(self.folder).web_port}/graphql"
        told = httpx.post(web, json={"query": _RUNS}, timeout=60).json()["data"]["runsOrError"]["results"]
        return [
            (
                run["runId"],
                run["status"],
                {tag["key"]: tag["value"] for tag in run["tags"]},
                {"/".join(asset["path"]) for asset in run["assetSelection"] or []},
            )
            for run in told
        ]

    def processes(self):
        return Processes(self.folder / "processes")


@pytest.fixture(scope="session")
def cluster():
    """The cluster on which a plain and a killed run came out the same, and what was said.

    KEPT_FOLDER names a folder to go on in, whose plain run may be finished. It is none of pytest's own folders, which
    only root may enter: Postgres runs as another user.
    """
    kept = os.environ.get(KEPT_FOLDER)
    folder = Path(kept or tempfile.mkdtemp(prefix="duplex-cluster-"))
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    empty = Cluster(folder)
    try:
        done = empty.run("prove", *empty.limit, *SYSTEMS, check=False)
        yield Cluster(folder, done)
    finally:
        empty.run("down", check=False)
        if not kept:
            shutil.rmtree(folder)


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    """A RabbitMQ server of its own on loopback: its address, password and how to end and start it."""
    if not (_RABBITMQ / "rabbitmq-server").exists():
        pytest.skip("no RabbitMQ here: `make test-cluster` installs it")
    server = RabbitServer(tmp_path_factory.mktemp("rabbitmq"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


class RabbitServer:
    """Debian's RabbitMQ in a folder, as whoever runs the tests; what is queued survives ``kill``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password = secrets.token_urlsafe(12)
        self.port, node, mapper = free_ports(3)
        self.address = f"amqp://bench:{self.password}@127.0.0.1:{self.port}//"
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndefault_user = bench\ndefault_pass = {self.password}\n"
        )
        (folder / "plugins").write_text("[].\n")
        self._names = {
            **os.environ,
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_DIST_PORT": str(node),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(mapper),
            "ERL_CRASH_DUMP": str(folder / "erl_crash.dump"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "told").open("ab") as told:
            # It leads a session of its own, so that what it starts is ended with it.
            self._process = subprocess.Popen(
                [_RABBITMQ / "rabbitmq-server"], env=self._names, stdout=told, stderr=told, start_new_session=True
            )
        if not wait_until(lambda: listens(self.port), 180):
            self.stop()
            pytest.fail((self.folder / "told").read_text())

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert wait_until(lambda: not listens(self.port), 30)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        # The name server of Erlang's nodes puts itself into the background.
        subprocess.run(["epmd", "-kill"], env=self._names, capture_output=True, check=False)
