import time

import pytest

from duplex_bench.multiparty.grammar import GrammarSettings, generate_pairs
from duplex_bench.multiparty.validate import pair_faults

pytestmark = pytest.mark.slow


def test_two_thousand_valid_pairs_in_a_minute() -> None:
    began = time.perf_counter()
    pairs = generate_pairs(GrammarSettings(2000))
    assert time.perf_counter() - began < 60
    assert len({pair.explicit.utterances for pair in pairs}) == 2000
    assert not any(pair_faults(pair) for pair in pairs)
