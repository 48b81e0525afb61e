"""Reference policy: never speaks (design 15.7: silence 1, presence 0, every pause silent)."""

from collections.abc import Mapping
from typing import Any

from duplex_bench.contract.types import OpenRequest, Spec
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.lockstep_track import TRACK_SPEC, TrackSession


def _nothing(request: OpenRequest, unit: int) -> Samples | None:
    del request, unit
    return None


class NeverSpeak:
    """Hears everything and returns nothing."""

    spec: Spec = TRACK_SPEC

    def new_session(self) -> TrackSession:
        """A session without output."""
        return TrackSession(_nothing)


def create(settings: Mapping[str, Any]) -> NeverSpeak:
    """The policy; raises ValueError if given settings, as it has none."""
    if settings:
        raise ValueError(f"never_speak has no settings, got {sorted(settings)}")
    return NeverSpeak()
