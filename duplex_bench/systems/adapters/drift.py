"""Whether a server that answers frame by frame keeps up: what it owes of audio may not grow."""

from dataclasses import dataclass

from duplex_bench.contract.types import TransportError


@dataclass
class Drift:
    """Audio sent and received, in seconds.

    Attributes:
        limit_s: The debt may grow by so much beyond its least (ours: a listener loses the thread at a second).
        start_limit_s: Audio that may be sent before any comes back (ours).
    """

    limit_s: float = 1.0
    start_limit_s: float = 5.0
    sent_s: float = 0.0
    received_s: float = 0.0
    least_s: float | None = None

    @property
    def owed_s(self) -> float:
        """What was sent and not answered."""
        return self.sent_s - self.received_s

    def received(self, seconds: float) -> None:
        """Note audio that came back."""
        self.received_s += seconds
        self.least_s = self.owed_s if self.least_s is None else min(self.least_s, self.owed_s)

    def sent(self, seconds: float) -> None:
        """Note audio that went out.

        Raises:
            TransportError: The server is slower than real time, so that what it says is no answer to what it hears.
        """
        self.sent_s += seconds
        if self.least_s is None and self.owed_s > self.start_limit_s:
            raise TransportError(
                f"no audio came back for {self.owed_s:.0f} s of audio: the server hangs, look at its log"
            )
        if self.least_s is not None and self.owed_s - self.least_s > self.limit_s:
            raise TransportError(
                f"the server is slower than real time: it fell {self.owed_s - self.least_s:.1f} s behind within "
                f"{self.sent_s:.0f} s; run one session at a time, or on a faster device"
            )
