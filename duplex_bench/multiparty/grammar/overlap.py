"""How much text scripts share, so that no two are nearly the same."""

import re
from collections import Counter
from typing import Final

from duplex_bench.multiparty.scripts import Script

_WORDS_IN_SEQUENCE: Final = 4
_WORD: Final = re.compile(r"[a-z0-9']+")

Sequence4 = tuple[str, ...]


def sequences(script: Script) -> set[Sequence4]:
    """The four-word sequences of a script's utterances; none runs over the end of an utterance."""
    found: set[Sequence4] = set()
    for utterance in script.utterances:
        words = _WORD.findall(utterance.text.lower())
        found.update(zip(*(words[offset:] for offset in range(_WORDS_IN_SEQUENCE)), strict=False))
    return found


class SharedText:
    """Scripts accepted so far, searchable for the one that shares most with a new one."""

    def __init__(self) -> None:
        self._holders: dict[Sequence4, list[int]] = {}
        self._count = 0

    def largest_share(self, script: Script) -> float:
        """Largest share of ``script``'s four-word sequences that stands in one accepted script, 0 to 1."""
        own = sequences(script)
        shared: Counter[int] = Counter()
        for sequence in own:
            shared.update(self._holders.get(sequence, ()))
        return max(shared.values(), default=0) / max(1, len(own))

    def add(self, script: Script) -> None:
        """Accept ``script``."""
        for sequence in sequences(script):
            self._holders.setdefault(sequence, []).append(self._count)
        self._count += 1
