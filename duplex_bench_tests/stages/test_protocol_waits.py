"""Latency with and without what the harness waited: from event logs, for systems that are asked for their replies."""

import gzip
import json

import polars as pl
import pytest

from duplex_bench.records import tables as schemas
from duplex_bench.reporting.inputs import SCHEMAS, TrackTables
from duplex_bench.reporting.public_filter import public_table
from duplex_bench.rollout.record import EVENTS_KIND
from duplex_bench.stages import scoring
from duplex_bench.stages.protocol_waits import protocol_waits
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

ASKED = {"kind": "reply_requested", "at_s": 2.7, "commit_wait_s": 0.2, "extra_wait_s": 0.5}


@pytest.fixture
def workspace(small_workspace, tmp_path):
    return small_workspace(tmp_path)


@pytest.fixture
def cards():
    return [found.card for found in load_cards(None, plug_ins=False).cards.values()]


def track_of(workspace, runs, lost=()):
    """Runs: (system, latency or None, events)."""
    measured, rolled = [], []
    for number, (system, latency_s, events) in enumerate(runs):
        lines = "".join(json.dumps(event) + "\n" for event in events).encode()
        digest = workspace.blobs.put(gzip.compress(lines, mtime=0), EVENTS_KIND)
        key = f"r{number}"
        if number in lost:
            workspace.store.delete(workspace.blobs.key(digest, EVENTS_KIND))
        measured.append(
            dict.fromkeys(schemas.MEASUREMENTS)
            | {"system": system, "rollout_key": key, "metric": "turn_end_latency", "value": latency_s}
        )
        rolled.append(dict.fromkeys(schemas.ROLLOUTS) | {"system": system, "rollout_key": key, "events": digest})
    frames = {name: pl.DataFrame(schema=dict(schema)) for name, schema in SCHEMAS.items()}
    frames["measurements"] = pl.DataFrame(measured, schema=dict(schemas.MEASUREMENTS))
    frames["rollouts"] = pl.DataFrame(rolled, schema=dict(schemas.ROLLOUTS))
    return TrackTables(track="conversation", cards=scoring.metric_cards("conversation"), **frames)


def test_each_rollouts_own_waits_are_taken_from_its_latency(workspace, cards):
    longer = {**ASKED, "commit_wait_s": 0.4}
    runs = [("grok-voice", 1.0, [{"kind": "opened"}, ASKED]), ("grok-voice", 1.6, [longer]),
            ("grok-voice", None, [ASKED]), ("gpt-realtime-500ms", 0.5, [{**ASKED, "commit_wait_s": 0.0,
                                                                         "extra_wait_s": 0.0}])]  # fmt: skip
    table = protocol_waits(workspace, track_of(workspace, runs), cards)
    gpt, grok = table.frame.iter_rows(named=True)
    assert grok == pytest.approx(
        {"system": "grok-voice", "n": 2, "latency_s": 1.3, "without_waits_s": 0.5, "commit_wait_s": 0.3,
         "extra_wait_s": 0.5}
    )  # fmt: skip
    assert (gpt["latency_s"], gpt["without_waits_s"]) == (0.5, 0.5)
    assert public_table(table).frame.equals(table.frame)


def test_who_is_not_asked_or_has_no_log_has_no_row(workspace, cards):
    runs = [
        ("grok-voice", 1.0, [ASKED]),
        ("gemini-live", 1.0, [{"kind": "opened"}]),
        ("cascade-500ms", 1.0, [{**ASKED, "at_s": 9.0}]),
    ]
    assert protocol_waits(workspace, track_of(workspace, runs, lost={0}), cards) is None
