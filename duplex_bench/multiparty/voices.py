"""Who speaks with which voice: fixed, so that a speaker sounds the same in every scenario (P1 A2.3)."""

from dataclasses import astuple, dataclass

from duplex_bench.multiparty.scripts import SPEAKERS


@dataclass(frozen=True, slots=True)
class VoiceMap:
    """The speech engine's voice of each speaker id A to D, and of the spoken preamble.

    Raises:
        ValueError: two of them share a voice.
    """

    a: str = "a"
    b: str = "b"
    c: str = "c"
    d: str = "d"
    preamble: str = "narrator"

    def __post_init__(self) -> None:
        voices = astuple(self)
        if len(set(voices)) != len(voices):
            raise ValueError(f"voices {list(voices)} are not all different: speakers must be told apart by voice")

    def voice_of(self, speaker: str) -> str:
        """Voice of ``speaker`` (A to D); raises ValueError for another id."""
        if speaker not in SPEAKERS:
            raise ValueError(f"speaker {speaker!r} is unknown: speakers are {', '.join(SPEAKERS)}")
        voice: str = getattr(self, speaker.lower())
        return voice
