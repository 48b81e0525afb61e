"""Who speaks with which voice: fixed, so that a speaker sounds the same in every scenario (P1 A2.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from duplex_bench.multiparty.scripts import SPEAKERS

NARRATOR: Final = "narrator"
"""Voice of the spoken preamble: none of the speakers."""


def _cast() -> Mapping[str, str]:
    return MappingProxyType({"A": "a", "B": "b", "C": "c", "D": "d"})


@dataclass(frozen=True)
class VoiceMap:
    """Name of the speech engine's voice for each speaker id, and for the preamble.

    Raises:
        ValueError: a speaker has no voice, or two of them share one.
    """

    speakers: Mapping[str, str] = field(default_factory=_cast)
    preamble: str = NARRATOR

    def __post_init__(self) -> None:
        missing = [speaker for speaker in SPEAKERS if speaker not in self.speakers]
        if missing:
            raise ValueError(f"speaker {missing[0]} has no voice: name one for each of {', '.join(SPEAKERS)}")
        voices = [self.speakers[speaker] for speaker in SPEAKERS] + [self.preamble]
        if len(set(voices)) != len(voices):
            raise ValueError(f"voices {voices} are not all different: speakers must be told apart by voice")

    def voice_of(self, speaker: str) -> str:
        """Voice of ``speaker`` (A to D); raises ValueError for another id."""
        if speaker not in self.speakers:
            raise ValueError(f"speaker {speaker!r} is unknown: speakers are {', '.join(SPEAKERS)}")
        return self.speakers[speaker]
