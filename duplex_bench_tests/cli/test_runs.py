"""Runs from the command line against a real run database: resumed, killed, interrupted, made stale by one card."""

import json
import os
import signal
from pathlib import Path

import dagster as dg
import pytest

from duplex_bench.cli import local_run
from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.storage.frames import content_digest

pytestmark = pytest.mark.process

ITEMS = 4
HOLDING = "holding_system:create"


def until(condition):
    """Wait for something that another process does."""
    assert wait_until(condition, 300), "it never came about"


def alive(pid):
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Held:
    """A card of a system that stops at its ``at``-th session, and what it was opened for."""

    def __init__(self, checkout, name, at):
        self.folder = checkout.root / name
        self.folder.mkdir()
        os.mkfifo(self.folder / "let-go")
        (self.folder / "hold-at.txt").write_text(str(at))
        checkout.card(name, HOLDING, folder=str(self.folder))

    def wait(self):
        until((self.folder / "held").exists)

    def release(self):
        (self.folder / "hold-at.txt").unlink()

    def let_go(self):
        (self.folder / "let-go").write_text("")

    @property
    def opened(self):
        return [line.split()[0] for line in (self.folder / "opened.txt").read_text().splitlines()]

    @property
    def worker(self):
        return int((self.folder / "opened.txt").read_text().split()[-1])


@pytest.fixture(scope="module")
def first(checkout):
    """Two systems of a user run to the end: what later tests compare with."""
    checkout.card("one")
    checkout.card("two")
    done = checkout.run(*checkout.benchmark("one", "two"))
    assert done.returncode == 0, done.stderr
    assert checkout.table("items").height == ITEMS
    return done


def test_a_run_ends_with_scores_of_every_item(checkout, first):
    assert "Report:" in first.stdout
    assert set(checkout.table("rollouts", "one")["outcome"]) == {"completed"}
    assert checkout.table("measurements", "one")["item_id"].n_unique() == ITEMS


def test_runs_made_here_are_runs_of_the_code_location(checkout, first, monkeypatch):
    """The UI links a run to its job, and can run it again, only if the run carries its origin."""
    monkeypatch.chdir(checkout.root)
    with local_run.instance_of(checkout.root) as instance:
        runs = {run.tags["duplex_bench/part"]: run for run in instance.get_runs()}
        told = instance.get_latest_materialization_event(dg.AssetKey(["multiparty", "items"]))
        partitions = instance.get_materialized_partitions(dg.AssetKey(["multiparty", "measurements"]))
    assert {run.status for run in runs.values()} == {dg.DagsterRunStatus.SUCCESS}
    one = next(run for part, run in runs.items() if part.startswith("one"))
    assert one.tags["dagster/partition"] == "one"
    for run in runs.values():
        origin = run.remote_job_origin
        assert origin.repository_origin.code_location_origin.location_name == "duplex_bench"
        assert origin.repository_origin.repository_name == "__repository__"
        assert run.asset_selection
    assert told.asset_materialization.metadata["items"].value == ITEMS
    assert partitions == {"one", "two"}


@pytest.mark.slow
def test_asking_again_does_nothing(checkout, first):
    before = checkout.finished("rollouts", "one")
    done = checkout.run(*checkout.benchmark("one", "two"))
    assert done.returncode == 0, done.stderr
    assert "4 parts unchanged since their last run" in done.stdout
    assert checkout.finished("rollouts", "one") == before


STALE = """
import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from duplex_bench.cli import local_run
from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.definitions import defs
from pathlib import Path
import json, sys
root = Path(sys.argv[1])
card = dg.AssetKey(["systems", "cards"])
with local_run.instance_of(root) as instance:
    for name in sys.argv[2:]:
        assert local_run.execute(defs, instance, root, [card], partition=name, label="cards").success
    with dg.DagsterInstance.from_config(str(root)) as fresh:
        from dagster._core.loader import LoadingContextForTest
        resolver = CachingStaleStatusResolver(fresh, defs.resolve_asset_graph(), LoadingContextForTest(fresh))
        key = dg.AssetKey(["multiparty", "rollouts"])
        print(json.dumps({name: resolver.get_status(key, name).value for name in sys.argv[2:]}))
"""


def test_one_edited_card_makes_one_system_stale(checkout, first):
    checkout.card("two", epoch=1)

    def stale():
        code = "import os; os.environ['DUPLEX_BENCH_PROFILE'] = 'small.toml'\n" + STALE
        done = checkout.run(str(checkout.root), "one", "two", code=code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    assert stale() == {"one": "FRESH", "two": "STALE"}
    before = {name: checkout.finished("rollouts", name) for name in ("one", "two")}
    # What is only told about a system runs nothing again.
    checkout.card("one", notes="a better note")
    done = checkout.run(*checkout.benchmark("one", "two"))
    assert done.returncode == 0, done.stderr
    assert checkout.finished("rollouts", "one") == before["one"], "nothing of the other system is run again"
    assert len(checkout.finished("rollouts", "two") - before["two"]) == ITEMS


def test_a_killed_run_goes_on_where_it_was(checkout, first):
    held = Held(checkout, "killed", at=3)
    process = checkout.start(*checkout.benchmark("killed"))
    held.wait()
    # What is finished is on disk within seconds, while the third item is still at work.
    until(lambda: len(checkout.finished("rollouts", "killed")) == 2)
    worker = held.worker
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not alive(worker))
    # A write that was under way leaves such a file: it is never read.
    torn = checkout.store / "ledger/multiparty/rollouts/killed/.writing-torn"
    torn.write_text('{"key": "')
    held.release()
    opened = held.opened
    done = checkout.run(*checkout.benchmark("killed"))
    assert done.returncode == 0, done.stderr
    again = held.opened[len(opened) :]
    assert len(again) == 2, "only what was missing"
    assert set(opened[:2]).isdisjoint(again)
    assert set(opened[:2]) | set(again) == set(checkout.table("items")["stimulus_digest"])
    same = ["item_id", "outcome", "listener_audio", "timeline_s", "repeat"]
    assert content_digest(checkout.table("rollouts", "killed").select(same)) == content_digest(
        checkout.table("rollouts", "one").select(same)
    )


@pytest.mark.slow
def test_an_interrupt_loses_nothing_finished(checkout, first):
    held = Held(checkout, "interrupted", at=3)
    process = checkout.start(*checkout.benchmark("interrupted"))
    held.wait()
    os.killpg(process.pid, signal.SIGINT)
    held.let_go()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err, err
    assert "run the same again" in err
    kept = checkout.finished("rollouts", "interrupted")
    assert len(kept) >= 2
    held.release()
    opened = held.opened
    done = checkout.run(*checkout.benchmark("interrupted"))
    assert done.returncode == 0, done.stderr
    assert len(held.opened) - len(opened) == ITEMS - len(kept)
    assert set(checkout.table("rollouts", "interrupted")["outcome"]) == {"completed"}


@pytest.mark.slow
def test_a_system_that_fails_is_named_and_tried_again(checkout, first):
    checkout.card("broken", "no_such_module:create")
    done = checkout.run(*checkout.benchmark("broken"))
    assert "no_such_module" in done.stderr + done.stdout
    assert "Run the same again" in done.stderr
    checkout.card("broken", "duplex_bench.systems.adapters.never_speak:create")
    assert checkout.run(*checkout.benchmark("broken")).returncode == 0
    assert set(checkout.table("rollouts", "broken")["outcome"]) == {"completed"}


@pytest.mark.slow
def test_a_changed_ledger_is_told_and_its_work_done_again(checkout, first):
    before = checkout.table("activity", "one")
    segment = next((checkout.store / "ledger/multiparty/activity/one").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b'"ok"', b'"OK"', 1))
    key = segment.relative_to(checkout.store)
    done = checkout.run(*checkout.benchmark("one"), "--again")
    assert done.returncode == 0, done.stderr
    assert f"damaged in the store: {key}. That work was done again" in " ".join(done.stderr.split())
    assert checkout.table("activity", "one").equals(before)
