import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.multiparty.grammar import SIZES, GrammarError, GrammarSettings, generate_pairs
from duplex_bench.multiparty.grammar.lexicon import domains, phrases
from duplex_bench.multiparty.grammar.overlap import SharedText, sequences
from duplex_bench.multiparty.grammar.tasks import FAMILIES
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.multiparty.spoken import cardinal, clock
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.text.normalise import normalise

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def paper_pairs() -> list[Pair]:
    return generate_pairs(GrammarSettings(500, seed=3))


@pytest.fixture(scope="module")
def demo_pairs() -> list[Pair]:
    return generate_pairs(GrammarSettings(120, seed=3, size=SIZES["demo"]))


def test_five_hundred_pairs_keep_every_rule(paper_pairs: list[Pair]) -> None:
    assert [fault for pair in paper_pairs for fault in pair_faults(pair)] == []
    assert len({pair.scenario_id for pair in paper_pairs}) == 500


def test_composition_is_the_papers(paper_pairs: list[Pair]) -> None:
    counts = Counter(turn.turn_type for pair in paper_pairs for turn in pair.explicit.utterances)
    per_script = {kind: count / 500 for kind, count in counts.items()}
    assert per_script["T"] == per_script["N4Q"] == per_script["N4R"] == 1
    assert per_script["N1"] == pytest.approx(2.35, abs=0.08)
    assert per_script["N3"] == pytest.approx(1.5, abs=0.1)
    assert per_script["N1"] + per_script["N2"] + per_script["N3"] == pytest.approx(10, abs=0.1)
    four = sum(pair.explicit.n_humans == 4 for pair in paper_pairs) / 500
    assert four == pytest.approx(0.5, abs=0.08)


def test_domains_and_families_take_turns(paper_pairs: list[Pair]) -> None:
    by_domain = Counter(pair.explicit.domain for pair in paper_pairs)
    by_family = Counter(pair.explicit.family for pair in paper_pairs)
    assert set(by_domain) == set(domains())
    assert set(by_family) == set(FAMILIES)
    assert max(by_domain.values()) - min(by_domain.values()) <= 1
    assert max(by_family.values()) - min(by_family.values()) <= 0.35 * 500 / len(FAMILIES)


def test_requests_stand_early_and_late(paper_pairs: list[Pair]) -> None:
    places = []
    for pair in paper_pairs:
        kinds = [turn.turn_type for turn in pair.explicit.utterances]
        places.append(kinds.index("T") / (len(kinds) - 1))
    assert sum(place < 0.35 for place in places) > 0.2 * len(places)
    assert sum(place > 0.65 for place in places) > 0.2 * len(places)


def test_rewrites_are_counted(paper_pairs: list[Pair]) -> None:
    for pair in paper_pairs:
        assert pair.rewritten == pair.differing
        assert pair.explicit.request.utterance_id in pair.rewritten
    revised = sum(len(pair.rewritten) > 1 for pair in paper_pairs)
    assert 1 <= revised <= 25  # 2.1 % of 500 are 10
    always = generate_pairs(GrammarSettings(30, revise_before_share=1.0))
    assert sum(len(pair.rewritten) == 2 for pair in always) > 10
    never = generate_pairs(GrammarSettings(30, revise_before_share=0.0))
    assert all(len(pair.rewritten) == 1 for pair in never)


def test_talk_is_natural(paper_pairs: list[Pair], demo_pairs: list[Pair]) -> None:
    for pair in paper_pairs + demo_pairs:
        turns = pair.explicit.utterances
        assert all(before.speaker != after.speaker for before, after in pairwise(turns))
        assert len({turn.text for turn in turns}) == len(turns)
        facts = {fact.utterance_id for fact in pair.explicit.derivation.facts}
        if pair.explicit.family != "who":
            assert len({turn.speaker for turn in turns if turn.utterance_id in facts}) >= 2
        assert all(turn.text[0].isupper() and turn.text[-1] in ".?!" for turn in turns)


def test_distractors_follow_what_they_refer_to() -> None:
    distractors = {line for words in phrases().families.values() for line in words.distract if "{" not in line}
    found = 0
    for pair in generate_pairs(GrammarSettings(60, families=("where", "contest", "who"))):
        turns = pair.explicit.utterances
        first = min(fact.utterance_id for fact in pair.explicit.derivation.facts)
        for turn in turns:
            if any(turn.text.endswith(line) or turn.text.startswith(line) for line in distractors):
                found += 1
                assert turn.utterance_id > first or pair.explicit.family == "who"
    assert found > 10


def test_demo_conversations_are_short(demo_pairs: list[Pair]) -> None:
    words = [sum(len(turn.text.split()) for turn in pair.explicit.utterances) for pair in demo_pairs]
    assert 70 < sum(words) / len(words) < 100  # about 35 s of speech at 150 words a minute


def test_no_two_scripts_share_more_than_stated(paper_pairs: list[Pair]) -> None:
    seen = SharedText()
    for pair in paper_pairs:
        assert seen.largest_share(pair.explicit) <= GrammarSettings(1).max_shared_text
        seen.add(pair.explicit)
    assert seen.largest_share(paper_pairs[7].explicit) == 1.0


def test_too_strict_a_limit_is_an_error() -> None:
    with pytest.raises(GrammarError, match="max_shared_text"):
        generate_pairs(GrammarSettings(400, max_shared_text=0.02, max_attempts=3))


def test_first_pairs_do_not_depend_on_the_number() -> None:
    few, many = generate_pairs(GrammarSettings(5, seed=9)), generate_pairs(GrammarSettings(25, seed=9))
    assert many[:5] == few
    assert generate_pairs(GrammarSettings(5, seed=10)) != few


def test_pairs_and_settings_are_plain_data() -> None:
    settings = GrammarSettings(2, size=SIZES["demo"])
    assert digest_value(settings) != digest_value(GrammarSettings(2))
    for pair in generate_pairs(settings):
        assert from_json(Pair, to_json(pair)) == pair


def test_same_pairs_in_another_process() -> None:
    code = (
        "from duplex_bench.multiparty.grammar import *; from duplex_bench.storage.digests import digest_value;"
        "print(digest_value(generate_pairs(GrammarSettings(12, seed=4))))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == digest_value(generate_pairs(GrammarSettings(12, seed=4)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_pairs": 0}, "at least one pair"),
        ({"n_pairs": 1, "domains": ("moon",)}, "unknown domain 'moon'"),
        ({"n_pairs": 1, "families": ("riddle",)}, "unknown family 'riddle'"),
        ({"n_pairs": 1, "four_humans_share": 1.5}, "share from 0 to 1"),
    ],
)
def test_settings_refuse_nonsense(settings: dict, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        GrammarSettings(**settings)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("domain", sorted(domains()))
def test_every_family_works_in_every_domain(domain: str, family: str) -> None:
    for pair in generate_pairs(GrammarSettings(3, seed=1, domains=(domain,), families=(family,), max_shared_text=1.0)):
        assert (pair.explicit.domain, pair.explicit.family) == (domain, family)


def test_lexicon_keeps_things_apart() -> None:
    assert set(phrases().families) == set(FAMILIES)
    texts = " ".join(json.dumps(domain.model_dump()) for domain in domains().values())
    assert "N1" not in texts
    for domain in domains().values():
        places = [place for thing in domain.objects for place in thing.places]
        assert len(set(places)) == len(places), f"{domain.id}: a place holds two objects"
        assert all(len(set(stock.places)) == len(stock.places) for stock in domain.stock)
        lines = list(domain.chatter + domain.mentions)
        assert len(set(lines)) == len(lines)
        assert all("Aria" in line for line in domain.mentions)


@given(st.integers(0, 999))
def test_cardinals_are_what_the_normaliser_reads(number: int) -> None:
    assert normalise(cardinal(number)) == str(number)


@settings(max_examples=50)
@given(st.integers(1, 12), st.integers(10, 59))
def test_clock_times_are_what_the_normaliser_reads(hour: int, minute: int) -> None:
    assert normalise(clock(hour * 60 + minute)) == normalise(f"{hour}:{minute:02d}")


def test_clock_edges() -> None:
    assert (clock(0), clock(605), clock(13 * 60), clock(12 * 60 + 30)) == (
        "twelve o'clock", "ten oh five", "one o'clock", "twelve thirty",
    )  # fmt: skip
    with pytest.raises(ValueError, match="one day"):
        clock(1440)
    with pytest.raises(ValueError, match="outside 0 to 999"):
        cardinal(1000)


def test_sequences_do_not_cross_turns(paper_pairs: list[Pair]) -> None:
    script = paper_pairs[0].explicit
    longest = max(len(turn.text.split()) for turn in script.utterances)
    assert 0 < len(sequences(script)) <= len(script.utterances) * longest
