from dataclasses import replace

import numpy as np
import pytest

from duplex_bench.multiparty.construction import boundary_errors, construction_faults
from duplex_bench.multiparty.items import item_of, with_request_thirds
from duplex_bench.multiparty.preamble import duty_preamble, parse_preamble
from duplex_bench.multiparty.scenes import Scene, SceneError, SceneLayout, build_scene
from duplex_bench.multiparty.scripts import Script
from duplex_bench.multiparty.voices import VoiceMap
from duplex_bench.multiparty.windows import windows_of
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item
from duplex_bench.storage.serial import from_json, to_json

pytestmark = pytest.mark.unit
RATE_HZ = 24_000


def test_boundaries_are_where_the_clips_lie(scene: Scene, clips: dict[str, np.ndarray]) -> None:
    assert scene.samples.dtype == np.float32
    for turn in scene.turns:
        assert np.array_equal(scene.samples[turn.start_sample : turn.stop_sample], clips[turn.utterance.utterance_id])
    # 3 s preamble, 1 s gap, nine clips of 2 s, six gaps of 0.5 s, 5 s after T, 3 s after N4Q, 5 s tail.
    assert scene.n_samples == RATE_HZ * (3 + 1 + 18 + 3 + 5 + 3 + 5)
    assert scene.preamble_stop_sample == 3 * RATE_HZ


def test_both_conditions_share_gaps(
    explicit_script: Script, implicit_script: Script, clips: dict[str, np.ndarray]
) -> None:
    layout = SceneLayout()
    here = build_scene(explicit_script, clips, np.zeros(0, np.float32), layout)
    there = build_scene(implicit_script, clips, np.zeros(0, np.float32), layout)
    assert [turn.start_sample for turn in here.turns] == [turn.start_sample for turn in there.turns]
    gaps = [layout.gap_samples("s1", turn) for turn in explicit_script.utterances if turn.turn_type not in ("T", "N4Q")]
    assert len(set(gaps)) > 1
    elsewhere = [layout.gap_samples("s2", turn) for turn in explicit_script.utterances]
    assert elsewhere != [layout.gap_samples("s1", turn) for turn in explicit_script.utterances]
    assert all(0.35 * RATE_HZ <= gap <= 0.65 * RATE_HZ for gap in gaps)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda clips: clips.pop("u02"), "no clip for u02"),
        (lambda clips: clips.update(u02=np.zeros(0, np.float32)), "u02: clip is empty"),
        (lambda clips: clips.update(u02=np.full(9, np.nan, np.float32)), "u02: clip is not finite"),
        (lambda clips: clips.update(u02=np.ones(9, np.int16)), "u02: clip has shape"),
        (lambda clips: clips.update(u02=np.full(9, 1.5, np.float32)), "above full scale"),
    ],
)
def test_a_scene_never_has_a_hole(explicit_script: Script, clips: dict[str, np.ndarray], spoil, message: str) -> None:
    spoil(clips)
    with pytest.raises(SceneError, match=message):
        build_scene(explicit_script, clips, np.zeros(0, np.float32))


def test_windows(scene: Scene) -> None:
    windows = {window.labels["utterance_id"]: window for window in windows_of(scene)}
    assert [windows[name].kind for name in sorted(windows)] == [
        "silence", "silence", "request", "silence", "silence", "silence", "yield", "silence",
    ]  # fmt: skip
    # Onsets: u01 4, u02 6.5, T 9 to 11, u04 16, u05 18.5, u06 21, N4Q 23.5 to 25.5, N4R 28.5 to 30.5, u09 31, end 38.
    assert (windows["u02"].start_s, windows["u02"].end_s) == (6.5, 9.0)
    assert (windows["u03"].start_s, windows["u03"].end_s) == (11.0, 16.0)
    assert windows["u04"].marks == {"t_start_s": 9.0, "t_end_s": 11.0, "turn_end_s": 18.0}
    assert windows["u06"].end_s == 23.5
    assert (windows["u09"].start_s, windows["u09"].end_s) == (31.0, 38.0)
    asked = windows["u07"]
    assert (asked.start_s, asked.end_s) == (25.5, 31.0)
    assert asked.marks["resolution_start_s"] == 28.5
    assert asked.marks["resolution_end_s"] == 30.5
    assert asked.marks["next_onset_s"] == asked.marks["observation_end_s"] == 31.0
    assert asked.labels["turn_type"] == "N4Q"


def test_last_resolution_is_observed_to_the_end(
    explicit_script: Script, clips: dict[str, np.ndarray], layout: SceneLayout
) -> None:
    short = replace(explicit_script, utterances=explicit_script.utterances[:-1])
    scene = build_scene(short, clips, np.zeros(0, np.float32), layout)
    (window,) = [window for window in windows_of(scene) if window.kind == "yield"]
    assert window.end_s == window.marks["next_onset_s"] == scene.n_samples / RATE_HZ


def test_item_seals_the_answer_and_survives_json(item: Item) -> None:
    assert "seven" not in to_json(item.stimulus)
    assert "Aria" not in to_json(item.stimulus)
    assert item.stimulus.identity_prompt is None
    assert item.reference.gold_answer == "seven"
    assert item.reference.attributes["turn_types"] == "N2 N2 T N1 N3 N2 N4Q N4R N2"
    assert item.reference.attributes["request_time_s"] == 11.0
    assert from_json(Item, to_json(item)) == item


def test_item_refuses_audio_of_another_length(scene: Scene) -> None:
    with pytest.raises(ValueError, match="store the scene again"):
        item_of(scene, AudioSlice("blob", 0, 7, RATE_HZ, "content"), licence="x")


def test_request_thirds_are_equal_groups(item: Item) -> None:
    items = [
        replace(item, item_id=f"i{n}", reference=replace(item.reference, attributes={"request_time_s": float(n % 4)}))
        for n in range(11)
    ]
    grouped = with_request_thirds(items)
    thirds = [one.reference.attributes["request_third"] for one in grouped]
    assert sorted(thirds.count(name) for name in ("earlier", "middle", "later")) == [3, 4, 4]
    times = {
        name: [
            o.reference.attributes["request_time_s"] for o in grouped if o.reference.attributes["request_third"] == name
        ]
        for name in set(thirds)
    }
    assert max(times["earlier"]) <= min(times["middle"]) <= max(times["middle"]) <= min(times["later"])
    assert [one.item_id for one in grouped] == [one.item_id for one in items]


def test_construction_of_a_good_scene(scene: Scene, layout: SceneLayout) -> None:
    heard = [(turn.start_sample + 528, turn.stop_sample + 1440) for turn in scene.turns]
    assert construction_faults(scene, layout, detected=heard) == []
    errors = boundary_errors(scene, heard)
    assert {error.onset_s for error in errors} == {0.022}
    assert {error.offset_s for error in errors} == {0.06}


def test_construction_faults_are_found(scene: Scene, layout: SceneLayout) -> None:
    def checks(broken: Scene, plan: SceneLayout = layout, **more) -> set[str]:
        return {fault.check for fault in construction_faults(broken, plan, **more)}

    loud = scene.samples.copy()
    loud[100_000] = 1.0
    assert "no_clipping" in checks(replace(scene, samples=loud))
    noisy = scene.samples.copy()
    noisy[scene.turns[0].stop_sample + 5] = 0.01
    assert checks(replace(scene, samples=noisy)) == {"gaps_are_silent"}
    assert "gaps_as_scheduled" in checks(scene, replace(layout, gap_after_t_s=6.0))
    assert checks(scene, replace(layout, sample_rate_hz=16_000)) == {"sample_rate"}
    swapped = (scene.turns[1], scene.turns[0], *scene.turns[2:])
    assert checks(replace(scene, turns=swapped)) == {"turns_in_order"}
    assert checks(scene, detected=[]) == {"boundaries_agree"}


def test_windows_must_be_free_of_human_speech(explicit_script: Script, clips: dict[str, np.ndarray]) -> None:
    tight = SceneLayout(gap_after_t_s=4.0, gap_after_n4q_s=2.0)
    scene = build_scene(explicit_script, clips, np.zeros(0, np.float32), tight)
    faults = construction_faults(scene, tight)
    assert [(fault.check, fault.utterance_id) for fault in faults] == [
        ("windows_are_free", "u03"),
        ("windows_are_free", "u07"),
    ]


def test_layout_and_voices_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="gap_max_s"):
        SceneLayout(gap_min_s=1.0, gap_max_s=0.5)
    with pytest.raises(ValueError, match="tail_s"):
        SceneLayout(tail_s=-1.0)
    assert VoiceMap().voice_of("C") == "c"
    with pytest.raises(ValueError, match="different"):
        VoiceMap(d="a")
    with pytest.raises(ValueError, match="unknown"):
        VoiceMap().voice_of("E")


def test_preamble_says_to_stay_silent() -> None:
    assert "stay silent" in duty_preamble().text
    with pytest.raises(ValueError, match="stay silent"):
        parse_preamble('id = "x"\nversion = 1\ntext = "Talk as you like."', "mine.toml")
