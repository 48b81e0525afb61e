"""What every probe of a frame-stepped system needs: a request, audio cut into units, and how a rule speaks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from duplex_bench.audio.time import to_samples
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import OpenRequest, Out, Session, SessionStats, System
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.digests import generator_from

Level = Literal["must", "should", "optional"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

_LEVEL: Final = 0.1
_NOISE_S: Final = 1.0
_SILENCE_S: Final = 2.0
_MIN_UNITS: Final = 8


class NotApplicableError(ValueError):
    """The rule says nothing about this system; the message says why."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something measured that is worth telling of a rule that holds."""

    message: str


@dataclass(frozen=True)
class Bench:
    """A frame-stepped system on the bench.

    Attributes:
        system: Under test.
        audio: What it hears, float32 (n,) at its ``in_rate_hz``.
        policy: It is a reference policy, of which nobody expects that it listens.
    """

    system: System
    audio: Samples
    policy: bool = False

    @property
    def units(self) -> list[Samples]:
        """``audio`` as whole units, with room for priming before and flushing after it."""
        return as_units(self.system, self.audio)

    def seedable_only(self) -> None:
        """Raise NotApplicableError for a system whose outputs may differ by themselves."""
        if "seedable" not in self.system.spec.capabilities:
            raise NotApplicableError("the spec does not declare 'seedable'")

    def session(self, **changes: Any) -> Session:
        """A fresh session, opened."""
        session = self.system.new_session()
        session.open(request(**changes))
        return session

    def run(self, units: list[Samples], **changes: Any) -> tuple[list[list[Out]], SessionStats]:
        """The outputs of each unit in a session of its own, and what it says of itself when closed."""
        session = self.session(**changes)
        outs = feed(session, units)
        return outs, session.close()


@dataclass(frozen=True)
class PushBench:
    """A realtime system on the bench; ``spoken`` is a question in audio, float32 (n,) at its ``in_rate_hz``."""

    system: PushSystem
    spoken: Samples


Said = Iterator["str | Note"]


@dataclass(frozen=True, slots=True)
class Rule:
    """``probe`` yields a message for each breach, and notes; it raises NotApplicableError where it has no say."""

    name: str
    level: Level
    probe: Callable[[Any], Said]


def request(**changes: Any) -> OpenRequest:
    """The request of every probe; ``changes`` are fields of it."""
    return OpenRequest(**{"seed": 7, "stimulus_id": "conformance", **changes})


def noise_for(system: System | PushSystem) -> Samples:
    """A second of noise and two of silence, the same each time."""
    rate = system.spec.in_rate_hz
    noise = generator_from("conformance", rate).standard_normal(to_samples(_NOISE_S, rate)) * _LEVEL
    return np.concatenate([noise, np.zeros(to_samples(_SILENCE_S, rate))]).astype(np.float32)


def as_units(system: System, audio: Samples) -> list[Samples]:
    """``audio`` as whole units, with room for priming before and flushing after it."""
    spec = system.spec
    n_units = max(_MIN_UNITS, -(-len(audio) // spec.unit_in_samples))
    padded = np.zeros((spec.prime_units + n_units + spec.flush_units) * spec.unit_in_samples, dtype=np.float32)
    start = spec.prime_units * spec.unit_in_samples
    padded[start : start + len(audio)] = audio
    return list(padded.reshape(-1, spec.unit_in_samples))


def feed(session: Session, units: list[Samples]) -> list[list[Out]]:
    """The outputs of each unit."""
    return [session.step(unit) for unit in units]


def content(run: list[list[Out]]) -> list[list[tuple[object, ...]]]:
    """What outputs say, without what they cost: to be compared."""
    return [
        [
            (out.kind, out.unit, None if out.pcm is None else out.pcm.tobytes(), out.text, out.state, out.response_id,
             out.model_time_s, out.available_s)
            for out in outs
        ]
        for outs in run
    ]  # fmt: skip
