"""Silero voice activity: where somebody speaks.

Source: silero-vad 6.2.3 (MIT), the sequence form of its 16 kHz model, which gives the streaming model's numbers.
State and the 64 samples of context are carried from block to block, so that recordings of hours need little
memory and give what one call would give. Measured edge bias against gold boundaries: onsets 22 ms late, offsets
60 ms late (reference/embedded-models.md section 5; docs/embedded-models.md has ours); edges are not corrected.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.model_catalogue import model_id, verified_model
from duplex_bench.speech.onnx_sessions import single_thread_session

MODEL_RATE_HZ = 16000
FRAME_SAMPLES = 512
CONTEXT_SAMPLES = 64
STATE_SHAPE = (1, 1, 128)
BLOCK_S = 60


@dataclass(frozen=True, slots=True)
class VoiceActivitySettings:
    """When a run of frames of 32 ms counts as speech.

    A region opens at ``open_probability``, closes once ``min_silence_s`` has passed below
    ``close_probability`` (at the start of that silence), and is dropped under ``min_speech_s``. Thresholds are
    silero's. Ours: 0.25 s of silence (theirs 0.1 s), as the activity bridge, and 0.1 s of speech (theirs 0.25 s),
    so that a short "yes" counts.
    """

    open_probability: float = 0.5
    close_probability: float = 0.35
    min_silence_s: float = 0.25
    min_speech_s: float = 0.1


class SpeechProbabilities:
    """Frame probabilities of a stream of blocks at any rate: ``push`` blocks, then ``finish``."""

    def __init__(self, session: Any, sample_rate_hz: int) -> None:
        self._session = session
        self._state = [np.zeros(STATE_SHAPE, dtype=np.float32), np.zeros(STATE_SHAPE, dtype=np.float32)]
        self._context = np.zeros(CONTEXT_SAMPLES, dtype=np.float32)
        self._rest = np.zeros(0, dtype=np.float32)
        self._resampler: Any = None
        if sample_rate_hz != MODEL_RATE_HZ:
            import soxr

            self._resampler = soxr.ResampleStream(sample_rate_hz, MODEL_RATE_HZ, 1, dtype="float32", quality="HQ")

    def push(self, block: Samples) -> npt.NDArray[np.float32]:
        """Probabilities of the frames that are complete after ``block`` (n,)."""
        return self._run(self._at_model_rate(block, last=False))

    def finish(self) -> npt.NDArray[np.float32]:
        """Probabilities of what is left, its last frame filled with silence."""
        tail = self._at_model_rate(np.zeros(0, dtype=np.float32), last=True)
        missing = -(len(self._rest) + len(tail)) % FRAME_SAMPLES
        return self._run(np.concatenate([tail, np.zeros(missing, dtype=np.float32)]))

    def _at_model_rate(self, block: Samples, *, last: bool) -> Samples:
        block = np.ascontiguousarray(block, dtype=np.float32)
        if self._resampler is None:
            return block
        converted: Samples = self._resampler.resample_chunk(block, last=last)
        return converted

    def _run(self, samples: Samples) -> npt.NDArray[np.float32]:
        pending = np.concatenate([self._rest, samples])
        n_frames = len(pending) // FRAME_SAMPLES
        self._rest = pending[n_frames * FRAME_SAMPLES :]
        if n_frames == 0:
            return np.zeros(0, dtype=np.float32)
        with_context = np.concatenate([self._context, pending[: n_frames * FRAME_SAMPLES]])
        self._context = with_context[-CONTEXT_SAMPLES:]
        windows = np.lib.stride_tricks.sliding_window_view(with_context, CONTEXT_SAMPLES + FRAME_SAMPLES)
        frames = np.ascontiguousarray(windows[::FRAME_SAMPLES])
        feed = {"input": frames, "h": self._state[0], "c": self._state[1]}
        probabilities, *self._state = self._session.run(None, feed)
        flat: npt.NDArray[np.float32] = probabilities.reshape(-1)
        return flat


class SileroVoiceActivity:
    """Silero behind the voice activity interface, on one thread."""

    def __init__(self, settings: VoiceActivitySettings | None = None) -> None:
        self.settings = settings or VoiceActivitySettings()
        self._session = single_thread_session(verified_model("silero")["silero_vad_16k_sequence.onnx"])

    @property
    def engine_id(self) -> str:
        """Package, version, model hash and thresholds."""
        chosen = self.settings
        return (
            f"{model_id('silero')} open={chosen.open_probability:g} close={chosen.close_probability:g} "
            f"min_silence={chosen.min_silence_s:g} min_speech={chosen.min_speech_s:g}"
        )

    def speech_regions(self, samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.int64]:
        """Speech as [start, stop) samples (k, 2) at the input rate, sorted, apart from each other.

        Raises:
            ValueError: not mono float audio (n,), or not finite.
        """
        checked_mono(samples)
        step = BLOCK_S * sample_rate_hz
        return self.regions_of_blocks(
            (samples[start : start + step] for start in range(0, len(samples), step)), sample_rate_hz
        )

    def regions_of_blocks(self, blocks: Iterable[Samples], sample_rate_hz: int) -> npt.NDArray[np.int64]:
        """As ``speech_regions``, of mono blocks that follow each other: memory does not grow with their number."""
        stream = SpeechProbabilities(self._session, sample_rate_hz)
        found: list[npt.NDArray[np.float32]] = []
        n_samples = 0
        for block in blocks:
            n_samples += len(block)
            found.append(stream.push(block))
        found.append(stream.finish())
        frames = regions_from_probabilities(np.concatenate(found), self.settings)
        edges = np.rint(frames * (FRAME_SAMPLES * sample_rate_hz / MODEL_RATE_HZ)).astype(np.int64)
        edges = np.minimum(edges, n_samples)
        kept: npt.NDArray[np.int64] = edges[edges[:, 1] > edges[:, 0]]
        return kept

    def probabilities(self, samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.float32]:
        """Speech probability of each frame of 32 ms (m,), for plots and calibration."""
        checked_mono(samples)
        stream = SpeechProbabilities(self._session, sample_rate_hz)
        return np.concatenate([stream.push(samples), stream.finish()])


def regions_from_probabilities(
    probabilities: npt.NDArray[np.floating], settings: VoiceActivitySettings
) -> npt.NDArray[np.int64]:
    """Regions in frames [start, stop) (k, 2) of frame probabilities (m,) by two thresholds."""
    frame_s = FRAME_SAMPLES / MODEL_RATE_HZ
    opens = np.flatnonzero(probabilities >= settings.open_probability)
    quiet = np.flatnonzero(probabilities < settings.close_probability)
    regions: list[tuple[int, int]] = []
    position = 0
    while (at := int(np.searchsorted(opens, position))) < len(opens):
        start = int(opens[at])
        stop, position = _closing(opens, quiet, start, len(probabilities), settings.min_silence_s / frame_s)
        if (stop - start) * frame_s >= settings.min_speech_s:
            regions.append((start, stop))
    return np.asarray(regions, dtype=np.int64).reshape(-1, 2)


def _closing(
    opens: npt.NDArray[np.int64], quiet: npt.NDArray[np.int64], start: int, n_frames: int, min_silence_frames: float
) -> tuple[int, int]:
    """Where the region that opened at ``start`` ends, and from where to look for the next."""
    position = start
    while (at := int(np.searchsorted(quiet, position))) < len(quiet):
        silence = int(quiet[at])
        again = int(np.searchsorted(opens, silence))
        resumed = int(opens[again]) if again < len(opens) else n_frames
        if resumed - silence >= min_silence_frames or resumed == n_frames:
            return silence, resumed
        position = resumed
    return n_frames, n_frames


def checked_mono(samples: Samples) -> None:
    """Refuse what no engine can hear.

    Raises:
        ValueError: integer audio, several channels, NaN or infinity.
    """
    if samples.ndim != 1 or not np.issubdtype(samples.dtype, np.floating):
        raise ValueError(f"speech engines take mono float audio (n,), got {samples.dtype} of shape {samples.shape}")
    if not np.isfinite(samples).all():
        raise ValueError("audio holds NaN or infinity: repair or leave out the recording")
