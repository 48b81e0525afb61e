"""The grammar script engine: pairs in any number from one seed, each valid and unlike the others (design 7)."""

from collections.abc import Iterator

from duplex_bench.multiparty.grammar.assemble import assemble
from duplex_bench.multiparty.grammar.overlap import SharedText
from duplex_bench.multiparty.grammar.settings import GrammarError, GrammarSettings
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.multiparty.validate import pair_faults


def iterate_pairs(settings: GrammarSettings) -> Iterator[Pair]:
    """The pairs of ``generate_pairs``, one at a time.

    Raises:
        GrammarError: a scenario stayed invalid or too like an earlier one after ``max_attempts`` draws.
    """
    accepted = SharedText()
    for index in range(settings.n_pairs):
        why = ""
        for attempt in range(settings.max_attempts):
            pair = assemble(settings, index, attempt)
            faults = pair_faults(pair)
            share = accepted.largest_share(pair.explicit)
            if not faults and share <= settings.max_shared_text:
                accepted.add(pair.explicit)
                yield pair
                break
            why = str(faults[0]) if faults else f"{share:.0%} of its text stands in one earlier script"
        else:
            raise GrammarError(
                f"scenario {index}: no acceptable script in {settings.max_attempts} draws, the last because {why}. "
                "Ask for fewer pairs, add domains, or raise max_shared_text"
            )


def generate_pairs(settings: GrammarSettings) -> list[Pair]:
    """Pairs of scripts drawn by stable hash of seed and index: equal settings give equal pairs in every process.

    Every pair passes all rules of ``validate``; no explicit script shares more than ``max_shared_text`` of its
    four-word sequences with an earlier one. The first k pairs do not depend on ``n_pairs``.

    Raises:
        GrammarError: as ``iterate_pairs``.
    """
    return list(iterate_pairs(settings))
