"""Logs, counts and the metrics endpoint of real work: what is said, what adds up, and who may look."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duplex_bench.cli.cluster.settings import free_ports
from duplex_bench.records.outcome import Outcome
from duplex_bench.stages.telemetry import exposition, observed
from duplex_bench.stages.telemetry.counts import METRICS, Counts, places
from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.happenings import Happening, heard_by
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.spend import SpendLedger, SpentCall

pytestmark = pytest.mark.process


def work(argument):
    if argument == "bad":
        raise ValueError("no such thing")
    return json.dumps({"outcome": "completed", "said": argument})


def do_work(store, scope="multiparty/rollouts/one", arguments=("a", "b", "bad")):
    tasks = [Task(f"key-{name}", f"item-{name}", name) for name in arguments]
    details = {"track": "multiparty", "system": "one", "outcome": "completed", "attempts": 2, "timeline_s": 1.5}
    lateness = {"lateness_edges_ms": [1.0, 20.0], "lateness_counts": [5, 3, 2], "lateness_worst_ms": 31.0}
    return resume(
        ItemLedger(store, scope), "multiparty rollouts one", tasks, work, details=lambda _: details | lateness
    )


def values(text):
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def look(port, path="/metrics", token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)) as answer:
        return answer.read().decode()


def test_counts_of_work_are_served_while_it_goes_on_and_add_up_over_runs(tmp_path):
    store, counts = FolderStore(tmp_path), Counts()
    with heard_by(counts.hear), exposition.served(exposition.registry(lambda: counts), "127.0.0.1", 0, None) as port:
        do_work(store)
        with SpendLedger(store) as spend:
            call = SpentCall("judge", "one", "opus", "k", 10, 5, 0.25, None)
            spend.settle(None, call)
            spend.settle(None, SpentCall("judge", "one", "opus", "k2", None, None, None, None))
        seen = values(look(port))
    item = ("duplex_bench_items_total", "stage=rollouts")
    assert seen[(item[0], item[1], "state=done", "system=one", "track=multiparty")] == 2
    assert seen[(item[0], item[1], "state=failed", "system=one", "track=multiparty")] == 1
    assert seen[("duplex_bench_rollouts_total", "outcome=completed", "system=one", "track=multiparty")] == 2
    assert seen[("duplex_bench_rollout_attempts_total", "system=one", "track=multiparty")] == 4
    late = "duplex_bench_send_lateness_seconds_bucket"
    assert [seen[(late, f"le={end}", "system=one")] for end in ("0.001", "0.02", "+Inf")] == [10, 16, 20]
    assert seen[("duplex_bench_send_lateness_worst_seconds", "system=one")] == pytest.approx(0.031)
    paid = ("model=opus", "role=judge", "subject=one")
    assert seen[("duplex_bench_spend_usd_total", *paid)] == pytest.approx(0.25)
    assert seen[("duplex_bench_paid_calls_total", *paid)] == 2
    assert seen[("duplex_bench_unpriced_calls_total", *paid)] == 1
    twice = Counts()
    twice.add_all([counts.to_json(), counts.to_json()])
    assert ("duplex_bench_rollouts", ("multiparty", "one", "completed"), 4.0) in twice.items()


def test_what_stood_already_is_not_counted_again(tmp_path):
    store, counts = FolderStore(tmp_path), Counts()
    do_work(store, arguments=("a", "b"))
    with heard_by(counts.hear):
        do_work(store, arguments=("a", "b"))
    assert counts.items() == []


def test_every_metric_can_be_read_by_prometheus_and_says_what_it_counts():
    counts = Counts()
    for metric in METRICS.values():
        labels = ["x"] * len(metric.labels) + (["0.1"] if metric.kind == "histogram" else [])
        counts.add(metric.name, tuple(labels))
    with exposition.served(exposition.registry(lambda: counts), "127.0.0.1", 0, None) as port:
        families = {family.name: family for family in text_string_to_metric_families(look(port))}
    assert set(families) == set(METRICS)
    assert all(family.documentation.endswith(".") and family.samples for family in families.values())


def test_another_host_needs_a_token_and_with_one_nothing_is_shown_without_it(tmp_path):
    made = exposition.registry(Counts)
    with pytest.raises(ValueError, match="DUPLEX_BENCH_METRICS_TOKEN"), exposition.served(made, "0.0.0.0", 0, None):
        pass
    with exposition.served(made, "127.0.0.1", 0, "a-long-token") as port:
        for token in (None, "a-long-toke", "A-long-token"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                look(port, token=token)
            assert refused.value.code == 401
        assert "duplex_bench_items" in look(port, token="a-long-token")
        with pytest.raises(urllib.error.HTTPError) as missing:
            look(port, "/../etc/passwd", "a-long-token")
        assert missing.value.code == 404


def test_counts_of_a_run_outlive_it_and_a_damaged_file_is_passed_over(tmp_path, monkeypatch):
    store = FolderStore(tmp_path)
    stored = observed.StoredCounts(store)
    with observed.observed(store, "run-1"), observed.observed(store, "run-1"):
        do_work(store)
    with observed.observed(store, "run-2"):
        do_work(store, "multiparty/rollouts/two")
    store.put("metrics/broken.json", b"{")
    for _ in range(2):
        found = {key: value for metric, labels, value in stored().items() for key in [(metric, *labels)]}
        assert found[("duplex_bench_runs", "ended")] == 2
        assert found[("duplex_bench_items", "multiparty", "rollouts", "two", "done")] == 2
    store.delete("metrics/run-2.json")
    assert ("duplex_bench_items", "multiparty", "rollouts", "two", "done") not in {
        (metric, *labels) for metric, labels, _ in stored().items()
    }


def test_a_run_serves_its_own_metrics_on_the_port_of_the_environment(tmp_path, monkeypatch):
    (port,) = free_ports(1)
    monkeypatch.setenv(observed.VARIABLE, str(port))
    with observed.observed(FolderStore(tmp_path), "run"):
        do_work(FolderStore(tmp_path))
        assert 'duplex_bench_runs_total{state="begun"} 1.0' in look(port)
        # A second run of this machine finds the port taken, works, and keeps its counts.
        other = FolderStore(tmp_path / "other")
        with observed.observed(other, "run-b"):
            do_work(other, arguments=("a",))
        assert other.exists("metrics/run-b.json")
    monkeypatch.setenv(observed.VARIABLE, "nine")
    with pytest.raises(ValueError, match="nine"), observed.observed(FolderStore(tmp_path), "run"):
        pass


SCRIPT = """
import sys
from pathlib import Path
from duplex_bench_telemetry_work import do_work
from duplex_bench.stages.telemetry.observed import observed
from duplex_bench.storage.object_store import FolderStore
import logging
with observed(FolderStore(Path(sys.argv[1])), "run-7"):
    do_work(FolderStore(Path(sys.argv[1])))
    logging.getLogger("other").warning("told %s", "sk-canary-0123456789")
    try:
        raise RuntimeError("key sk-canary-0123456789 refused")
    except RuntimeError:
        logging.getLogger("duplex_bench").exception("it broke")
"""


@pytest.mark.parametrize("to_file", [False, True])
def test_log_lines_are_json_name_run_system_and_item_and_hold_no_key(tmp_path, to_file, monkeypatch):
    (tmp_path / "duplex_bench_telemetry_work.py").write_text(Path(__file__).read_text())
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DUPLEX_BENCH_LOG", "json")
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-0123456789")
    if to_file:
        monkeypatch.setenv("DUPLEX_BENCH_LOG_FILE", str(tmp_path / "log.jsonl"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    text = (tmp_path / "log.jsonl").read_text() if to_file else done.stderr
    lines = [json.loads(line) for line in text.splitlines()]
    assert "sk-canary" not in text
    assert "[SOME_API_KEY]" in text
    assert {line["run_id"] for line in lines} == {"run-7"}
    items = {line["item_id"]: line for line in lines if line["message"] == "item"}
    assert {item: line["state"] for item, line in items.items()} == {
        "item-a": "done", "item-b": "done", "item-bad": "failed"
    }  # fmt: skip
    assert items["item-a"]["system"] == "one"
    assert items["item-a"]["outcome"] == Outcome.COMPLETED
    assert items["item-a"]["took_s"] >= 0
    assert items["item-bad"]["level"] == "warning"
    assert "no such thing" in items["item-bad"]["error"]
    stage = next(line for line in lines if line["message"] == "stage")
    assert (stage["planned"], stage["computed"], stage["failed"]) == (3, 2, 1)
    assert any("RuntimeError" in line.get("traceback", "") for line in lines)


def test_a_setting_that_cannot_be_used_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_LOG", "xml")
    with pytest.raises(ValueError, match="xml"), observed.observed(FolderStore(tmp_path), "run"):
        pass


@pytest.mark.parametrize(
    ("scope", "found"),
    [("a/b/c", ("a", "b", "c")), ("a/b", ("a", "b", "")), ("a", ("a", "", "")), ("a/b/c/d", ("a", "b", "c/d"))],
)
def test_a_scope_names_track_stage_and_system(scope, found):
    assert places(scope) == found


def test_an_unknown_happening_counts_nothing():
    counts = Counts()
    counts.hear(Happening("other", {"a": 1}))
    assert counts.items() == []
