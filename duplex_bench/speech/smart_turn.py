"""smart-turn: judges from the last 8 s of sound whether the speaker has finished.

Source: smart-turn v3.2 (BSD-2-Clause), its ONNX file read out of pipecat-ai 1.14.0. Input: Whisper's log-mel
features of the standardised waveform, 80 bands x 800 frames, silence in front of what is shorter than 8 s.
Known limit: a fragment that a text-to-speech engine spoke as a whole sentence sounds complete to it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.model_catalogue import model_id, verified_model
from duplex_bench.speech.onnx_sessions import single_thread_session
from duplex_bench.speech.silero import checked_mono

SAMPLE_RATE_HZ = 16000
WINDOW_SAMPLES = 8 * SAMPLE_RATE_HZ
_VARIANCE_FLOOR = 1e-7


class SmartTurn:
    """smart-turn behind the turn-end interface, on one thread."""

    def __init__(self) -> None:
        from faster_whisper.feature_extractor import FeatureExtractor

        self._extractor: Any = FeatureExtractor(feature_size=80, chunk_length=8)
        self._session = single_thread_session(verified_model("smart-turn")["smart-turn-v3.2-cpu.onnx"])

    @property
    def engine_id(self) -> str:
        """Package, version and model hash."""
        return model_id("smart-turn")

    def features(self, samples: Samples) -> npt.NDArray[np.float32]:
        """Log-mel features (80, 800) of the last 8 s of 16 kHz audio (n,)."""
        last = samples[-WINDOW_SAMPLES:]
        window = np.concatenate([np.zeros(WINDOW_SAMPLES - len(last), dtype=np.float32), last])
        standard = (window - window.mean()) / np.sqrt(window.var() + _VARIANCE_FLOOR)
        features: npt.NDArray[np.float32] = self._extractor(standard.astype(np.float32), padding=0)
        return features.astype(np.float32)

    def completion_probability(self, samples: Samples, sample_rate_hz: int) -> float:
        """Probability that the turn that ends with these samples is complete; at most the last 8 s count.

        Raises:
            ValueError: not mono float audio, not finite, or empty.
        """
        checked_mono(samples)
        if len(samples) == 0:
            raise ValueError("no audio to judge: pass the turn up to now")
        recent = samples[-9 * sample_rate_hz :]
        features = self.features(resample(recent, sample_rate_hz, SAMPLE_RATE_HZ))
        probability = self._session.run(None, {"input_features": features[None]})[0]
        return float(probability.reshape(-1)[0])
