import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.multiparty.acoustics import AcousticSettings, heard_in, layout_for, room_response
from duplex_bench.multiparty.construction import construction_faults
from duplex_bench.multiparty.items import item_of
from duplex_bench.multiparty.scenes import SceneError, SceneLayout, build_scene
from duplex_bench.multiparty.windows import windows_of
from duplex_bench.records.audio import AudioSlice

pytestmark = pytest.mark.unit
RATE_HZ = 24_000
SETTINGS = AcousticSettings()


def tone(frequency_hz, seconds=2.0):
    return (0.2 * np.sin(2 * np.pi * frequency_hz * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)).astype(np.float32)


def scene_of(script, layout, samples):
    clips = {turn.utterance_id: samples for turn in script.utterances}
    return build_scene(script, clips, np.full(RATE_HZ, 0.1, dtype=np.float32), layout)


@pytest.mark.parametrize(
    ("frequency_hz", "least_db", "most_db"), [(100, -np.inf, -30), (1000, -1.5, 1.5), (6000, -np.inf, -30)]
)
def test_telephone_keeps_its_band_and_nothing_else(explicit_script, layout, frequency_hz, least_db, most_db):
    scene = scene_of(explicit_script, layout, tone(frequency_hz))
    heard = heard_in("telephone", scene, SETTINGS)
    turn = scene.turns[0]
    inside = slice(turn.start_sample + 4800, turn.stop_sample - 4800)
    gain = rms_dbfs(heard.samples[inside]) - rms_dbfs(scene.samples[inside])
    assert least_db <= gain <= most_db


def test_a_rate_too_low_for_the_band_is_refused(explicit_script):
    layout = SceneLayout(sample_rate_hz=6000)
    scene = scene_of(explicit_script, layout, tone(500)[:12_000])
    with pytest.raises(SceneError, match="6000 Hz"):
        heard_in("telephone", scene, SETTINGS)


def test_noise_lies_at_the_stated_level_under_the_speech(scene):
    heard = heard_in("noise", scene, SETTINGS)
    spoken = np.concatenate([scene.samples[t.start_sample : t.stop_sample] for t in scene.turns])
    scale = np.dot(heard.samples, scene.samples) / np.dot(scene.samples, scene.samples)
    noise = heard.samples / scale - scene.samples
    assert rms_dbfs(spoken) - rms_dbfs(noise) == pytest.approx(SETTINGS.noise_snr_db, abs=0.5)


def test_both_forms_of_a_scenario_hear_the_same_noise(explicit_script, implicit_script, layout, clips):
    quiet = {name: clip * 0.1 for name, clip in clips.items()}
    pair = [build_scene(script, quiet, np.zeros(0), layout) for script in (explicit_script, implicit_script)]
    one, two = (heard_in("noise", scene, SETTINGS).samples - scene.samples for scene in pair)
    np.testing.assert_allclose(one, two, atol=1e-6)


@given(rt60_s=st.floats(0.1, 1.5), ratio_db=st.floats(-6, 12))
def test_room_falls_by_60_db_in_its_time_and_keeps_its_ratio(rt60_s, ratio_db):
    response = room_response(RATE_HZ, AcousticSettings(room_rt60_s=rt60_s, room_direct_to_reverberant_db=ratio_db))
    tail = response[1:]
    assert response[0] == 1.0
    assert -10 * np.log10(np.square(tail).sum()) == pytest.approx(ratio_db, abs=0.1)
    energy = np.square(tail)
    early, late = energy[100 : len(tail) // 4].mean(), energy[-len(tail) // 10 :].mean()
    assert 10 * np.log10(early / late) > 35


def test_room_keeps_length_level_and_rings_into_the_gaps(scene):
    heard = heard_in("room", scene, SETTINGS)
    assert heard.n_samples == scene.n_samples
    turn = scene.turns[0]
    gap = slice(turn.stop_sample + 100, turn.stop_sample + 2400)
    assert not scene.samples[gap].any()
    assert heard.samples[gap].any()
    assert np.abs(heard.samples).max() <= 1.0


@pytest.mark.parametrize("kind", ["clean", "telephone", "room", "noise"])
def test_equal_scenes_sound_equal_and_boundaries_stay(scene, kind):
    one, two = heard_in(kind, scene, SETTINGS), heard_in(kind, scene, SETTINGS)
    np.testing.assert_array_equal(one.samples, two.samples)
    assert one.turns == scene.turns
    assert np.isfinite(one.samples).all()


def test_overlap_moves_turns_together_but_leaves_the_answer_windows_free(explicit_script, clips, layout):
    overlapping = layout_for("overlap", layout, SETTINGS)
    scene = build_scene(explicit_script, clips, np.zeros(RATE_HZ), overlapping)
    steps = {
        turn.utterance.turn_type: (after.start_sample - turn.stop_sample) / RATE_HZ
        for turn, after in zip(scene.turns, scene.turns[1:], strict=False)
    }
    assert steps["N2"] == pytest.approx(-SETTINGS.overlap_s)
    assert steps["T"] == pytest.approx(5.0)
    assert steps["N4Q"] == pytest.approx(3.0)
    assert construction_faults(scene, overlapping) == []
    assert np.abs(scene.samples).max() <= 1.0
    assert all(window.end_s > window.start_s for window in windows_of(scene))


def test_a_short_turn_is_never_overtaken(explicit_script):
    layout = SceneLayout(overlap_s=5.0)
    scene = scene_of(explicit_script, layout, tone(300, 0.4))
    starts = [turn.start_sample for turn in scene.turns]
    assert starts == sorted(starts)
    assert len(set(starts)) == len(starts)


def test_an_item_in_other_acoustics_is_an_item_of_its_own_that_names_its_clean_one(scene):
    live = AudioSlice("blob", 0, scene.n_samples, RATE_HZ, "content")
    clean = item_of(scene, live, licence="Apache-2.0")
    noisy = item_of(scene, live, licence="Apache-2.0", acoustics="noise")
    assert (clean.item_id, clean.condition) == ("s1-explicit", "explicit")
    assert (noisy.item_id, noisy.condition) == ("s1-explicit~noise", "noise explicit")
    assert noisy.reference.attributes["base_item"] == clean.item_id
    assert noisy.cluster == clean.cluster


@pytest.mark.parametrize(
    "wrong", [{"telephone_low_hz": 4000.0}, {"room_rt60_s": 0.0}, {"overlap_s": -0.1}, {"room_rt60_s": float("nan")}]
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="give"):
        AcousticSettings(**wrong)
