"""The planted system: speaks at known sample offsets, so that every metric has a truth to return (design 5)."""

from collections.abc import Mapping, Sequence

import numpy as np

from duplex_bench.audio.mixing import place
from duplex_bench.contract.types import OpenRequest, Spec
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.lockstep_track import TRACK_SPEC, UNIT_SAMPLES, TrackSession

Schedule = Sequence[tuple[int, Samples]]


class PlantedSystem:
    """Plays, for each stimulus, given clips at given samples of the listener timeline.

    Args:
        schedules: ``storage.digests.stimulus_digest`` of a stimulus -> clips as (start sample at 24 kHz, float32
            samples (n,) at 24 kHz). Overlapping clips are added.
        default: Clips for every other stimulus; silence by default.
    """

    spec: Spec = TRACK_SPEC

    def __init__(self, schedules: Mapping[str, Schedule], default: Schedule = ()) -> None:
        self._tracks = {stimulus_id: _track(schedule) for stimulus_id, schedule in schedules.items()}
        self._default = _track(default)

    def new_session(self) -> TrackSession:
        """A session that follows the schedule of the stimulus it is opened for."""
        return TrackSession(self._frame)

    def _frame(self, request: OpenRequest, unit: int) -> Samples | None:
        track = self._tracks.get(request.stimulus_id, self._default)
        start = unit * UNIT_SAMPLES
        # Past the schedule's end there is nothing to say; before it, silence is a frame like any other.
        return track[start : start + UNIT_SAMPLES] if start < len(track) else None


def _track(schedule: Schedule) -> Samples:
    end = max((start + len(samples) for start, samples in schedule), default=0)
    whole_units = -(-end // UNIT_SAMPLES) * UNIT_SAMPLES
    return place(schedule, whole_units).samples if whole_units else np.zeros(0, dtype=np.float32)
