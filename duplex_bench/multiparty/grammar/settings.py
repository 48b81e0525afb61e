"""What a run may choose about scripts of the grammar engine."""

from dataclasses import dataclass, field

from duplex_bench.multiparty.grammar.lexicon import domains
from duplex_bench.multiparty.grammar.tasks import FAMILIES


class GrammarError(ValueError):
    """Settings that the grammar cannot follow."""


@dataclass(frozen=True, slots=True)
class ScriptSize:
    """How long conversations are. Means are expectations over scripts; each script draws a whole number beside them.

    The default is the paper's size as derived from its summary (design 7): 10 silence windows, 2.35 of them N1, one
    T and one N4Q make about 12.1 decided utterances; with about 6.8 s an utterance, about 100 s a conversation.
    """

    silence_turns_mean: float = 10.0
    """N1, N2 and N3 together, beside the one T and the N4 turns."""
    n1_turns_mean: float = 2.35
    n3_turns_mean: float = 1.5
    """(ours)"""
    n4_share: float = 1.0
    """Share of scripts with one N4Q and its N4R."""
    elaborations_mean: float = 1.2
    """Sentences of talk added to a silence turn, on average (ours): sets how long turns are."""


SIZES = {
    "paper": ScriptSize(),
    "demo": ScriptSize(silence_turns_mean=6.0, n1_turns_mean=1.35, n3_turns_mean=1.0, elaborations_mean=0.0),
}
"""``demo``: about 50 s a conversation, so that six pairs run on a laptop in minutes (ours)."""


@dataclass(frozen=True, slots=True)
class GrammarSettings:
    """What is drawn. Equal settings give equal pairs; a larger ``n_pairs`` only adds pairs at the end."""

    n_pairs: int
    seed: int = 0
    size: ScriptSize = field(default_factory=ScriptSize)
    domains: tuple[str, ...] = ()
    """Ids of domains, all where empty. They take turns."""
    families: tuple[str, ...] = ()
    """Names of scenario families, all where empty. They take turns."""
    four_humans_share: float = 0.5
    """Share of scenarios with four humans; the others have three (ours: the paper says three or four)."""
    revise_before_share: float = 0.021
    """Share of implicit rewrites that also revise the turn before T (P1 A2.4: 42 of 2,000)."""
    max_shared_text: float = 0.6
    """Largest share of a script's four-word sequences that may stand in one other script (ours)."""
    max_attempts: int = 40
    """Draws of one scenario before generation gives up with an error."""

    def __post_init__(self) -> None:
        if self.n_pairs < 1:
            raise GrammarError(f"n_pairs is {self.n_pairs}: ask for at least one pair")
        shares = {
            "four_humans_share": self.four_humans_share,
            "max_shared_text": self.max_shared_text,
            "revise_before_share": self.revise_before_share,
            "n4_share": self.size.n4_share,
        }
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise GrammarError(f"{name} is {share}: give a share from 0 to 1")
        for kind, chosen, known in (("domain", self.domains, domains()), ("family", self.families, FAMILIES)):
            unknown = [name for name in chosen if name not in known]
            if unknown:
                raise GrammarError(f"unknown {kind} {unknown[0]!r}: choose from {', '.join(known)}")
        if self.size.silence_turns_mean < 4 + self.size.n1_turns_mean:
            raise GrammarError("silence_turns_mean leaves no room for evidence: make it at least 4 + n1_turns_mean")
