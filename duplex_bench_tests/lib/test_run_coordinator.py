"""Runs of systems are queued with their card's limits, and the queue of dagster.yaml holds them to those."""

from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import instance_for_test
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from duplex_bench.lib.run_coordinator import GPU_TAG, PROVIDER_TAG, limit_tags
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.dagster

ROOT = Path(__file__).parents[2]
CARD = """
name = "{name}"
title = "{name}"
family = "hosted"
adapter = "duplex_bench.systems.adapters.never_speak:create"
licence = "test"
{more}
"""
LOCATION = """
import dagster as dg

@dg.job
def evaluate():
    pass

repository = dg.Definitions(jobs=[evaluate])
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("data")
    folder = tmp_path / "systems"
    folder.mkdir()
    more = {"one": 'provider = "acme"', "two": 'provider = "acme"', "three": 'provider = "other"', "plain": "",
            "big": "gpu = true", "bigger": "gpu = true"}  # fmt: skip
    for name, text in more.items():
        (folder / f"{name}.toml").write_text(CARD.format(name=name, more=text))
    shipped = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    # Its launcher only notes what it was handed: what is tested is the queue.
    launcher = {"module": "dagster._core.test_utils", "class": "MockedRunLauncher"}
    with pytest.MonkeyPatch.context() as patch, instance_for_test(
        overrides={
            "run_coordinator": shipped["run_coordinator"],
            "concurrency": {**shipped["concurrency"], "runs": {**shipped["concurrency"]["runs"],
                                                               "max_concurrent_runs": 10}},
            "run_launcher": launcher,
        }
    ) as made:  # fmt: skip
        patch.setenv("DUPLEX_BENCH_DATA", str(tmp_path))
        yield made


@pytest.fixture(scope="module")
def found(instance, tmp_path_factory):
    """Every run submitted once, and the daemon looked once: (tags, launched) by system."""
    from dagster._core.test_utils import create_test_daemon_workspace_context

    folder = tmp_path_factory.mktemp("location")
    (folder / "location.py").write_text(LOCATION)
    target = PythonFileTarget(str(folder / "location.py"), None, str(folder), location_name="location")
    with create_test_daemon_workspace_context(target, instance) as workspace:
        return queued(instance, workspace, ["one", "two", "three", "plain", "big", "bigger", "gone"])


def queued(instance, workspace, names):
    """Submit one run a system and let the daemon look once; (tags, launched) by system."""
    from dagster._core.test_utils import create_run_for_test

    request = workspace.create_request_context()
    location = request.get_code_location("location")
    job = location.get_repository("__repository__").get_full_job("evaluate")
    ids = {}
    for name in names:
        run = create_run_for_test(
            instance, job_name="evaluate", tags={"dagster/partition": name}, status=dg.DagsterRunStatus.NOT_STARTED,
            remote_job_origin=job.get_remote_origin(), job_code_origin=job.get_python_origin(),
        )  # fmt: skip
        instance.submit_run(run.run_id, request)
        ids[name] = run.run_id
    list(QueuedRunCoordinatorDaemon(interval_seconds=5).run_iteration(workspace))
    launched = {run.run_id for run in instance.run_launcher.queue()}
    return {name: (instance.get_run_by_id(run_id).tags, run_id in launched) for name, run_id in ids.items()}


def launched(found, *names):
    return [found[name][1] for name in names]


def test_two_runs_of_one_provider_wait_for_each_other_and_others_do_not(found):
    assert [found[name][0].get(PROVIDER_TAG) for name in ("one", "two", "three")] == ["acme", "acme", "other"]
    assert launched(found, "one", "two", "three", "plain") == [True, False, True, True]
    assert PROVIDER_TAG not in found["plain"][0]


def test_one_run_at_a_time_has_the_gpu(found):
    assert [found[name][0].get(GPU_TAG) for name in ("big", "bigger", "one")] == ["yes", "yes", None]
    assert launched(found, "big", "bigger") == [True, False]


def test_a_system_that_no_card_describes_is_queued_all_the_same(found):
    assert launched(found, "gone") == [True]


@pytest.mark.unit
def test_every_shipped_hosted_card_names_whose_limits_apply():
    cards = [found.card for found in load_cards(None, plug_ins=False).cards.values()]
    keyed = [card for card in cards if any("API_KEY" in name for name in card.needs_env)]
    assert keyed
    assert all(limit_tags(card).get(PROVIDER_TAG) for card in keyed)


@pytest.mark.unit
def test_limits_change_nothing_that_is_run():
    card = SystemCard(name="a", title="a", family="policy", adapter="a:b", licence="c")
    limited = card.model_copy(update={"gpu": True, "provider": "acme", "max_inflight": 9})
    assert limited.execution_digest() == card.execution_digest()


@pytest.mark.unit
def test_a_new_folder_gets_the_limits_of_the_checkout():
    template = ROOT / "duplex_bench" / "cli" / "templates" / "dagster.yaml"
    assert template.read_text() == (ROOT / "dagster.yaml").read_text()
