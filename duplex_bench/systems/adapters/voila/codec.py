"""Voila's codec frame by frame: 16 kHz, 640 samples a frame, four codebooks.

The codec has no streaming state: each frame is coded at the end of a window of what came before it, and each spoken
frame is cut from the end of a decoded window. With a codec that looks only back, and no further than the window, that
is what coding the whole recording gives; whether the published one does is not known (docs/systems/voila.md).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

RATE_HZ = 16_000
FRAME_SAMPLES = 640
FRAME_S = FRAME_SAMPLES / RATE_HZ
# The codec's only bandwidth, in kbit/s.
BANDWIDTH = 1.1


class WindowCodec:
    """Both directions of one conversation.

    Args:
        model: An ``EncodecModel``.
        window_frames: Length of the windows.
    """

    def __init__(self, model: Any, window_frames: int) -> None:
        import torch

        self._torch, self._model = torch, model
        self._heard: deque[Samples] = deque(maxlen=window_frames)
        self._spoken: deque[list[int]] = deque(maxlen=window_frames)

    def code(self, frame: Samples) -> list[int]:
        """Codes of the next frame (640,) that is heard, one for each codebook."""
        self._heard.append(frame)
        codes = self.codes_of(np.concatenate(self._heard))
        return [int(code) for code in codes[:, -1]]

    def codes_of(self, samples: Samples) -> npt.NDArray[np.int64]:
        """Codes (codebooks, n) of n whole frames."""
        torch = self._torch
        wave = torch.from_numpy(np.ascontiguousarray(samples)).to(self._model.device, self._model.dtype)[None, None]
        with torch.no_grad():
            codes = self._model.encode(wave, bandwidth=BANDWIDTH).audio_codes[0, 0]
        found: npt.NDArray[np.int64] = codes.cpu().numpy().astype(np.int64)
        if found.shape[1] != len(samples) // FRAME_SAMPLES:
            raise RuntimeError(f"the codec made {found.shape[1]} frames of {len(samples) // FRAME_SAMPLES}")
        return found

    def speak(self, codes: list[int]) -> Samples:
        """Audio (640,) of the next frame that is spoken."""
        torch = self._torch
        self._spoken.append(codes)
        rows = torch.tensor(list(self._spoken), dtype=torch.long, device=self._model.device).T
        with torch.no_grad():
            wave = self._model.decode(rows[None, None], [None])[0]
        samples = wave.reshape(-1)[-FRAME_SAMPLES:].float().cpu().numpy()
        spoken: Samples = np.clip(samples, -1.0, 1.0).astype(np.float32)
        return spoken

    def remember(self, heard: Samples, spoken: npt.NDArray[np.int64]) -> None:
        """What was heard (n * 640,) and said (codebooks, n) before the stream."""
        for frame in heard.reshape(-1, FRAME_SAMPLES):
            self._heard.append(frame)
        for column in spoken.T:
            self._spoken.append([int(code) for code in column])
