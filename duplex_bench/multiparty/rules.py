"""The numbers of the scoring rules (design 15.4-15.6; P1 A3.1, A4.1)."""

from dataclasses import dataclass

from duplex_bench.audio.activity import DEFAULT_BRIDGE_S


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """All durations in seconds."""

    request_window_s: float = 5.0
    """How long after the end of T a response may begin (P1 A3.1)."""
    question_window_s: float = 3.0
    """How long after the end of N4Q an answer may begin to count as a first onset (P1 A4.1)."""
    deadline_s: float = 2.0
    """How long after the onset of N4R a system may go on speaking (P1 A4.1)."""
    bridge_s: float = DEFAULT_BRIDGE_S
    """Gaps up to this long do not end speech (ours)."""

    def __post_init__(self) -> None:
        for name in ("request_window_s", "question_window_s", "deadline_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give a positive number of seconds")
        if self.bridge_s < 0:
            raise ValueError(f"bridge_s is {self.bridge_s}: give 0 or more seconds")
