"""Two systems whose pins exclude each other's and ours, in one Dagster backfill, with both rows in the tables."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from duplex_bench.storage.frames import read_frame
from duplex_bench.systems.registry import load_cards

pytestmark = [pytest.mark.moshi, pytest.mark.timeout(3000)]

PROFILE = """
name = "small"
seed = 1

[multiparty.grammar]
n_pairs = 1
seed = 3
size = { silence_turns_mean = 5.0, n1_turns_mean = 1.0, n3_turns_mean = 1.0, elaborations_mean = 0.0 }

[conversation.generator]
n_sessions = 1
seed = 5
minutes = 1.2

[conversation.corpus]
liveliness_top_share = 1.0

[conversation.curation]
cap_per_kind = 1

[rollout.protocols]
turn_end_cap_s = 4.0

[statistics]
n_resamples = 50
"""
OLD = """
import sys

import numpy as np

from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported

SPEC = Spec(24000, 24000, 4800, 4800, True, capabilities=frozenset({"seedable"}))


class Session:
    units = 0

    def open(self, request):
        refuse_unsupported(request, SPEC)

    def step(self, unit):
        checked_unit(unit, SPEC)
        self.units += 1
        return [Out("audio", self.units - 1, pcm=(unit * 0.5).astype(np.float32))]

    def close(self):
        return SessionStats(units=self.units, warnings=(f"numpy {np.__version__}, moshi {'moshi' in sys.modules}",))


class System:
    spec = SPEC

    def new_session(self):
        return Session()


def create(settings):
    return System()
"""
CARD = """
name = "old-numpy"
title = "On numpy 1"
family = "policy"
adapter = "old:create"
licence = "MIT"

[environment]
kind = "python"
lock = "old.txt"
python_path = ["."]
"""
SYSTEMS = ("moshi-tiny", "old-numpy")


@pytest.fixture
def checkout(tmp_path, moshi_card, moshi_cache):
    """A folder as a user has it, with a card of their own; Moshi's environment is the one that stands already."""
    systems = tmp_path / "data" / "systems"
    systems.mkdir(parents=True)
    (systems / "old.py").write_text(OLD)
    (systems / "old.toml").write_text(CARD)
    (systems / "old.txt").write_text("numpy==1.26.4\n")
    (tmp_path / "small.toml").write_text(PROFILE)
    made = tmp_path / "data" / "cache" / "environments"
    made.mkdir(parents=True)
    for entry in (moshi_cache / "environments").iterdir():
        (made / entry.name).symlink_to(entry.absolute())
    environment = {**os.environ, "DUPLEX_BENCH_PROFILE": str(tmp_path / "small.toml"), "DUPLEX_BENCH_LIMIT": "1",
                   "DUPLEX_BENCH_DATA": str(tmp_path / "data"), "DAGSTER_HOME": str(tmp_path),
                   "OMP_NUM_THREADS": "1", "DAGSTER_DISABLE_TELEMETRY": "1", "COLUMNS": "300"}  # fmt: skip

    def call(*words):
        done = subprocess.run(
            [str(Path(sys.executable).parent / words[0]), *words[1:]], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def daemon():
        """Runs of a backfill are queued: the daemon starts them."""
        with (tmp_path / "daemon.log").open("w") as log:
            running = subprocess.Popen(
                [str(Path(sys.executable).parent / "dagster-daemon"), "run", "-w", "workspace.yaml"],
                cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            yield
        finally:
            running.terminate()
            try:
                running.wait(timeout=60)
            except subprocess.TimeoutExpired:
                running.kill()

    call.folder, call.daemon = tmp_path, daemon
    return call


def test_moshi_and_an_older_numpy_run_in_one_backfill(checkout):
    run = ("duplex-bench", "run", "--profile", str(checkout.folder / "small.toml"), "--limit", "1")
    checkout("duplex-bench", "init")
    # A system whose environment is not there is passed over, with what to do.
    assert "systems setup old-numpy" in checkout(*run, "--system", "never-speak", "--system", "old-numpy")
    checkout("duplex-bench", "systems", "setup", "old-numpy")
    checkout("dagster", "job", "backfill", "-w", "workspace.yaml", "-j", "evaluate_system",
             "--partitions", ",".join(SYSTEMS), "--noprompt")  # fmt: skip
    with checkout.daemon():
        runs = _runs(checkout)
    assert {tags["dagster/partition"]: status for tags, status in runs} == dict.fromkeys(SYSTEMS, "SUCCESS")
    assert len({tags["dagster/backfill"] for tags, _ in runs}) == 1
    # The report's tables take both, and run nothing again.
    told = checkout(*run, *(word for name in ("never-speak", *SYSTEMS) for word in ("--system", name)))
    assert "report" in told.lower()
    for track in ("multiparty", "conversation"):
        outcomes = {name: _table(checkout.folder, track, "rollouts", name) for name in SYSTEMS}
        assert all(set(frame["outcome"]) <= {"completed", "no_audio"} for frame in outcomes.values())
        assert all(frame.height for frame in outcomes.values())
        statistics = _table(checkout.folder, track, "statistics")
        assert set(SYSTEMS) <= set(statistics["system"])


def _table(folder, track, name, system=None):
    from duplex_bench.stages.workspace import open_workspace

    workspace = open_workspace(str(folder / "small.toml"), folder / "data", 1)
    frame = read_frame(workspace.store, workspace.table_key((track, name), system))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _runs(checkout):
    """Runs of the backfill, once they ended: partition tags and status; with what their workers counted."""
    code = """
import json, threading, time
import dagster as dg
from dagster import DagsterInstance, RunsFilter
over = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
deadline = time.monotonic() + 2400
with DagsterInstance.get() as instance:
    while True:
        runs = [run for run in instance.get_runs() if "dagster/backfill" in run.tags]
        if (len(runs) == 2 and all(run.status in over for run in runs)) or time.monotonic() > deadline:
            break
        threading.Event().wait(1.0)
    logs = {run.run_id: [e.user_message for e in instance.all_logs(run.run_id)] for run in runs}
    print("RUNS" + json.dumps([(run.tags, run.status.value, logs[run.run_id]) for run in runs]))
"""
    told = checkout("python", "-c", code)
    found = json.loads(told[told.index("RUNS") + 4 :].splitlines()[0])
    for tags, status, log in found:
        assert status == "SUCCESS", [line for line in log if "rror" in line][-5:]
        # Dagster Pipes brought each worker's words into its run's log.
        assert any("serves" in line for line in log), (tags, log)
    old = next(log for tags, _, log in found if tags["dagster/partition"] == "old-numpy")
    assert any("numpy 1.26.4, moshi False" in line for line in old)
    return [(tags, status) for tags, status, _ in found]


def test_the_two_and_this_environment_have_three_versions_of_numpy(moshi_python):
    told = subprocess.run(
        [moshi_python, "-c", "import numpy; print(numpy.__version__)"], check=True, capture_output=True, text=True
    )
    assert len({told.stdout.strip(), "1.26.4", np.__version__}) == 3
    assert load_cards(None, plug_ins=False).cards["moshi-tiny"].card.environment.is_made_here
