"""The graph as a whole: what is in it, and what every asset must have. A change of it is seen in review."""

import os
from pathlib import Path

import dagster as dg
import pytest

from duplex_bench.cli import graph as parts_of_a_run
from duplex_bench.defs.partitions import MOST_SYSTEMS, systems

pytestmark = pytest.mark.dagster

SNAPSHOT = Path(__file__).parent / "graph.txt"
UPDATE = "DUPLEX_BENCH_UPDATE_SNAPSHOTS"
GROUPS = {"multiparty", "conversation", "systems", "results"}


def told(node):
    """One asset in one block of lines."""
    yield "/".join(node.key.path)
    yield f"  group {node.group_name}, kinds {' '.join(sorted(node.kinds)) or 'none'}"
    yield f"  code version {node.code_version}, partitions {'systems' if node.partitions_def == systems else 'none'}"
    yield f"  from {' '.join(sorted('/'.join(key.path) for key in node.parent_keys)) or 'nothing'}"
    if node.check_keys:
        yield f"  checks {' '.join(sorted(key.name for key in node.check_keys))}"


def snapshot(graph, definitions):
    blocks = ["\n".join(told(node)) for node in sorted(graph.asset_nodes, key=lambda node: node.key)]
    jobs = sorted(job.name for job in definitions.resolve_all_job_defs() if not job.name.startswith("__"))
    return "\n\n".join([*blocks, f"jobs {' '.join(jobs)}"]) + "\n"


def test_the_graph_is_the_one_that_was_reviewed(graph, definitions):
    found = snapshot(graph, definitions)
    if os.environ.get(UPDATE):
        SNAPSHOT.write_text(found, "utf-8")
    assert found == SNAPSHOT.read_text("utf-8"), (
        f"the asset graph differs from {SNAPSHOT.name}. If that is meant, run this test once with {UPDATE}=1 and "
        "commit the file; a raised code version marks what it made as out of date for all systems"
    )


def test_the_definitions_can_be_loaded(definitions):
    dg.Definitions.validate_loadable(definitions)


def test_every_asset_says_where_it_belongs_and_what_it_is(graph):
    for node in graph.asset_nodes:
        assert node.group_name in GROUPS, node.key
        assert node.description, f"{node.key} has no description"
        if node.is_materializable:
            assert node.code_version, f"{node.key} has no code version: its changes would stale nothing"
            assert node.kinds, f"{node.key} has no kind"


def test_what_nothing_builds_yet_says_so(graph):
    for node in graph.asset_nodes:
        if not node.is_executable:
            assert "planned" in node.kinds, node.key
            assert node.description.startswith("Not built yet"), node.key


def test_one_backfill_policy_along_the_chain(graph):
    """Dagster refuses a backfill over assets whose policies differ."""
    assert len({str(node.backfill_policy) for node in graph.asset_nodes if node.is_executable}) == 1


def test_systems_stay_below_the_number_at_which_staleness_is_no_longer_computed(graph):
    assert MOST_SYSTEMS == 99
    for node in graph.asset_nodes:
        if node.partitions_def is not None:
            assert node.partitions_def == systems, f"{node.key} is partitioned by something else"
            assert len(node.partitions_def.get_partition_keys()) <= MOST_SYSTEMS


def test_every_check_stands_on_an_asset_and_says_what_it_checks(graph):
    for node in graph.asset_check_nodes:
        assert graph.has(node.key.asset_key)
        assert node.description, node.key


def test_a_run_materialises_everything_that_can_be(graph):
    """What the command line runs is the graph: an asset that no part names would never be made by it."""
    tracks = ("multiparty", "conversation")
    parts = [*parts_of_a_run.shared_parts(tracks), parts_of_a_run.system_part("any", tracks)]
    parts.append(parts_of_a_run.summary_part(tracks, ["any"]))
    parts.append(parts_of_a_run.release_part())
    named = {key for part in parts for key in part.keys}
    assert named == set(graph.executable_asset_keys)


def test_executor_stays_in_the_process(definitions):
    """Parallelism is runs times worker processes inside a stage; a process for each step would double both."""
    assert definitions.executor is dg.in_process_executor
