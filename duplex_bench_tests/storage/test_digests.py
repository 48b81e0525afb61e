"""Equal content gives equal digests, in every process; what is stored where does not count."""

import dataclasses
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import HistoryTurn, Stimulus
from duplex_bench.storage.blobs import BlobStore, from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_value, draw_order, seed_from, stimulus_digest
from duplex_bench.storage.frames import content_digest, frame_of
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json

pytestmark = pytest.mark.unit

SLICE = AudioSlice("s" * 64, 0, 100, 24_000, "c" * 64)
STIMULUS = Stimulus("pause", SLICE, "You are Sam.", (HistoryTurn("user", "Hello.", 0.0, 1.0),), SLICE, SLICE)


def test_a_seed_is_the_same_in_another_process():
    code = "from duplex_bench.storage.digests import seed_from; print(seed_from('a', 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert int(done.stdout) == seed_from("a", 1)


def test_where_audio_is_stored_does_not_change_a_stimulus():
    moved = dataclasses.replace(
        STIMULUS, live=dataclasses.replace(SLICE, source="x" * 64, start_sample=50, stop_sample=150)
    )
    assert stimulus_digest(moved) == stimulus_digest(STIMULUS)


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": "turn_end"},
        {"live": dataclasses.replace(SLICE, content="d" * 64)},
        {"identity_prompt": "You are Kim."},
        {"history": ()},
        {"history_assistant": None},
    ],
)
def test_what_a_system_sees_changes_a_stimulus(change):
    assert stimulus_digest(dataclasses.replace(STIMULUS, **change)) != stimulus_digest(STIMULUS)


def test_a_record_survives_its_text():
    assert from_json(Stimulus, to_json(STIMULUS)) == STIMULUS


def test_values_that_json_cannot_say_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest_value(float("nan"))


@given(st.lists(st.text(min_size=1), unique=True, min_size=2), st.integers(0, 9))
def test_taking_one_id_away_moves_no_other(ids, seed):
    order = draw_order(seed, ids)
    gone = order[len(order) // 2]
    assert draw_order(seed, [item for item in ids if item != gone]) == [item for item in order if item != gone]


def test_a_table_says_the_same_in_any_row_order_and_at_any_speed():
    schema = {"id": pl.String, "wall_s": pl.Float64}
    one = frame_of([{"id": "a", "wall_s": 1.0}, {"id": "b", "wall_s": 2.0}], schema)
    other = frame_of([{"id": "b", "wall_s": 9.0}, {"id": "a", "wall_s": 8.0}], schema)
    assert content_digest(one) == content_digest(other)
    assert content_digest(one) != content_digest(one.head(1))


def test_a_row_with_a_wrong_column_is_named():
    with pytest.raises(ValueError, match=r"row 0: missing columns \['id'\], unknown columns \['ident'\]"):
        frame_of([{"ident": "a"}], {"id": pl.String})


def test_audio_comes_back_sample_for_sample(tmp_path):
    samples = np.random.default_rng(1).integers(-30000, 30000, (5000, 2)).astype(np.int16)
    blobs = BlobStore(FolderStore(tmp_path))
    digest = blobs.put_audio(samples, 24_000)
    part = blobs.slice_of(digest, samples, 24_000, 1000, 3000, channel=1)
    assert np.array_equal(blobs.read_audio(digest)[0], samples)
    assert np.array_equal(blobs.read_slice(part), samples[1000:3000, 1])


@given(st.lists(st.integers(-32768, 32767), min_size=1))
def test_pcm16_survives_floats(values):
    samples = np.array(values, dtype=np.int16)
    assert np.array_equal(to_pcm16(from_pcm16(samples)), samples)
