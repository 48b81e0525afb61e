"""The health page on a real instance and a real server: what is away is said, keys and script are not shown."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import dagster as dg
import pytest
import uvicorn
from dagster._core.test_utils import instance_for_test
from dagster._daemon.types import DaemonHeartbeat
from prometheus_client.parser import text_string_to_metric_families

from duplex_bench.cli.cluster.processes import Processes
from duplex_bench.cli.cluster.services import ServiceMissingError, start_redis
from duplex_bench.cli.cluster.settings import own_services
from duplex_bench.lib.health import app, checks
from duplex_bench.lib.health.checks import Finding, StuckRuns
from duplex_bench.stages import pulse
from duplex_bench.stages.telemetry.counts import Counts
from duplex_bench.stages.telemetry.exposition import registry
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.process

CANARY = "sk-canary-0123456789"


@contextmanager
def serving(look, token=None, hosts=("127.0.0.1",), counts=Counts):
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app.create_app(look, registry(counts), token, hosts), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode(), refused.headers


@pytest.fixture
def place(tmp_path):
    with instance_for_test() as instance:
        yield instance, FolderStore(tmp_path / "store"), tmp_path


def findings(place, stuck=None):
    instance, store, data = place
    return {
        one.name: one for one in checks.look(checks.all_looks(instance, store, data, stuck or StuckRuns(), lambda: 50))
    }


def test_what_is_there_is_ok_and_a_daemon_that_never_beat_is_not(place, monkeypatch):
    for name in (checks.WEB_VARIABLE, checks.BROKER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    found = findings(place)
    assert {name for name, one in found.items() if one.state == "failing"} == {"daemons"}
    assert "never beat" in found["daemons"].told
    assert list(place[1].keys("health")) == []
    instance = place[0]
    for name in instance.get_required_daemon_types():
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), name, "id", []))
    assert findings(place)["daemons"].state == "ok"
    for name in instance.get_required_daemon_types():
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - 3600, name, "id", []))
    assert "beat 36" in findings(place)["daemons"].told


def test_a_store_that_is_away_and_a_broker_that_does_not_answer_are_failing_without_their_keys(place, monkeypatch):
    class Away(FolderStore):
        def put(self, key, data):
            raise OSError(f"refused {CANARY}")

    # Held and not listened at: refused, and nobody else's meanwhile.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        monkeypatch.setenv(checks.BROKER_VARIABLE, f"redis://:{CANARY}@127.0.0.1:{port}/0")
        monkeypatch.setenv(checks.WEB_VARIABLE, f"http://127.0.0.1:{port}")
        found = findings((place[0], Away(place[2] / "store"), place[2]))
    assert [found[name].state for name in ("object store", "queue", "code location")] == ["failing"] * 3
    assert CANARY not in json.dumps([one.told for one in found.values()])


def test_a_real_redis_tells_how_many_runs_wait(place, monkeypatch, tmp_path):
    import redis

    own, processes = own_services(tmp_path / "services"), Processes(tmp_path / "processes")
    try:
        start_redis(processes, tmp_path / "services", own)
    except ServiceMissingError as missing:
        pytest.skip(str(missing))
    try:
        client = redis.Redis.from_url(own.broker)
        monkeypatch.setenv(checks.BROKER_VARIABLE, own.broker)
        client.rpush("dagster", *range(3))
        assert findings(place)["queue"].told == "3 in dagster, 0 in gpu"
        client.rpush("gpu", *range(checks.WAITING_WARNING + 1))
        assert findings(place)["queue"].state == "warning"
    finally:
        processes.stop("redis")


def test_a_run_whose_pulse_stands_still_is_stuck_and_one_that_beats_is_not(tmp_path):
    store, now = FolderStore(tmp_path), [0.0]
    stuck = StuckRuns(lambda: now[0])

    def beats(run, beat, done=1, failed=0):
        told = {"run_id": run, "beat": beat, "stage": "rollouts", "done": done, "total": 9, "failed": failed,
                "host": "here", "process": 1}  # fmt: skip
        store.put(f"runs/{run}.json", json.dumps(told).encode())

    beats("dead", 5)
    for beat in range(4):
        beats("alive", beat, done=beat)
        state, told = stuck(store)
        now[0] += checks.STUCK_AFTER_S / 2
    assert state == "failing"
    assert "run dead" in told
    assert "run alive" not in told
    pulse.forget(store, "dead")
    beats("alive", 9, done=3, failed=3)
    assert stuck(store)[0] == "warning"
    pulse.forget(store, "alive")
    assert stuck(store) == ("ok", "no run under way")


NASTY = Finding("daemons", "failing", "</td><script>window.broken = 1</script>", 0.01)
FINE = Finding("disk", "ok", "51 GiB", 0.002)


def test_the_page_answers_people_and_machines_and_shows_script_as_text():
    with serving(lambda: [NASTY, FINE]) as url:
        code, text, headers = get(f"{url}/")
        assert code == 503
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        code, text, _ = get(f"{url}/health.json")
        told = json.loads(text)
        assert (code, told["healthy"], [one["name"] for one in told["findings"]]) == (503, False, ["daemons", "disk"])
        code, text, _ = get(f"{url}/metrics")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        parts = {sample.labels["part"]: sample.value for sample in families["duplex_bench_healthy"].samples}
        assert parts == {"daemons": 0.0, "disk": 1.0}
        assert get(f"{url}/live")[0] == 200
    with serving(lambda: [FINE]) as url:
        assert get(f"{url}/")[0] == 200


def test_with_a_token_only_life_is_shown_without_it_and_other_hosts_names_are_refused():
    with serving(lambda: [FINE], token=CANARY) as url:
        for path in ("/", "/health.json", "/metrics", "/nothing"):
            assert get(f"{url}{path}")[0] == 401
            assert get(f"{url}{path}", Authorization="Bearer wrong")[0] == 401
        assert get(f"{url}/metrics", Authorization=f"Bearer {CANARY}")[0] == 200
        assert get(f"{url}/live")[0] == 200
        assert get(f"{url}/live", Host="evil.example")[0] == 400


def test_asking_often_looks_once(monkeypatch):
    looked = []
    # A slow machine may take long over five questions; that they are kept for a while at all is what is asked here.
    monkeypatch.setattr(app, "KEPT_S", app.KEPT_S * 60)
    with serving(lambda: looked.append(1) or [FINE]) as url:
        for _ in range(5):
            get(f"{url}/health.json")
    assert len(looked) == 1


def test_the_command_looks_once_says_what_is_wrong_and_refuses_to_let_others_in(tmp_path):
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUPLEX_BENCH_")}
    environment["DAGSTER_HOME"] = str(tmp_path)
    command = [sys.executable, "-m", "duplex_bench.cli.main", "health"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert "daemons" in done.stdout
    assert "assets load here" in done.stdout
    let_in = [*command, "--port", "0", "--host", "0.0.0.0"]
    refused = subprocess.run(let_in, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert refused.returncode == 2
    assert "DUPLEX_BENCH_HEALTH_TOKEN" in refused.stderr


def test_a_daemon_that_runs_beats(tmp_path):
    """Dagster's own heartbeats, as its daemon writes them."""
    with instance_for_test() as instance:
        from dagster._core.workspace.load_target import EmptyWorkspaceTarget
        from dagster._daemon.controller import daemon_controller_from_instance

        with daemon_controller_from_instance(instance, EmptyWorkspaceTarget(), heartbeat_interval_seconds=1):
            deadline = time.monotonic() + 120
            while checks._daemons(instance)[0] != "ok" and time.monotonic() < deadline:
                threading.Event().wait(0.2)
            assert checks._daemons(instance)[0] == "ok"
        assert isinstance(instance, dg.DagsterInstance)
