"""What is kept of one run of one system on one stimulus."""

from dataclasses import dataclass

from duplex_bench.records.outcome import Outcome


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """One finished run. Audio and events are blobs; seconds are on the listener timeline unless named otherwise.

    ``listener_audio`` is what a person with a loudspeaker would have heard from the system, from second 0 of the
    live stream; ``timeline_s`` how long that timeline is (input plus drain). ``compute_s`` and ``wall_s`` are costs.
    """

    rollout_key: str
    system: str
    stimulus_digest: str
    repeat: int
    outcome: Outcome
    reason: str
    listener_audio: str | None
    sample_rate_hz: int
    timeline_s: float
    input_s: float
    events: str | None
    compute_s: float
    wall_s: float
    attempts: int = 1
