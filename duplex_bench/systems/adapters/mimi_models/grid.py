"""A conversation that was held as the frames a model of Moshi's kind is forced through: text row and whole frames.

Frames are 80 ms. The text row holds one token a frame: a word's pieces from the frame in which it begins, one a frame,
each waiting for those before it; the frame before a word tells that one begins; every other frame is padding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from duplex_bench.contract.types import HistoryPart

    Samples = npt.NDArray[np.float32]
    Frames = npt.NDArray[np.int64]

FRAME_SAMPLES = 1920
RATE_HZ = 24_000
FRAME_S = FRAME_SAMPLES / RATE_HZ
PAD = 3
END_OF_PAD = 0


def whole_frames(part: HistoryPart) -> tuple[Samples, Samples, float]:
    """Both channels of a history as whole frames.

    The stream begins where the history ends, so what lacks of a whole frame is silence before it.

    Returns:
        The user's and the assistant's samples, float32 (frames, 1920), and the seconds that were put before them.

    Raises:
        ValueError: One of the channels is missing, or they differ in length.
    """
    user, assistant = part.user_pcm, part.assistant_pcm
    if user is None or assistant is None or user.shape != assistant.shape:
        raise ValueError("a forced history needs the audio of both channels, of equal length")
    lacking = -len(user) % FRAME_SAMPLES
    padded = [np.concatenate([np.zeros(lacking, dtype=np.float32), pcm]) for pcm in (user, assistant)]
    first, second = (channel.reshape(-1, FRAME_SAMPLES) for channel in padded)
    return first, second, lacking / RATE_HZ


def text_row(
    spoken: Sequence[tuple[str, float, float]], n_frames: int, encode: Callable[[str], list[int]]
) -> tuple[Frames, int]:
    """The assistant's words as one token a frame.

    Args:
        spoken: (text, start_s, end_s) of words, or of whole stretches: words within one are spread over its time by
            their letters.
        n_frames: Length of the history.
        encode: A word as token ids.

    Returns:
        int64 (n_frames,), and how many tokens found no frame before the history ended.
    """
    row = np.full(n_frames, PAD, dtype=np.int64)
    free = 0
    lost = 0
    for word, start_s in _words(spoken):
        # Id 0 stands for an unknown piece too, and would say that a word begins.
        tokens = [token for token in encode(word) if token not in (PAD, END_OF_PAD)]
        first = max(free, int(start_s / FRAME_S + 1e-6))
        placed = tokens[: max(0, n_frames - first)]
        lost += len(tokens) - len(placed)
        if not placed:
            continue
        if first > 0 and row[first - 1] == PAD:
            row[first - 1] = END_OF_PAD
        row[first : first + len(placed)] = placed
        free = first + len(placed)
    return row, lost


def _words(spoken: Sequence[tuple[str, float, float]]) -> Iterator[tuple[str, float]]:
    for text, start_s, end_s in sorted(spoken, key=lambda entry: entry[1]):
        words = re.findall(r"\S+", text)
        letters = sum(map(len, words))
        before = 0
        for word in words:
            yield word, start_s + (end_s - start_s) * before / letters
            before += len(word)
