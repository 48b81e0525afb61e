"""Wordless audio of pause rollouts: a hum is told from the user's own voice come back."""

import numpy as np
import polars as pl
import pytest

from duplex_bench.records import tables as schemas
from duplex_bench.records.items import Reference, Stimulus, Window
from duplex_bench.reporting.inputs import SCHEMAS, TrackTables
from duplex_bench.reporting.public_filter import public_table
from duplex_bench.stages import scoring
from duplex_bench.stages.wordless import wordless_audio
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.storage.serial import to_json

pytestmark = pytest.mark.unit

RATE = 24_000
# Heard in the pause, which is second 2 to 3; what was before it is not looked at.
STRETCHES = [[0.5, 1.0], [1.9, 2.01], [2.2, 2.8], [2.85, 2.98]]


def blank(schema, **fields):
    return dict.fromkeys(schema) | fields


@pytest.fixture
def workspace(small_workspace, tmp_path):
    return small_workspace(tmp_path)


@pytest.fixture
def track(workspace):
    blobs = workspace.blobs
    voice = np.random.default_rng(4).normal(0, 0.1, 3 * RATE).clip(-1, 1)
    samples = to_pcm16(voice)[:, None]
    live = blobs.slice_of(blobs.put_audio(samples[:, 0], RATE), samples, RATE, 0, len(samples))
    item = blank(
        schemas.ITEMS, item_id="p1", condition="pause", stimulus=to_json(Stimulus("pause", live)),
        reference=to_json(Reference(windows=(Window("w", "pause", 2.0, 3.0),))),
    )  # fmt: skip
    hum = 0.05 * np.sin(2 * np.pi * 120 * np.arange(3 * RATE) / RATE)
    echo = np.concatenate([np.zeros(RATE // 5), 0.2 * voice])[: 3 * RATE]
    measured, rolled, active = [], [], []
    for system, sound, wordless in (("hums", hum, 1.0), ("echoes", echo, 1.0), ("speaks", hum, 0.0)):
        digest = blobs.put_audio(to_pcm16(sound), RATE)
        told = {"system": system, "item_id": "p1", "rollout_key": system}
        measured.append(blank(schemas.MEASUREMENTS, metric="pause_wordless", value=wordless, **told))
        rolled.append(blank(schemas.ROLLOUTS, listener_audio=digest, **told))
        active.append(blank(schemas.ACTIVITY, rollout_key=system, gate_s=STRETCHES))
    frames = {name: pl.DataFrame(schema=dict(schema)) for name, schema in SCHEMAS.items()}
    frames |= {
        "items": pl.DataFrame([item], schema=dict(schemas.ITEMS)),
        "measurements": pl.DataFrame(measured, schema=dict(schemas.MEASUREMENTS)),
        "rollouts": pl.DataFrame(rolled, schema=dict(schemas.ROLLOUTS)),
        "activity": pl.DataFrame(active, schema=dict(schemas.ACTIVITY)),
    }
    return TrackTables(track="conversation", cards=scoring.metric_cards("conversation"), **frames)


def test_a_hum_is_no_echo_and_an_echo_is_found_for_what_it_is(workspace, track):
    table = wordless_audio(workspace, track)
    echoes, hums = table.frame.iter_rows(named=True)
    assert (echoes["system"], hums["system"]) == ("echoes", "hums")
    for row in (echoes, hums):
        # One is over as the pause begins, and of one that is short it cannot be told what it is.
        assert (row["n_rollouts"], row["n_intervals"], row["n_long"]) == (1, 2, 1)
        assert row["seconds"] == pytest.approx(0.73)
    assert (echoes["n_echo"], hums["n_echo"]) == (1, 0)
    assert echoes["echo_correlation"] > 0.95
    assert hums["echo_correlation"] < 0.2
    assert hums["dominant_hz"] == pytest.approx(120, abs=2)
    assert public_table(table).frame.equals(table.frame)


def test_where_nobody_was_wordless_there_is_no_table(workspace, track):
    import dataclasses

    spoken = track.measurements.with_columns(pl.lit(0.0).alias("value"))
    assert wordless_audio(workspace, dataclasses.replace(track, measurements=spoken)) is None
