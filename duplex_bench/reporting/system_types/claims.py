"""What the two papers found about types of systems, each as a contrast that a run's tables can be asked for.

Only what our copies of the papers state is here. Numbers in ``finding`` are theirs; which way it goes is ``expected``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from duplex_bench.records.items import Track
from duplex_bench.reporting.inputs import SystemType

FULL_DUPLEX: Final = "full_duplex"
ENDPOINTER: Final = "endpointer"
TYPES: Final[tuple[SystemType, ...]] = (FULL_DUPLEX, ENDPOINTER)
TYPE_TITLES: Final[Mapping[SystemType, str]] = {FULL_DUPLEX: "full-duplex", ENDPOINTER: "endpointer-dependent"}

Sign = Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Between:
    """Full-duplex minus endpointer-dependent, of one metric."""

    metric: str


@dataclass(frozen=True, slots=True)
class Within:
    """One metric minus another on the same windows, of the systems of one type."""

    first: str
    second: str
    of: SystemType


@dataclass(frozen=True, slots=True)
class Against:
    """A metric of one type minus a value that means nothing happened."""

    metric: str
    value: float
    of: SystemType


@dataclass(frozen=True, slots=True)
class Ranked:
    """Spearman's correlation over systems of one type between their estimates of two metrics."""

    first: str
    second: str
    of: SystemType


@dataclass(frozen=True, slots=True)
class Alike:
    """Explicit minus implicit addressing, of one metric over all systems: expected to lie within a margin."""

    metric: str


Contrast = Between | Within | Against | Ranked | Alike


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding of a paper.

    ``finding`` is the paper's, ``where`` its section. ``so`` says in words what holds if the contrast goes the way it
    is ``expected`` to, ``otherwise`` what holds if it goes the other way.
    """

    id: str
    track: Track
    paper: Literal["P1", "P2"]
    where: str
    finding: str
    so: str
    otherwise: str
    contrast: Contrast
    expected: Sign = 1

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it is about."""
        contrast = self.contrast
        return (contrast.first, contrast.second) if isinstance(contrast, Within | Ranked) else (contrast.metric,)

    @property
    def needs(self) -> tuple[SystemType, ...]:
        """The types of which it needs a system; none where any will do."""
        contrast = self.contrast
        if isinstance(contrast, Between):
            return TYPES
        return () if isinstance(contrast, Alike) else (contrast.of,)


CLAIMS: Final = (
    Claim(
        "silent", "conversation", "P2", "5",
        "Full-duplex models are the only systems that regularly stay silent at a pause (22 % and 39 % of points; "
        "hosted systems 0 to 2 %).",
        "full-duplex systems keep silent at more pauses", "endpointer-dependent systems keep silent at more pauses",
        Between("pause_silent"),
    ),
    Claim(
        "reaction", "conversation", "P2", "5",
        "Full-duplex models that take the floor do so within a human reaction time (median 216 and 373 ms into the "
        "pause); hosted speech begins 1.0 to 3.9 s after the pause began.",
        "full-duplex systems take the floor sooner", "endpointer-dependent systems take the floor sooner",
        Between("takeover_latency"), -1,
    ),
    Claim(
        "late", "conversation", "P2", "5",
        "The words of hosted systems land inside the pause on 7 to 26 % of points, and after the person has resumed on "
        "72 to 86 %.",
        "endpointer-dependent systems speak more often after the person has resumed than inside the pause",
        "endpointer-dependent systems speak more often inside the pause than after it",
        Within("pause_after", "pause_takeover", ENDPOINTER),
    ),
    Claim(
        "latency-decides", "conversation", "P2", "5",
        "Whether hosted words land inside the pause is set by the latency, not by a decision: the slower system takes "
        "fewer pauses.",
        "the later an endpointer-dependent system starts, the fewer pauses it takes",
        "the later an endpointer-dependent system starts, the more pauses it takes",
        Ranked("first_word_from_pause_start", "pause_takeover", ENDPOINTER), -1,
    ),
    Claim(
        "no-answer", "conversation", "P2", "5, Table 15",
        "At turn ends Moshi produced no words on 19 % of points and PersonaPlex on 10 of 300; no hosted system on any.",
        "full-duplex systems leave more turn ends without a word",
        "endpointer-dependent systems leave more turn ends without a word",
        Between("no_words"),
    ),
    Claim(
        "do-not-stop", "conversation", "P2", "5, Table 15",
        "Full-duplex models do not stop: 90 and 92 % of rollouts were still speaking at the 30 s cap; hosted systems 1 "
        "to 24 %.",
        "full-duplex systems are more often still speaking at the cap",
        "endpointer-dependent systems are more often still speaking at the cap",
        Between("at_cap"),
    ),
    Claim(
        "longer-hosted", "conversation", "P2", "5",
        "Every system talks longer than the person: median duration ratio 1.4 to 3.6 for hosted systems.",
        "endpointer-dependent systems talk longer than the person",
        "endpointer-dependent systems talk less long than the person",
        Against("duration_ratio", 1.0, ENDPOINTER),
    ),
    Claim(
        "longer-duplex", "conversation", "P2", "5",
        "Every system talks longer than the person: median duration ratio 3.3 to 7.8 for full-duplex models.",
        "full-duplex systems talk longer than the person", "full-duplex systems talk less long than the person",
        Against("duration_ratio", 1.0, FULL_DUPLEX),
    ),
    Claim(
        "recall", "conversation", "P2", "5, abstract",
        "Hosted systems, which read the history, recall 41 to 60 % of conversation facts; full-duplex models, which "
        "hear it, 17 to 22 %.",
        "endpointer-dependent systems recall more", "full-duplex systems recall more",
        Between("recall_correct"), -1,
    ),
    Claim(
        "speech-and-silence", "multiparty", "P1", "1, 4.1",
        "Frequent speech does not ensure appropriate participation: response presence of 0.9955 and 0.9545 stands "
        "beside silence preservation of 0.0002 and 0.9242.",
        "the more requests a full-duplex system speaks after, the less it keeps silent where it should",
        "the more requests a full-duplex system speaks after, the more it keeps silent where it should",
        Ranked("response_presence", "silence_preservation", FULL_DUPLEX), -1,
    ),
    Claim(
        "presence-and-onset", "multiparty", "P1", "4.5",
        "Response presence and fresh-onset response rank systems differently: Spearman \N{MINUS SIGN}0.43 over ten "
        "condition entries.",
        "the more requests a full-duplex system speaks after, the fewer it answers afresh",
        "the more requests a full-duplex system speaks after, the more it answers afresh",
        Ranked("response_presence", "fresh_onset_response", FULL_DUPLEX), -1,
    ),
    Claim(
        "addressing", "multiparty", "P1", "4.2, A5.1",
        "No speech system's response rate differs significantly between requests that name it and requests that do not "
        "(\N{MINUS SIGN}1.75 to +0.60 points).",
        "being named makes no difference that would matter", "being named makes a difference",
        Alike("response_presence"),
    ),
)  # fmt: skip
