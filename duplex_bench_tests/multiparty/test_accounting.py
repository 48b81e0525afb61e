from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.multiparty.accounting import account, clip_key, composition, distinct_clips, duration_statistics
from duplex_bench.multiparty.cards import CARDS, as_markdown
from duplex_bench.multiparty.grammar import GrammarSettings, generate_pairs
from duplex_bench.multiparty.scenes import SceneLayout, build_scene
from duplex_bench.multiparty.scoring import METRICS_OF_KIND
from duplex_bench.multiparty.scripts import Pair

pytestmark = pytest.mark.unit
RATE_HZ = 24_000


def test_one_pair_by_hand(pair: Pair, layout: SceneLayout) -> None:
    lengths = dict.fromkeys(distinct_clips([pair]), 2 * RATE_HZ)
    totals = account([pair], lengths, layout)
    assert (totals.n_pairs, totals.n_conversations) == (1, 2)
    assert (totals.rewrite_changed_only_t, totals.differ_only_in_t, totals.same_gold_answer) == (1, 1, 1)
    assert (totals.n_clips_played, totals.n_distinct_clips, totals.n_clips_shared_in_pair) == (18, 10, 8)
    # Nine clips of 2 s, six gaps of 0.5 s, 5 s after T and 3 s after N4Q, twice.
    assert totals.hours_played * 3600 == pytest.approx(2 * (18 + 3 + 5 + 3))
    assert totals.hours_distinct_clips * 3600 == pytest.approx(20)


def test_a_revised_turn_before_t_counts(pair: Pair, layout: SceneLayout) -> None:
    turns = list(pair.implicit.utterances)
    turns[1] = replace(turns[1], text=turns[1].text + " I lost count.")
    revised = replace(pair, implicit=replace(pair.implicit, utterances=tuple(turns)), rewritten=("u02", "u03"))
    lengths = dict.fromkeys(distinct_clips([pair, revised]), RATE_HZ)
    totals = account([pair, revised], lengths, layout)
    assert (totals.rewrite_changed_only_t, totals.differ_only_in_t, totals.same_gold_answer) == (1, 1, 2)
    assert totals.n_distinct_clips == 11


def test_accounting_agrees_with_built_scenes(layout: SceneLayout) -> None:
    pairs = generate_pairs(GrammarSettings(2))
    rng = np.random.default_rng(1)
    clips = {key: rng.random(int(rng.integers(9000, 30000))).astype(np.float32) * 0.1 for key in distinct_clips(pairs)}
    built = 0
    for pair in pairs:
        for script in (pair.explicit, pair.implicit):
            own = {turn.utterance_id: clips[clip_key(turn)] for turn in script.utterances}
            scene = build_scene(script, own, np.zeros(0, np.float32), layout)
            built += scene.turns[-1].stop_sample - scene.turns[0].start_sample
    lengths = {key: len(clip) for key, clip in clips.items()}
    assert account(pairs, lengths, layout).hours_played == pytest.approx(built / RATE_HZ / 3600)
    table = duration_statistics(pairs, lengths, layout)
    conversations = table.filter((table["what"] == "conversation") & table["group"].is_in(["explicit", "implicit"]))
    assert conversations["total_s"].sum() == pytest.approx(built / RATE_HZ)
    assert (table["min_s"] <= table["median_s"]).all()


def test_missing_length_names_script_and_turn(pair: Pair, layout: SceneLayout) -> None:
    with pytest.raises(ValueError, match="s1-explicit: the clip of u01 has no length"):
        account([pair], {}, layout)


def test_composition_adds_up(pair: Pair) -> None:
    table = composition([pair, pair])
    rows = {(row["condition"], row["quantity"]): row for row in table.to_dicts()}
    assert rows["explicit", "turns"]["mean"] == 9
    assert rows["implicit", "turns N2"]["mean"] == 4
    assert rows["explicit", "request position (0 first, 1 last)"]["mean"] == 0.25
    assert sum(rows["explicit", f"turns {kind}"]["mean"] for kind in ("T", "N1", "N2", "N3", "N4Q", "N4R")) == 9


def test_cards_are_the_metrics_and_the_page() -> None:
    assert {card.id for card in CARDS} == {metric for metrics in METRICS_OF_KIND.values() for metric in metrics}
    assert len({card.id for card in CARDS}) == len(CARDS)
    assert [card.id for card in CARDS if card.headline] == [
        "fresh_onset_response", "answer_accuracy", "silence_preservation", "answering_window_yield",
    ]  # fmt: skip
    page = Path(__file__).parents[2] / "docs" / "metrics-multiparty.md"
    assert page.read_text("utf-8") == as_markdown(), "write it anew: python -m duplex_bench.multiparty.docs"
