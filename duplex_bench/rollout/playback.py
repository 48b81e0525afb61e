"""What a person with a loudspeaker hears of audio that arrives in chunks and may be cut (design 6)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.time import to_samples

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Truncation:
    """A response that a flush cut: how much of it was heard, how much never will be.

    ``heard_samples`` counts from the response's first sample, ``cut_samples`` what was queued and is dropped.
    """

    response_id: str | None
    at_s: float
    heard_samples: int
    cut_samples: int
    sample_rate_hz: int

    @property
    def heard_s(self) -> float:
        """Seconds of the response that were heard."""
        return self.heard_samples / self.sample_rate_hz


@dataclass(slots=True)
class _Chunk:
    start: int
    samples: Samples
    response_id: str | None

    @property
    def stop(self) -> int:
        return self.start + len(self.samples)


class Playback:
    """A virtual player. A chunk starts at max(its arrival, the end of the one before); calls come in time order.

    A flush cuts whatever was not yet heard. From then on, late chunks of a cut response are dropped: of every
    response that lost audio, and of the one that arrived last, which is over too if the flush found it played out
    (the player had run dry in the middle of it). Chunks without a response id cannot be told apart, so only the
    queue is cut. Positions are integer samples at ``sample_rate_hz``; seconds are rounded half up to samples.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        if sample_rate_hz <= 0:
            raise ValueError(f"sample_rate_hz must be positive, got {sample_rate_hz}")
        self.sample_rate_hz = sample_rate_hz
        self._chunks: list[_Chunk] = []
        self._end = 0
        self._cut: set[str] = set()
        # Of the last chunk that was queued: a flush may have taken it out of the chunks since.
        self._last: str | None = None

    @property
    def end_samples(self) -> int:
        """Where the last chunk so far ends; nothing is queued beyond."""
        return self._chunks[-1].stop if self._chunks else 0

    def push(self, arrival_s: float, samples: Samples, response_id: str | None = None) -> int | None:
        """Queue a chunk that arrived at ``arrival_s``.

        Args:
            arrival_s: Second on the listener timeline, 0 or later.
            samples: Float audio (n,) at ``sample_rate_hz``; an empty chunk changes nothing.
            response_id: The response it belongs to.

        Returns:
            The sample at which it starts, or None if it was dropped as late audio of a cut response, or is empty.

        Raises:
            ValueError: Audio of another shape or kind, or not finite; an arrival before 0 or not finite.
        """
        arrival = self._position(arrival_s, "arrival_s")
        chunk = np.asarray(samples)
        if chunk.ndim != 1 or not np.issubdtype(chunk.dtype, np.floating):
            raise ValueError(f"a chunk is float audio of shape (n,), got {chunk.dtype} {chunk.shape}")
        if not np.isfinite(chunk).all():
            raise ValueError("a chunk holds NaN or infinity")
        if response_id in self._cut or not len(chunk):
            return None
        start = max(arrival, self._end)
        # A copy: what was heard cannot change when the caller reuses its buffer.
        self._chunks.append(_Chunk(start, chunk.astype(np.float32, copy=True), response_id))
        self._end = start + len(chunk)
        self._last = response_id
        return start

    def flush(self, at_s: float) -> list[Truncation]:
        """Cut everything not heard by ``at_s``.

        Returns:
            One truncation for each response that lost audio, in the order they would have been heard.

        Raises:
            ValueError: ``at_s`` before 0 or not finite.
        """
        at = self._position(at_s, "at_s")
        if self._last is not None:
            self._cut.add(self._last)
        lost: dict[str | None, int] = {}
        kept = list(self._chunks)
        while kept and kept[-1].stop > at:
            chunk = kept.pop()
            heard = max(0, at - chunk.start)
            lost[chunk.response_id] = lost.get(chunk.response_id, 0) + len(chunk.samples) - heard
            if heard:
                kept.append(_Chunk(chunk.start, chunk.samples[:heard], chunk.response_id))
                break
        self._chunks = kept
        self._cut.update(response for response in lost if response is not None)
        # The player is free from here on: what arrives next does not queue behind what was cut.
        self._end = max(self.end_samples, at)
        return [
            Truncation(response, at / self.sample_rate_hz, self._heard(at, response), cut, self.sample_rate_hz)
            for response, cut in reversed(lost.items())
        ]

    def render(self) -> Samples:
        """The listener's audio, float32 (n,) from second 0 to the last heard sample, silence between chunks."""
        track = np.zeros(self.end_samples, dtype=np.float32)
        for chunk in self._chunks:
            track[chunk.start : chunk.stop] = chunk.samples
        return track

    def heard_until(self, at_s: float, response_id: str | None = None) -> float:
        """Seconds of ``response_id`` (of everything, if None) that were heard by ``at_s``.

        Raises:
            ValueError: ``at_s`` before 0 or not finite.
        """
        at = self._position(at_s, "at_s")
        chunks = self._chunks if response_id is None else [c for c in self._chunks if c.response_id == response_id]
        return sum(max(0, min(chunk.stop, at) - chunk.start) for chunk in chunks) / self.sample_rate_hz

    def _heard(self, at: int, response_id: str | None) -> int:
        return sum(max(0, min(c.stop, at) - c.start) for c in self._chunks if c.response_id == response_id)

    def _position(self, seconds: float, name: str) -> int:
        if not np.isfinite(seconds) or seconds < 0:
            raise ValueError(f"{name} must be a finite time of 0 s or later, got {seconds}")
        return to_samples(seconds, self.sample_rate_hz)
