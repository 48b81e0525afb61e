"""Takeovers predicted from pause lengths: what agrees, what may go either way, what is wrong."""

import polars as pl
import pytest

from duplex_bench.records import tables
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages import scoring
from duplex_bench.stages.items import items_frame
from duplex_bench.stages.prediction import pause_prediction, predicted_start_s
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

CARD = SystemCard(
    name="cascade",
    title="Cascade",
    family="full_duplex",
    adapter="somewhere:create",
    licence="none",
    settings={"endpointer": "silence", "silence_s": 0.3, "latency_s": 0.5},
)
SEMANTIC = CARD.model_copy(update={"name": "semantic", "settings": {"endpointer": "smart-turn"}})


def pause_item(name: str, pause_s: float) -> Item:
    live = AudioSlice(name, 0, 100, 24_000, name)
    window = Window("pause", "pause", 1.0, 1.0 + pause_s)
    return Item(
        name,
        "conversation",
        "c",
        "pause",
        Stimulus("pause", live),
        Reference((window,), attributes={"pause_s": pause_s}),
        "none",
    )


def tables_with(outcomes: dict[str, tuple[float, bool]]) -> TrackTables:
    """Pause length and whether it was taken, by item."""
    rows = [
        {
            **dict.fromkeys(tables.MEASUREMENTS, ""),
            "measurement_id": f"{name}-{metric}",
            "system": "cascade",
            "item_id": name,
            "metric": metric,
            "metric_version": 1,
            "value": value,
            "reason": None if value is not None else "not taken",
            "at_s": 1.0,
        }
        for name, (_, taken) in outcomes.items()
        for metric, value in (("pause_takeover", float(taken)), ("takeover_latency", 0.8 if taken else None))
    ]
    empty = {
        name: pl.DataFrame(schema=dict(schema))
        for name, schema in (
            ("rollouts", tables.ROLLOUTS), ("activity", tables.ACTIVITY), ("words", tables.WORDS),
            ("judgements", tables.JUDGEMENTS), ("statistics", tables.STATISTICS), ("comparisons", tables.COMPARISONS),
        )
    }  # fmt: skip
    return TrackTables(
        track="conversation",
        items=items_frame([pause_item(name, pause_s) for name, (pause_s, _) in outcomes.items()]),
        measurements=pl.DataFrame(rows, schema=dict(tables.MEASUREMENTS)),
        cards=scoring.metric_cards("conversation"),
        **empty,
    )


def test_a_silence_endpointer_starts_after_its_silence_and_its_latency():
    assert predicted_start_s(CARD) == pytest.approx(0.8)
    assert predicted_start_s(SEMANTIC) is None


def test_a_hosted_protocol_in_memory_starts_after_its_silence_and_its_thinking():
    def served(**settings):
        return predicted_start_s(CARD.model_copy(update={"settings": settings}))

    assert served(protocol="openai-realtime", silence_ms=500) == pytest.approx(0.8)
    assert served(protocol="gemini-live", silence_ms=200, think_s=0.1) == pytest.approx(0.3)
    assert served(protocol="openai-realtime", detector="semantic_vad", eagerness="low") is None
    # A model's protocol decides by itself; a vendor's latency is not on its card.
    assert served(protocol="moshi") is None
    assert served(model="gpt-realtime", silence_ms=500) is None


def test_agreement_margin_and_disagreement_are_told_apart():
    outcomes = {
        "long, taken": (1.5, True),
        "short, held": (0.6, False),
        "just longer, held": (0.83, False),
        "long, held": (1.2, False),
        "short, taken": (0.65, True),
    }
    table = pause_prediction(tables_with(outcomes), [CARD, SEMANTIC])
    assert table is not None
    (row,) = table.frame.to_dicts()
    assert (row["n"], row["predicted"], row["observed"]) == (5, 3, 2)
    assert (row["agree"], row["within_margin"], row["disagree"]) == (2, 1, 2)
    assert row["median_start_s"] == pytest.approx(0.8)


def test_without_a_silence_endpointer_there_is_no_table():
    assert pause_prediction(tables_with({"a": (1.0, True)}), [SEMANTIC]) is None
