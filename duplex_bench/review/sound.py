"""A session's sound as the page needs it: WAV bytes by range, peaks to draw, spectrogram pictures."""

import io
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.review.errors import ReviewInputError

PEAKS_HZ: Final = 500
_HEADER_BYTES: Final = 44
_BYTES_PER_SAMPLE: Final = 2
# Spectrogram: 20 ms windows resolve pitch and formants well enough to place a boundary (ours).
_WINDOW_S: Final = 0.02
_TOP_HZ: Final = 8000.0
_RANGE_DB: Final = 70.0
_MAX_WIDTH: Final = 4000
_MAX_SPAN_S: Final = 120.0


@dataclass(frozen=True)
class SessionSound:
    """Two channels of PCM16, (n, 2), left and right."""

    samples: npt.NDArray[np.int16]
    sample_rate_hz: int

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate_hz

    @property
    def n_bytes(self) -> int:
        """Length of the WAV file."""
        return _HEADER_BYTES + self.samples.size * _BYTES_PER_SAMPLE

    @cached_property
    def _pcm(self) -> memoryview:
        return np.ascontiguousarray(self.samples, dtype="<i2").data.cast("B")

    def wav(self, start_byte: int, stop_byte: int) -> bytes:
        """Bytes [start, stop) of the WAV file: seeking in it is exact, which compressed formats do not promise."""
        header = _wav_header(self.samples.shape[1], self.sample_rate_hz, self.samples.size * _BYTES_PER_SAMPLE)
        head = header[start_byte:stop_byte]
        return head + bytes(self._pcm[max(0, start_byte - _HEADER_BYTES) : max(0, stop_byte - _HEADER_BYTES)])

    def part(self, start_s: float, stop_s: float) -> "SessionSound":
        """The stretch [start, stop), cut to the recording: what lies after ``stop_s`` is not in it."""
        first = max(0, round(start_s * self.sample_rate_hz))
        last = min(len(self.samples), round(stop_s * self.sample_rate_hz))
        if last <= first:
            raise ReviewInputError(f"nothing lies between {start_s} and {stop_s} s; give a stretch of the recording")
        return SessionSound(self.samples[first:last], self.sample_rate_hz)

    @cached_property
    def peaks(self) -> bytes:
        """Largest magnitudes of both channels, left then right, uint16 little-endian, full scale 65535.

        ``ceil(duration * 500)`` bins of equal width span the whole recording, so that position is linear in time.
        """
        n_bins = max(1, -(-len(self.samples) * PEAKS_HZ // self.sample_rate_hz))
        edges = np.linspace(0, len(self.samples), n_bins, endpoint=False).astype(np.int64)
        high = np.maximum.reduceat(self.samples, edges, axis=0).astype(np.int32)
        low = np.minimum.reduceat(self.samples, edges, axis=0).astype(np.int32)
        largest = np.maximum(np.abs(high), np.abs(low)) * 2
        return bytes(np.minimum(largest, 65535).astype("<u2").T.tobytes())

    def spectrogram_png(self, channel: int, start_s: float, stop_s: float, width: int, height: int) -> bytes:
        """A grey picture of one channel, up to 8 kHz, 70 dB below full scale; dark is loud. Column centres are linear
        in time from ``start_s`` to ``stop_s``; beyond the recording it is white.
        """
        from PIL import Image
        from scipy.signal import ShortTimeFFT
        from scipy.signal.windows import hann

        if not (0 < stop_s - start_s <= _MAX_SPAN_S and 0 < width <= _MAX_WIDTH and 0 < height <= 512):
            raise ReviewInputError(f"a spectrogram spans up to {_MAX_SPAN_S:g} s and {_MAX_WIDTH} columns; zoom in")
        rate = self.sample_rate_hz
        size = round(_WINDOW_S * rate)
        hop = max(1, round((stop_s - start_s) * rate / width / 2))
        pad = size
        first, last = round(start_s * rate) - pad, round(stop_s * rate) + pad
        inside = self.samples[max(0, first) : max(0, last), channel].astype(np.float32) / 32768
        stretch = np.zeros(max(last - first, 2 * size), dtype=np.float32)
        offset = max(0, -first)
        stretch[offset : offset + len(inside)] = inside
        stft = ShortTimeFFT(hann(size, sym=False), hop, rate, fft_mode="onesided", scale_to="magnitude")
        power = np.abs(stft.stft(stretch)) * 2
        level_db = 20 * np.log10(np.maximum(power, 1e-6))
        times = stft.t(len(stretch)) + first / rate
        centres = start_s + (np.arange(width) + 0.5) * (stop_s - start_s) / width
        columns = np.clip(np.searchsorted(times, centres), 0, level_db.shape[1] - 1)
        top = min(_TOP_HZ, rate / 2)
        rows = np.clip(((np.arange(height)[::-1] + 0.5) / height * top / stft.delta_f), 0, level_db.shape[0] - 1)
        picture = level_db[np.ix_(rows.astype(int), columns)]
        grey = 255 * (1 - np.clip((picture + _RANGE_DB + 10) / _RANGE_DB, 0, 1))
        buffer = io.BytesIO()
        Image.fromarray(grey.astype(np.uint8), mode="L").save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()


def _wav_header(channels: int, rate_hz: int, n_bytes: int) -> bytes:
    frame = channels * _BYTES_PER_SAMPLE
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF", n_bytes + _HEADER_BYTES - 8, b"WAVE", b"fmt ", 16, 1, channels, rate_hz, rate_hz * frame, frame,
        8 * _BYTES_PER_SAMPLE, b"data", n_bytes,
    )  # fmt: skip
