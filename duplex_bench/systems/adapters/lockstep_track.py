"""A session that plays a track known in advance, frame by frame, whatever it hears: base of the reference policies."""

from collections.abc import Callable

from duplex_bench.contract.types import OpenRequest, Out, SessionStats, Spec, checked_unit, refuse_unsupported
from duplex_bench.rollout.playback import Samples

UNIT_SAMPLES = 1920
RATE_HZ = 24_000

# Lockstep with no shift: the frame of unit k is heard from the start of unit k, so that sample 0 can be reached.
TRACK_SPEC = Spec(
    in_rate_hz=RATE_HZ,
    out_rate_hz=RATE_HZ,
    unit_in_samples=UNIT_SAMPLES,
    unit_out_samples=UNIT_SAMPLES,
    lockstep=True,
    capabilities=frozenset({"seedable"}),
)


class TrackSession:
    """Asks ``frame_of(request, k)`` for the audio of unit k, float32 (1920,) at 24 kHz, or None for none."""

    def __init__(self, frame_of: Callable[[OpenRequest, int], Samples | None]) -> None:
        self._frame_of = frame_of
        self._request: OpenRequest | None = None
        self._units = 0
        self._empty = 0

    def open(self, request: OpenRequest) -> None:
        """Start at unit 0; raises UnsupportedError for prompts and history."""
        refuse_unsupported(request, TRACK_SPEC)
        self._request = request

    def step(self, unit: Samples) -> list[Out]:
        """The frame of this unit; raises ValueError before ``open``, UnsupportedError for a partial unit."""
        if self._request is None:
            raise ValueError("step before open")
        checked_unit(unit, TRACK_SPEC)
        frame = self._frame_of(self._request, self._units)
        number = self._units
        self._units += 1
        if frame is None:
            self._empty += 1
            return []
        return [Out("audio", number, pcm=frame)]

    def close(self) -> SessionStats:
        """How many units were fed."""
        return SessionStats(units=self._units, empty_steps=self._empty)
