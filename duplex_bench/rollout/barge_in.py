"""Does a system stop when the user speaks over it, and how soon is it silent to a listener?"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import DEFAULT_BRIDGE_S, bridge
from duplex_bench.audio.gate import intervals_s

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BargeIn:
    """The user began at ``onset_s`` while the system was audible.

    ``audible_stop_s`` is where that stretch of the system's speech ended; ``stop_latency_s`` is the time between.
    """

    onset_s: float
    audible_stop_s: float
    stop_latency_s: float


def barge_ins(user_s: npt.NDArray[np.float64], system_s: npt.NDArray[np.float64]) -> list[BargeIn]:
    """Every onset of the user inside a stretch of the system's speech.

    Args:
        user_s: Speech of the user (k, 2), seconds on the listener timeline.
        system_s: Audible speech of the system (k, 2), on the same clock, gaps already bridged.
    """
    found = []
    for onset, _ in user_s:
        for start, stop in system_s:
            if start < onset < stop:
                found.append(BargeIn(float(onset), float(stop), float(stop - onset)))
    return found


def barge_in_events(
    live: Samples, live_rate_hz: int, heard: Samples, heard_rate_hz: int, bridge_s: float = DEFAULT_BRIDGE_S
) -> list[dict[str, Any]]:
    """``barge_ins`` measured by the energy gate on both tracks (float32 (n,)), as they stand in the event log."""
    user = bridge(intervals_s(live, live_rate_hz), bridge_s)
    system = bridge(intervals_s(heard, heard_rate_hz), bridge_s)
    return [{"kind": "barge_in", **asdict(one)} for one in barge_ins(user, system)]
