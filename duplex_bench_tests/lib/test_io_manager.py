"""Tables between assets: what is missing, one partition, several, and what an output says about itself."""

from dataclasses import replace

import dagster as dg
import polars as pl
import pytest

from duplex_bench.lib.io_manager import OPTIONAL, WHOLE_ONLY, TableIOManager
from duplex_bench.lib.metadata import passed_or_not, reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.scored_with import scored_otherwise
from duplex_bench.storage.frames import content_digest

pytestmark = pytest.mark.dagster

THREE = dg.StaticPartitionsDefinition(["a", "b", "c"])


@dg.asset(key=["t", "per_system"], partitions_def=THREE)
def per_system(context: dg.AssetExecutionContext):
    return pl.DataFrame({"system": [context.partition_key]})


@dg.asset(key=["t", "next"], partitions_def=THREE, ins={"one": dg.AssetIn(["t", "per_system"])})
def following(context: dg.AssetExecutionContext, one):
    assert one["system"].item() == context.partition_key
    return one.with_columns(seen=True)


@dg.asset(key=["t", "all"], ins={"parts": dg.AssetIn(["t", "per_system"])})
def over_all(parts):
    return pl.DataFrame({"system": list(parts), "rows": [part["system"].item() for part in parts.values()]})


@dg.asset(key=["t", "whole"])
def whole():
    return pl.DataFrame({"x": [1, 2]})


@dg.asset(key=["t", "reader"], ins={"whole": dg.AssetIn(["t", "whole"])})
def reader(whole):
    return whole


@dg.asset(key=["t", "lenient"], ins={"whole": dg.AssetIn(["t", "whole"], metadata={OPTIONAL: True})})
def lenient(whole):
    return pl.DataFrame({"missing": [whole is None]})


@dg.asset(key=["t", "looker"], ins={"parts": dg.AssetIn(["t", "per_system"], metadata={WHOLE_ONLY: True})})
def looker(parts):
    return pl.DataFrame({"system": list(parts)})


ASSETS = [per_system, following, over_all, whole, reader, lenient, looker]


@pytest.fixture(scope="module")
def instance():
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@pytest.fixture
def run(tmp_path, instance):
    """Materialises some of the assets above in a fresh folder; tables are read back by key."""
    workspace = WorkspaceResource(profile="demo", data=str(tmp_path))
    resources = {"workspace": workspace, "io_manager": TableIOManager(workspace=workspace)}

    def materialise(*names, partition=None, raises=True):
        keys = [dg.AssetKey(["t", name]) for name in names]
        return dg.materialize(
            ASSETS, selection=keys, resources=resources, instance=instance, partition_key=partition,
            raise_on_error=raises,
        )  # fmt: skip

    def table(name):
        return pl.read_parquet(tmp_path / "store/tables/demo/t" / f"{name}.parquet")

    return materialise, table


def test_missing_partitions_are_left_to_the_stage(run):
    materialise, table = run
    for partition in "ac":
        materialise("per_system", partition=partition)
    materialise("all")
    assert table("all").to_dict(as_series=False) == {"system": ["a", "c"], "rows": ["a", "c"]}


def test_what_scores_were_made_with_is_noted_with_them(tmp_path, instance):
    @dg.asset(key=["multiparty", "measurements"], partitions_def=THREE)
    def measurements():
        return pl.DataFrame({"value": [1.0]})

    resource = WorkspaceResource(profile="demo", data=str(tmp_path))
    resources = {"workspace": resource, "io_manager": TableIOManager(workspace=resource)}
    dg.materialize([measurements], resources=resources, instance=instance, partition_key="b")
    workspace = resource.open()
    gate = replace(workspace.profile.gate, threshold=0.02)
    changed = replace(workspace, profile=replace(workspace.profile, gate=gate))
    assert [scored_otherwise(one, "multiparty", "b") for one in (workspace, changed)] == [False, True]
    # Nothing is known of what was never scored.
    assert not scored_otherwise(changed, "multiparty", "a")


def test_a_single_partition_arrives_by_name_too(run):
    materialise, table = run
    materialise("per_system", partition="b")
    materialise("all")
    assert table("all")["system"].to_list() == ["b"]


def test_without_any_partition_there_is_an_empty_table_of_tables(run):
    materialise, table = run
    materialise("all")
    assert table("all").height == 0


def test_a_partition_reads_its_own(run):
    materialise, table = run
    for partition in "ab":
        materialise("per_system", partition=partition)
    materialise("next", partition="b")
    assert table("next/b").to_dicts() == [{"system": "b", "seen": True}]


@pytest.mark.parametrize(
    ("name", "partition", "told"), [("reader", None, "t/whole"), ("next", "c", "t/per_system of c")]
)
def test_a_table_that_was_never_made_is_named_with_the_remedy(run, name, partition, told):
    materialise, _ = run
    result = materialise(name, partition=partition, raises=False)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    error = failure.step_failure_data.error
    while error.cause is not None:
        error = error.cause
    assert told in error.message
    assert "materialise it first" in error.message


def test_an_optional_table_arrives_as_none(run):
    materialise, table = run
    materialise("lenient")
    assert table("lenient")["missing"].to_list() == [True]
    materialise("whole")
    materialise("lenient")
    assert table("lenient")["missing"].to_list() == [False]


def test_a_damaged_partition_ends_who_counts_it_and_not_who_looks(run, tmp_path):
    materialise, table = run
    for partition in "ab":
        materialise("per_system", partition=partition)
    damaged = tmp_path / "store/tables/demo/t/per_system/a.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert not materialise("all", raises=False).success
    materialise("looker")
    assert table("looker")["system"].to_list() == ["b"]


def test_an_output_says_what_it_holds():
    frame = pl.DataFrame({"system": ["a"], "wall_s": [0.1], "text": ["x" * 300 + "|"]})
    out = reported(StageResult(frame, {"planned": 3, "failed 1": 1}, picture_png=b"png", note="- look"))
    assert out.data_version == dg.DataVersion(content_digest(frame))
    assert out.metadata["planned"].value == 3
    assert out.metadata["failed_1"].value == 1
    assert "| system | wall_s | text |" in out.metadata["preview"].value
    assert all(len(line) < 200 for line in out.metadata["preview"].value.splitlines())
    assert out.metadata["picture"].value.startswith("![picture](data:image/png;base64,")


def test_what_only_times_a_run_does_not_change_the_data_version():
    one, other = (pl.DataFrame({"system": ["a"], "wall_s": [wall_s]}) for wall_s in (0.1, 0.2))
    assert reported(StageResult(one)).data_version == reported(StageResult(other)).data_version
    changed = pl.DataFrame({"system": ["b"], "wall_s": [0.1]})
    assert reported(StageResult(one)).data_version != reported(StageResult(changed)).data_version


def test_a_large_picture_stays_out_of_the_event_log():
    frame = pl.DataFrame({"a": [1]})
    assert "picture" not in reported(StageResult(frame, picture_png=b"x" * 100_000)).metadata


def test_a_check_has_its_numbers():
    found = passed_or_not(False, {"missing": 2}, severity="WARN")
    assert (found.passed, found.severity, found.metadata["missing"].value) == (False, dg.AssetCheckSeverity.WARN, 2)
