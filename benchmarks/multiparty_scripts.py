"""Grammar scripts: 2,000 distinct pairs of the paper's size from one seed, validated, on one core.

`python -m benchmarks.multiparty_scripts`

Generation validates every pair and looks for shared text as it goes; the second pass validates them again from their
stored form, as a user's own scenarios are, and counts what the draw holds.
"""

import time
from collections import Counter

from duplex_bench.multiparty.accounting import composition
from duplex_bench.multiparty.grammar import GrammarSettings, generate_pairs
from duplex_bench.multiparty.grammar.overlap import SharedText
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.storage.serial import from_json, to_json

N_PAIRS = 2000
CEILING_S = 60.0
SHOWN = ("decided turns (T, N1 to N3, N4Q)", "silence turns (N1 to N3)", "turns N1", "turns N4Q", "with four humans",
         "request position (0 first, 1 last)")  # fmt: skip


def main() -> int:
    settings = GrammarSettings(N_PAIRS)
    began = time.perf_counter()
    pairs = generate_pairs(settings)
    generated_s = time.perf_counter() - began
    began = time.perf_counter()
    faults = sum(len(pair_faults(from_json(Pair, to_json(pair)))) for pair in pairs)
    validated_s = time.perf_counter() - began
    distinct = len({pair.explicit.utterances for pair in pairs})
    shared, largest = SharedText(), 0.0
    for pair in pairs:
        largest = max(largest, shared.largest_share(pair.explicit))
        shared.add(pair.explicit)
    domains = Counter(pair.explicit.domain for pair in pairs)
    families = Counter(pair.explicit.family for pair in pairs)
    again = generate_pairs(GrammarSettings(20)) == pairs[:20]
    print(f"generated {len(pairs)} pairs in {generated_s:.1f} s (ceiling {CEILING_S:.0f} s)")
    print(f"validated again from JSON in {validated_s:.1f} s: {faults} faults")
    print(f"{distinct} distinct; largest share of text with one earlier script {largest:.0%} (limit "
          f"{settings.max_shared_text:.0%}); first 20 of a smaller draw equal: {again}")  # fmt: skip
    print(f"{len(domains)} domains with {min(domains.values())} to {max(domains.values())} pairs, "
          f"{len(families)} families with {min(families.values())} to {max(families.values())}")  # fmt: skip
    for row in composition(pairs).iter_rows(named=True):
        if row["condition"] == "explicit" and row["quantity"] in SHOWN:
            print(f"  {row['quantity']}: mean {row['mean']:.3f}, {row['min']:g} to {row['max']:g}")
    only_t = sum(len(pair.rewritten) == 1 for pair in pairs)
    print(f"  rewrites that changed only T: {only_t} (paper, of its own draw: 1,958)")
    kept = generated_s < CEILING_S and not faults and distinct == N_PAIRS and len(domains) >= 24 and again
    return int(not (kept and largest <= settings.max_shared_text))


if __name__ == "__main__":
    raise SystemExit(main())
