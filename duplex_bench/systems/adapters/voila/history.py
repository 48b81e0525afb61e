"""Where the words of a conversation that was held stand among Voila's frames of 40 ms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duplex_bench.systems.adapters.voila.codec import FRAME_S

if TYPE_CHECKING:
    from collections.abc import Sequence

# Far below a frame: a time on a frame's edge belongs to the frame that begins there, however it was rounded.
_EDGE = 1e-6


@dataclass(frozen=True)
class Written:
    """By frame: the words that begin in it, and where stretches of speech start and are over."""

    words: dict[int, tuple[str, ...]] = field(default_factory=dict)
    starts: frozenset[int] = frozenset()
    stops: frozenset[int] = frozenset()


def written(spoken: Sequence[tuple[str, float, float]], n_frames: int, same_turn_s: float) -> Written:
    """Place words on frames.

    Args:
        spoken: (text, start_s, end_s) of words, or of whole stretches; their text stands where they begin.
        n_frames: Length of the history: what begins behind it is left out.
        same_turn_s: Longest silence inside one stretch of speech.
    """
    words: dict[int, tuple[str, ...]] = {}
    stretches: list[list[float]] = []
    for text, start_s, end_s in sorted(spoken, key=lambda word: (word[1], word[2])):
        frame = int(start_s / FRAME_S + _EDGE)
        if frame >= n_frames:
            continue
        words[frame] = (*words.get(frame, ()), text)
        if stretches and start_s - stretches[-1][1] <= same_turn_s:
            stretches[-1][1] = max(stretches[-1][1], end_s)
        else:
            stretches.append([start_s, end_s])
    return Written(
        words,
        frozenset(int(start_s / FRAME_S + _EDGE) for start_s, _ in stretches),
        frozenset(math.ceil(end_s / FRAME_S - _EDGE) for _, end_s in stretches),
    )
