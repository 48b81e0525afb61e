"""What the script engine over text models is asked for."""

from dataclasses import dataclass, field

from duplex_bench.multiparty.grammar.lexicon import domains
from duplex_bench.multiparty.grammar.settings import SIZES, ScriptSize
from duplex_bench.textmodels.settings import ModelSettings

FAMILIES = {
    "total": "how many there are altogether, from two or three counts that different people say",
    "left": "how many are left, from a count and how many are gone",
    "cost": "what several of one thing cost, from a price and a count that different people say",
    "budget": "how much money is left, from a budget and what was spent",
    "finish": "at which clock time something ends, from its start and its length in minutes",
    "between": "how many minutes lie between two clock times",
    "compare": "which of three things is the largest (or smallest, cheapest, nearest) by numbers that were said",
    "who": "who said that they would do something, among several who spoke of it",
    "corrected": "where something is or when it happens, after somebody corrected what was said first",
    "place": "where something was put, said some turns ago by somebody else",
}
"""Scenario families by name: what the request is about (ours)."""


class LlmScriptError(ValueError):
    """Settings that the engine cannot follow; the message names the setting."""


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """What is written, by which model. Equal settings and responses give equal pairs.

    Attributes:
        model: the model that writes.
        n_pairs: how many pairs.
        seed: draws domain, family, names and sizes of each pair, by hash.
        size: as for the grammar engine.
        domains: ids of domains (the grammar's), all where empty.
        families: names of families of ``FAMILIES``, all where empty.
        four_humans_share: share of scenarios with four humans.
        attempts: drafts of one scenario before it is given up and counted (ours).
        max_shared_text: largest share of four-word sequences that may stand in one earlier script (ours).
    """

    model: ModelSettings
    n_pairs: int = 6
    seed: int = 0
    size: ScriptSize = field(default_factory=lambda: SIZES["paper"])
    domains: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    four_humans_share: float = 0.5
    attempts: int = 4
    max_shared_text: float = 0.6

    def __post_init__(self) -> None:
        if self.n_pairs < 1 or self.attempts < 1:
            raise LlmScriptError("n_pairs and attempts must be at least 1")
        for name, share in (("four_humans_share", self.four_humans_share), ("max_shared_text", self.max_shared_text)):
            if not 0 <= share <= 1:
                raise LlmScriptError(f"{name} is {share}: give a share from 0 to 1")
        for kind, chosen, known in (("domain", self.domains, domains()), ("family", self.families, FAMILIES)):
            unknown = [name for name in chosen if name not in known]
            if unknown:
                raise LlmScriptError(f"unknown {kind} {unknown[0]!r}: choose from {', '.join(known)}")
