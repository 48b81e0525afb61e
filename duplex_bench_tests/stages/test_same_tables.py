"""A run over a bucket gives, byte for byte, the tables of a run over a folder; and the comparison can fail."""

import importlib.util
import sys
from pathlib import Path

import pytest
from planted_run import build

from duplex_bench.stages.same_tables import Side, compare_tables
from duplex_bench.stages.stored_run import required
from duplex_bench.storage.frames import write_frame
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.process


def _servers():
    name = "fault_servers"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "storage" / "conftest.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


serving, s3_server, s3_environment = _servers().serving, _servers().s3_server, _servers().s3_environment


def test_a_run_over_a_bucket_is_the_run_over_a_folder(
    run, kept_run, quick_engines, small_workspace, tmp_path, monkeypatch, s3_environment
):
    monkeypatch.setenv("DUPLEX_BENCH_STORE", f"s3://bench/{tmp_path.name}")
    build(tmp_path / "bucket", small_workspace, quick_engines)
    over_bucket = small_workspace(tmp_path / "bucket")
    local = Side(FolderStore(kept_run / "store"), kept_run)
    remote = Side(over_bucket.store, over_bucket.data)
    found = compare_tables(run.profile.name, local, remote)
    assert found.different == ()
    assert len(found.same_bytes) > 20
    # Only rollouts hold times.
    assert all("/rollouts/" in key or "sessions" in key for key in found.same_but_times)

    key = run.table_key(("multiparty", "words"), "early")
    words = required(over_bucket, "multiparty", "words", "early")
    write_frame(over_bucket.store, key, words.reverse())
    over_bucket.store.delete(run.table_key(("multiparty", "activity"), "early"))
    found = compare_tables(run.profile.name, local, remote)
    assert set(found.different) == {key, run.table_key(("multiparty", "activity"), "early")}
