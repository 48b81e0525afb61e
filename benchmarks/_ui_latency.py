"""How fast a running Dagster web server answers what its pages ask for."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

START_WITHIN_S = 180.0
ASKED = {
    "assets": """{ assetNodes { id assetKey { path } groupName kinds isPartitioned partitionStats
        { numMaterialized numPartitions numFailed numMaterializing } assetMaterializations(limit: 1)
        { timestamp runId } } }""",
    "staleness of all assets": "{ assetNodes { id assetKey { path } staleStatus staleCauses { reason } } }",
    "runs": """{ runsOrError(limit: 25) { ... on Runs { results { id status startTime endTime tags { key value }
        assetSelection { path } stats { ... on RunStatsSnapshot { stepsSucceeded materializations } } } } } }""",
    "partitions of one asset": """{ assetNodeOrError(assetKey: {path: ["multiparty", "rollouts"]}) { ... on AssetNode
        { partitionKeys partitionStats { numMaterialized numPartitions numFailed } assetPartitionStatuses { ... on
        DefaultPartitionStatuses { materializedPartitions failedPartitions unmaterializedPartitions } } } } }""",
    "events of one asset": """{ assetOrError(assetKey: {path: ["multiparty", "measurements"]}) { ... on Asset
        { assetMaterializations(limit: 50) { timestamp runId partition metadataEntries { label ... on IntMetadataEntry
        { intValue } ... on MarkdownMetadataEntry { mdStr } } } } } }""",
    "log of one run": """query Log($run: ID!) { logsForRun(runId: $run, limit: 1000) { ... on EventConnection { hasMore
        events { __typename ... on MessageEvent { message timestamp stepKey } } } } }""",
}


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a web server over the instance in ``root``, on loopback until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "DAGSTER_HOME": str(root), "DAGSTER_DISABLE_TELEMETRY": "1"}
    environment |= {"DUPLEX_BENCH_PROFILE": str(root / "size.toml"), "DUPLEX_BENCH_DATA": str(root / "data")}
    command = [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), "-w", "workspace.yaml"]
    with (root / "webserver.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=root, env=environment, stdout=log, stderr=log, start_new_session=True
        )  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        try:
            _until_answering(address, process)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _until_answering(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/server_info", timeout=5):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError("the Dagster web server did not answer: see webserver.log in the folder") from None
            os.sched_yield()


def latencies_ms(address: str, run_id: str, times: int) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile of the milliseconds that each question takes, one after the other.

    Raises:
        RuntimeError: The server answered with an error: nothing was measured.
    """
    found = {}
    for name, query in ASKED.items():
        body = json.dumps({"query": query, "variables": {"run": run_id} if "$run" in query else {}}).encode()
        request = urllib.request.Request(f"{address}/graphql", body, {"Content-Type": "application/json"})
        taken_ms = []
        # The first answer fills the server's own caches, as the first click of a day does.
        for _ in range(times + 1):
            began_s = time.perf_counter()
            with urllib.request.urlopen(request, timeout=120) as answer:
                told = json.load(answer)
            taken_ms.append(1e3 * (time.perf_counter() - began_s))
            if told.get("errors"):
                raise RuntimeError(f"{name}: {told['errors'][0]['message']}")
        found[name] = (float(np.median(taken_ms[1:])), float(np.percentile(taken_ms[1:], 95)))
    return found
