import base64
import json

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from duplex_bench.reporting.site.media import make_media, peaks
from duplex_bench.reporting.site.scripts import script_call, script_json, slug
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_script_json_is_json_and_cannot_leave_its_element(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_script_calls_carry_hostile_names():
    assert "</script" not in script_call("item:</script>", {"text": "</script><!--"})


@given(st.text(max_size=80), st.text(max_size=80))
def test_slugs_are_plain_and_keep_names_apart(one, other):
    assert set(slug(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert (slug(one) == slug(other)) == (one == other)


@given(arrays.arrays(np.int16, st.integers(1, 5000)), st.sampled_from([8000, 16000, 24000]), st.integers(1, 100))
def test_peaks_hold_the_extremes_of_every_stretch(samples, rate, per_s):
    pairs = np.frombuffer(base64.b64decode(peaks(samples, rate, per_s)), np.int8).reshape(-1, 2)
    assert len(pairs) == -(-len(samples) * per_s // rate)
    assert pairs[:, 0].min() == np.rint(int(samples.min()) * 127 / 32768)
    assert pairs[:, 1].max() == np.rint(int(samples.max()) * 127 / 32768)


def test_no_samples_have_no_peaks():
    assert peaks(np.zeros(0, np.int16), 24000, 50) == ""


def test_the_player_file_holds_both_channels_sample_by_sample(tmp_path):
    blobs = BlobStore(FolderStore(tmp_path / "blobs"))
    rng = np.random.default_rng(1)
    heard, said = (rng.integers(-9000, 9000, n).astype(np.int16) for n in (9000, 12000))
    live = blobs.slice_of(blobs.put_audio(heard, 24000), heard[:, None], 24000, 500, 8500)
    options = {"blobs": blobs, "folder": tmp_path / "new", "timeline_s": 0.6, "peaks_per_s": 50}
    media = make_media(live, blobs.put_audio(said, 24000), earlier=None, **options)
    samples, rate = soundfile.read(tmp_path / "new" / media.path, dtype="int16", always_2d=True)
    assert (rate, samples.shape) == (24000, (14400, 2))
    assert media.duration_s == pytest.approx(0.6)
    np.testing.assert_array_equal(samples[:8000, 0], heard[500:8500])
    np.testing.assert_array_equal(samples[:12000, 1], said)
    assert not samples[12000:].any()


def test_other_rates_are_brought_to_the_streams(tmp_path):
    blobs = BlobStore(FolderStore(tmp_path / "blobs"))
    heard, said = np.zeros(24000, np.int16), np.zeros(16000, np.int16)
    live = blobs.slice_of(blobs.put_audio(heard, 24000), heard[:, None], 24000, 0, 24000)
    media = make_media(live, blobs.put_audio(said, 16000), blobs=blobs, folder=tmp_path, earlier=None, timeline_s=1.0,
                       peaks_per_s=50)  # fmt: skip
    assert media.duration_s == pytest.approx(1.0)


def test_a_missing_blob_raises_and_silence_is_no_file(tmp_path):
    blobs = BlobStore(FolderStore(tmp_path / "blobs"))
    options = {"blobs": blobs, "folder": tmp_path, "earlier": None, "timeline_s": 1.0, "peaks_per_s": 50}
    assert make_media(None, None, **options) is None
    with pytest.raises(KeyError):
        make_media(None, "0" * 64, **options)


def test_a_recording_of_both_is_played_as_it_is(tmp_path):
    blobs = BlobStore(FolderStore(tmp_path / "blobs"))
    both = np.random.default_rng(2).integers(-9000, 9000, (24000 * 21 + 77, 2)).astype(np.int16)
    source = blobs.put_audio(both, 24000)
    user = blobs.slice_of(source, both, 24000, 0, len(both))
    media = make_media(user, source, blobs=blobs, folder=tmp_path / "new", earlier=None, timeline_s=21.0,
                       peaks_per_s=50)  # fmt: skip
    assert (tmp_path / "new" / media.path).read_bytes() == blobs.get(source, "flac")
    assert media.duration_s == pytest.approx(len(both) / 24000)
    assert media.heard == peaks(both[:, 0], 24000, 50)
    assert media.system == peaks(both[:, 1], 24000, 50)
