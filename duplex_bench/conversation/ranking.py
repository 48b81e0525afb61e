"""How tempting a boundary is: the ranking that decides which survivors a conversation keeps (P2 App. A)."""

import string
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from duplex_bench.conversation.candidates import Candidate

_PUNCTUATION = string.punctuation + "…“”‘’—–"


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """Weights and caps of the features. P2 names the features; every number here is ours.

    Attributes:
        pause_weight: of the pause length, as a share of ``pause_cap_s``.
        pause_cap_s: a longer pause counts as this.
        context_weight: of the words of the active turn before the boundary, as a share of ``context_cap_words``.
        context_cap_words: a longer context counts as this.
        reply_weight: of the words of the reply at a turn end, as a share of ``reply_cap_words``.
        reply_cap_words: a longer reply counts as this.
        ambiguity_weight: of the ambiguity bit.
    """

    pause_weight: float = 1.0
    pause_cap_s: float = 2.0
    context_weight: float = 1.0
    context_cap_words: int = 20
    reply_weight: float = 1.0
    reply_cap_words: int = 15
    ambiguity_weight: float = 1.0

    def __post_init__(self) -> None:
        if min(self.pause_weight, self.context_weight, self.reply_weight, self.ambiguity_weight) < 0:
            raise ValueError("ranking weights: give numbers of at least 0")
        if min(self.pause_cap_s, self.context_cap_words, self.reply_cap_words) <= 0:
            raise ValueError("ranking caps: give numbers above 0")
        if min(self.pause_weight, self.reply_weight) + self.context_weight + self.ambiguity_weight <= 0:
            raise ValueError("ranking weights: at least one that applies to each kind must be above 0")


@cache
def _open_endings() -> frozenset[str]:
    data = tomllib.loads(files("duplex_bench.conversation").joinpath("data", "boundary_words.toml").read_text("utf-8"))
    return frozenset(entry for group in ("conjunction", "article", "preposition", "filler") for entry in data[group])


def is_ambiguous(words: Sequence[str]) -> bool:
    """Whether words before a silence leave open if the speaker has finished (P2's ambiguity bit).

    False where the last word is a conjunction, article, preposition or filler: then more is clearly to come. False
    without any word.
    """
    bare = [word.strip(_PUNCTUATION + " ").lower() for word in words]
    bare = [word for word in bare if word]
    if not bare:
        return False
    return bare[-1] not in _open_endings() and " ".join(bare[-2:]) not in _open_endings()


def ranking_of(candidate: Candidate, settings: RankingSettings) -> float:
    """Weighted mean of the capped features, in [0, 1].

    A pause: its length, its context, the ambiguity bit. A turn end: context, reply, the ambiguity bit.
    """
    context = min(len(candidate.context_words) / settings.context_cap_words, 1.0)
    features = [
        (settings.context_weight, context),
        (settings.ambiguity_weight, float(is_ambiguous(candidate.context_words))),
    ]
    if candidate.kind == "pause":
        features.append((settings.pause_weight, min(candidate.pause_s / settings.pause_cap_s, 1.0)))
    else:
        n_words = 0 if candidate.reply is None else candidate.reply.n_words
        features.append((settings.reply_weight, min(n_words / settings.reply_cap_words, 1.0)))
    return sum(weight * value for weight, value in features) / sum(weight for weight, _ in features)
