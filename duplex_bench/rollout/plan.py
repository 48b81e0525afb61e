"""How long a system is listened to after its stimulus: the protocols of design 6 as numbers."""

from dataclasses import dataclass
from typing import Literal, get_args

from duplex_bench.records.items import Protocol

Trigger = Literal["request", "endpointer"]


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """The silence after the live audio, in seconds of audio time.

    Attributes:
        silence_after_s: Always sent.
        extra_silence_s: Sent beyond that while nothing audible has come from the system since second 0; what comes
            first is heard for at least ``silence_after_s`` (ours), as far as the extra silence allows.
        stop_after_silence_s: If set, stop once the system has spoken after the live audio and then been inaudible
            for so long; ``silence_after_s`` does not apply then.
        cap_s: The most that is ever sent.
        reply_due: Whether a response is due after the live audio, so that its absence is ``no_audio``.
        trigger: What ends the user's turn where a reply is due: a request by the harness, with the system's own
            detection off (realtime systems that allow it; P2 3.4), or the system's own endpointer, which then hears
            the same silence as every other system (ours).
    """

    silence_after_s: float
    extra_silence_s: float = 0.0
    stop_after_silence_s: float | None = None
    cap_s: float | None = None
    reply_due: bool = False
    trigger: Trigger = "request"

    def __post_init__(self) -> None:
        if min(self.silence_after_s, self.extra_silence_s) < 0:
            raise ValueError("stream plan: silences cannot be negative")
        if self.trigger not in get_args(Trigger):
            raise ValueError(f"stream plan: trigger is one of {', '.join(get_args(Trigger))}, got {self.trigger!r}")
        if self.stop_after_silence_s is not None and (self.stop_after_silence_s <= 0 or self.cap_s is None):
            raise ValueError("stream plan: stop_after_silence_s must be positive and needs cap_s, or it never ends")


@dataclass(frozen=True, slots=True)
class ProtocolSettings:
    """The numbers of every protocol; a profile may change them, and they are part of a rollout's key.

    Attributes:
        pause_silence_s: Silence after the speaker has resumed (P2 3.4).
        pause_extra_silence_s: Up to so much more if no audio has come (P2 3.4).
        turn_end_stop_after_silence_s: A reply counts as over after so much silence (ours).
        turn_end_cap_s: A reply is listened to for at most so long after the turn end (P2 3.4).
        turn_end_trigger: ``StreamPlan.trigger`` of turn ends and recall.
        multiparty_tail_s: Silence after the scene (ours: one scheduler, the same for every system).
    """

    pause_silence_s: float = 3.0
    pause_extra_silence_s: float = 8.0
    turn_end_stop_after_silence_s: float = 2.0
    turn_end_cap_s: float = 30.0
    turn_end_trigger: Trigger = "request"
    multiparty_tail_s: float = 5.0


def plan_for(protocol: Protocol, settings: ProtocolSettings) -> StreamPlan:
    """The stream plan of ``protocol``; recall ends as a turn end does."""
    if protocol == "pause":
        return StreamPlan(settings.pause_silence_s, settings.pause_extra_silence_s)
    if protocol == "multiparty":
        return StreamPlan(settings.multiparty_tail_s)
    return StreamPlan(
        0.0,
        stop_after_silence_s=settings.turn_end_stop_after_silence_s,
        cap_s=settings.turn_end_cap_s,
        reply_due=True,
        trigger=settings.turn_end_trigger,
    )
