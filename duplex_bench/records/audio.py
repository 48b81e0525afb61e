"""Where a stretch of audio lies, and what it contains."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioSlice:
    """Samples ``[start_sample, stop_sample)`` of channel ``channel`` of a stored recording.

    ``source`` is the blob digest of the whole recording, ``content`` the digest of the slice's own PCM16
    samples: a stimulus digest uses only ``content``, so that an edit elsewhere in a recording changes nothing.
    """

    source: str
    start_sample: int
    stop_sample: int
    sample_rate_hz: int
    content: str
    channel: int = 0

    @property
    def n_samples(self) -> int:
        """Length of the slice in samples."""
        return self.stop_sample - self.start_sample


@dataclass(frozen=True, slots=True)
class TimedWord:
    """One recognised or labelled word; times in seconds, None where the word could not be aligned."""

    text: str
    start_s: float | None
    end_s: float | None
    aligned: bool = True
