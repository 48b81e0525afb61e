"""The Dagster UI shows the graph and the lineage of a score, against an instance that a command-line run filled."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

CHECKOUT = Path(__file__).parents[1] / "cli" / "conftest.py"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder in which one silent system was run on the multiparty track."""
    spec = importlib.util.spec_from_file_location("checkout_for_browser", CHECKOUT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = module.Checkout(tmp_path_factory.mktemp("ui"))
    (found.root / "small.toml").write_text(module.PROFILE)
    found.run("init")
    found.card("one")
    done = found.run(*found.benchmark("one"), timeout_s=280)
    assert done.returncode == 0, done.stderr
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def ui(checkout):
    """Address of the webserver; it ends by SIGINT, as from a terminal."""
    port = free_port()
    environment = {**os.environ, "DAGSTER_HOME": str(checkout.root), "DUPLEX_BENCH_PROFILE": "small.toml",
                   "DUPLEX_BENCH_DATA": str(checkout.root / "data"), "DAGSTER_DISABLE_TELEMETRY": "1"}  # fmt: skip
    command = [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), "-w", "workspace.yaml"]
    log = (checkout.root / "webserver.log").open("w")
    # Started by this process and not by a shell: a shell's background job ignores SIGINT, and so would its children.
    process = subprocess.Popen(
        command, cwd=checkout.root, env=environment, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 180
    while True:
        try:
            with urllib.request.urlopen(f"{address}/server_info", timeout=5) as answer:
                assert answer.status == 200
            break
        except OSError:
            assert process.poll() is None, (checkout.root / "webserver.log").read_text()
            assert time.monotonic() < deadline, "the webserver did not answer"
            os.sched_yield()
    yield address
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    log.close()


@pytest.fixture
def page(chromium):
    """A page that fails its test when a script throws, or anything but this machine is asked for anything."""
    context = chromium.new_context(viewport={"width": 1600, "height": 1000})
    found = context.new_page()
    trouble = []
    found.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    found.on(
        "request",
        lambda request: (
            trouble.append(request.url) if not request.url.startswith(("http://127.0.0.1", "data:", "blob:")) else None
        ),
    )
    yield found
    context.close()
    assert trouble == []


def shown(page, path, name):
    """Keep a picture for whoever wants to look."""
    folder = os.environ.get("DUPLEX_BENCH_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_the_graph_shows_its_groups(ui, page):
    page.goto(f"{ui}/asset-groups", wait_until="domcontentloaded")
    for group in ("multiparty", "conversation", "results", "systems"):
        page.get_by_text(group, exact=True).first.wait_for(timeout=60_000)
    shown(page, ui, "graph")


def test_the_lineage_of_a_score_goes_back_to_its_scene(ui, page):
    page.goto(
        f"{ui}/assets/multiparty/measurements?view=lineage&lineageScope=upstream&lineageDepth=8",
        wait_until="domcontentloaded",
    )
    for asset in ("measurements", "rollouts", "scenes", "utterance_speech", "pairs", "cards"):
        page.get_by_text(asset, exact=True).first.wait_for(timeout=60_000)
    shown(page, ui, "lineage")


def test_a_materialisation_shows_counts_and_a_preview(ui, page):
    page.goto(f"{ui}/assets/multiparty/items?view=events", wait_until="domcontentloaded")
    page.get_by_text("request_windows", exact=True).first.wait_for(timeout=60_000)
    page.get_by_text("preview", exact=True).first.wait_for(timeout=60_000)
    shown(page, ui, "events")


def test_the_partition_of_the_system_that_ran_is_there(ui, page):
    page.goto(f"{ui}/assets/multiparty/measurements?view=partitions", wait_until="domcontentloaded")
    page.get_by_text("one", exact=True).first.wait_for(timeout=60_000)
    shown(page, ui, "partitions")


def test_the_run_is_a_run_of_the_code_location(ui, page):
    page.goto(f"{ui}/runs", wait_until="domcontentloaded")
    page.get_by_text("Success").first.wait_for(timeout=60_000)
    shown(page, ui, "runs")
