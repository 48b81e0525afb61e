"""What of PersonaPlex's adapter needs no model: heads of a checkpoint, settings, the persona's tags."""

import numpy as np
import pytest

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.systems.adapters.mimi_models.checkpoint import CheckpointError
from duplex_bench.systems.adapters.mimi_models.personaplex import PersonaPlexSettings, create, wrapped
from duplex_bench.systems.adapters.mimi_models.personaplex_checkpoint import first_heads
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

JOINED = "depformer.layers.0.self_attn.in_proj_weight"


class Rows(np.ndarray):
    """As much of a tensor as is asked for."""

    clone = np.ndarray.copy


def rows(n):
    return np.arange(n * 2.0).reshape(n, 2).view(Rows)


def test_the_first_eight_heads_stay_and_what_belongs_to_none():
    stems = ("linears", "depformer_in", "depformer.layers.2.gating", "depformer.layers.1.self_attn.out_projs")
    state = {f"{stem}.{head}.weight": head for head in range(16) for stem in stems}
    state |= {f"depformer_emb.{number}.weight": number for number in range(15)}
    whole = {
        "linears_of_another.12.weight": 0,
        "transformer.layers.12.gating.linear_in.weight": 1,
        "emb.15.weight": 2,
        "transformer.layers.0.self_attn.in_proj_weight": 3,
        "depformer_text_emb.weight": 4,
    }
    kept = first_heads({**state, **whole}, {})
    assert whole.items() <= kept.items()
    assert {value for name, value in kept.items() if name in state} == set(range(8))
    # Head k reads the code of head k - 1: seven embeddings serve eight heads.
    assert sum(name.startswith("depformer_emb") for name in kept) == 7
    assert sum(name.startswith("linears.") for name in kept) == 8


def test_joined_attention_is_cut_behind_the_eighth_head():
    assert np.array_equal(first_heads({JOINED: rows(48)}, {JOINED: 3})[JOINED], rows(24))
    # Weights that have only eight stay whole.
    assert np.array_equal(first_heads({JOINED: rows(24)}, {JOINED: 3})[JOINED], rows(24))
    for n in (47, 21):
        with pytest.raises(CheckpointError, match="no weights of PersonaPlex"):
            first_heads({JOINED: rows(n)}, {JOINED: 3})


def test_a_persona_stands_between_tags_once():
    assert wrapped(" You are Sam. ") == "<system> You are Sam. <system>"
    assert wrapped(wrapped("You are Sam.")) == wrapped("You are Sam.")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"\['model'\] are needed"),
        ({"model": "m", "warmth": 1}, "warmth"),
        ({"model": "m", "text_prompt": " "}, "text_prompt cannot be empty"),
        ({"model": "m", "history_limit_s": -1.0}, "history_limit_s"),
        ({"model": "m", "top_k": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        settings_from(PersonaPlexSettings, settings, "personaplex")


def test_a_missing_folder_of_voices_is_named_before_weights_are_loaded(monkeypatch, tmp_path):
    monkeypatch.delenv("DUPLEX_BENCH_PERSONAPLEX_VOICES", raising=False)
    with pytest.raises(ValueError, match="DUPLEX_BENCH_PERSONAPLEX_VOICES"):
        create({"model": str(tmp_path)})


def test_its_cards_share_moshis_environment_and_take_word_times():
    cards = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}
    for name in ("personaplex", "personaplex-tiny"):
        assert cards[name].environment.lock == cards["moshi"].environment.lock
        assert cards[name].word_times
        settings_from(PersonaPlexSettings, cards[name].settings, name)
    assert cards["personaplex-server"].driver == "realtime"
