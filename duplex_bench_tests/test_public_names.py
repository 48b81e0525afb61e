"""The public names of design 14 exist with their signatures, import quickly, and refuse bad input as promised."""

import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.unit

SIGNATURES = {
    "duplex_bench.audio.gate:speech_intervals": (
        "samples", "sample_rate_hz", "threshold", "release_ratio", "min_duration_s",
    ),
    "duplex_bench.conversation.labels:label_conversation": ("left", "right", "rules"),
    "duplex_bench.conversation.liveliness:score": ("traits",),
    "duplex_bench.conversation.measures:classify_pause": ("intervals_s", "word_times_s", "pause_s"),
    "duplex_bench.multiparty.measures:response_present": ("speech_s", "window_s"),
    "duplex_bench.multiparty.measures:fresh_onset": ("speech_s", "end_s", "within_s", "bridge_s"),
    "duplex_bench.multiparty.measures:yielded": (
        "speech_s", "question_end_s", "resolution_start_s", "next_onset_s", "within_s", "deadline_s", "bridge_s",
    ),
    "duplex_bench.judging.strict:matches": ("gold", "answer", "min_share"),
    "duplex_bench.conversation.similarity:token_f1": ("a", "b"),
    "duplex_bench.statistics:mcnemar_exact": ("only_a", "only_b"),
    "duplex_bench.statistics:bonferroni": ("p", "m"),
    "duplex_bench.statistics:holm": ("ps",),
    "duplex_bench.statistics:wilson_interval": ("k", "n", "level"),
    "duplex_bench.statistics:cluster_bootstrap": ("values", "clusters", "statistic", "rng", "n_resamples", "level"),
    "duplex_bench.statistics:cohen_kappa": ("a", "b"),
    "duplex_bench.reporting.run_tables:load_run": ("path", "profile"),
}  # fmt: skip


def named(path: str):
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", sorted(SIGNATURES))
def test_a_public_function_takes_what_the_design_says(path):
    parameters = tuple(inspect.signature(named(path)).parameters)
    assert parameters[: len(SIGNATURES[path])] == SIGNATURES[path]


def test_public_types_have_their_fields():
    labels = importlib.import_module("duplex_bench.conversation.labels")
    assert labels.Word("yes", "1.0", 1.5).text == "yes"
    assert labels.SpeakerTrack([("0", 1)], [("yes", "0.1", "0.5")]).words[0].start_s == pytest.approx(0.1)
    label = labels.label_conversation(labels.SpeakerTrack([(0.0, 2.0)], []), labels.SpeakerTrack([], []))[0]
    assert (label.speaker, label.kind, label.start_s, label.end_s) == ("left", "turn", 0.0, 2.0)
    assert label.rule
    assert 0 <= label.confidence <= 1
    outcome = named("duplex_bench.conversation.measures:classify_pause")([], [], (1.0, 2.0))
    assert (outcome.outcome, outcome.takeover_latency_s) == ("silent", None)
    stopped = named("duplex_bench.multiparty.measures:yielded")([(1.0, 4.5)], 0.5, 3.0, 8.0)
    assert (stopped.eligible, stopped.passed) == (True, True)
    low, high = named("duplex_bench.statistics:wilson_interval")(5, 10)
    assert low < 0.5 < high


def test_playback_has_its_four_verbs():
    playback = named("duplex_bench.rollout.playback:Playback")(sample_rate_hz=10)
    playback.push(0.0, np.ones(20, dtype=np.float32), response_id="a")
    cuts = playback.flush(1.0)
    assert len(cuts) == 1
    assert playback.heard_until(1.0, response_id="a") == pytest.approx(1.0)
    assert len(playback.render()) == 10


@pytest.mark.parametrize("bad", [np.zeros((10, 2)), np.zeros(10, dtype=np.int16), np.array([np.nan])])
def test_the_gate_refuses_what_is_no_mono_float_audio(bad):
    with pytest.raises(ValueError):  # noqa: PT011 - each kind of fault has its own message
        named("duplex_bench.audio.gate:speech_intervals")(bad, 24_000)


def test_public_modules_load_no_heavy_library():
    heavy = ("torch", "librosa", "openai", "anthropic", "matplotlib", "boto3", "onnxruntime", "ctranslate2", "dagster")
    modules = sorted({path.split(":")[0] for path in SIGNATURES} | {"duplex_bench.rollout.playback"})
    load = f"import importlib, sys; [importlib.import_module(m) for m in {modules}]"
    code = f"{load}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
