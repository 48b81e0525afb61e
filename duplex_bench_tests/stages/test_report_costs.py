import dataclasses

import polars as pl
import pytest

from duplex_bench.records.tables import ROLLOUTS
from duplex_bench.stages.planning import COMPUTE_PER_AUDIO_S
from duplex_bench.stages.report_costs import of_systems, prices, spend
from duplex_bench.systems.card import SystemCard
from duplex_bench.textmodels.spend import SpentCall

pytestmark = pytest.mark.unit

CALL = SpentCall(role="judge", subject="a", model="openai/gpt-4o", call="1", input_tokens=100, output_tokens=10,
                 usd=0.002, reserved_usd=None)  # fmt: skip


@dataclasses.dataclass
class Track:
    track: str
    rollouts: pl.DataFrame


def card(**more):
    known = {"name": "a", "title": "A", "family": "full_duplex", "adapter": "m:f", "tracks": ["conversation"],
             "licence": "none"}  # fmt: skip
    return SystemCard.model_validate({**known, **more})


def rollouts(*rows):
    blank = dict.fromkeys(ROLLOUTS)
    return pl.DataFrame([{**blank, **row} for row in rows], schema=dict(ROLLOUTS))


def test_spend_is_summed_by_role_subject_and_model_and_an_unknown_price_is_no_zero():
    calls = [CALL, dataclasses.replace(CALL, call="2", usd=0.003), dataclasses.replace(CALL, subject="b", usd=None)]
    rows = spend(calls).frame.to_dicts()
    assert [(row["subject"], row["calls"], row["usd"], row["without_price"]) for row in rows] == [
        ("a", 2, pytest.approx(0.005), 0),
        ("b", 1, None, 1),
    ]
    silent = [dataclasses.replace(CALL, input_tokens=None, output_tokens=None)]
    told, untold = (spend(made).frame.row(0, named=True) for made in (calls + silent, silent))
    assert (told["input_tokens"], told["without_tokens"]) == (200, 1)
    assert (untold["input_tokens"], untold["output_tokens"], untold["without_tokens"]) == (None, None, 1)
    assert "0.0050 US dollars" in spend(calls).caption
    assert "No paid call" in spend([]).caption
    assert "none of known price" in spend(calls[2:]).caption


def test_actual_machine_time_stands_beside_what_plan_gives_for_as_much_audio():
    made = rollouts(
        {"system": "a", "timeline_s": 40.0, "compute_s": 10.0, "wall_s": 12.0},
        {"system": "a", "timeline_s": 20.0, "compute_s": 5.0, "wall_s": None},
    )
    row = of_systems([Track("conversation", made)], {"a": card()}, []).frame.row(0, named=True)
    low, high = COMPUTE_PER_AUDIO_S["full_duplex"]
    assert (row["rollouts"], row["audio_minutes"], row["compute_s"], row["wall_s"]) == (2, 1.0, 15.0, 12.0)
    assert (row["compute_low_s"], row["compute_high_s"]) == (low * 60, high * 60)
    assert row["realtime_factor"] == pytest.approx(0.25)
    assert row["usd_low"] is None


def test_a_vendors_sessions_have_a_range_of_dollars_and_an_unknown_model_none():
    made = rollouts({"system": "a", "timeline_s": 60.0, "compute_s": 1.0})
    hosted = card(family="hosted", provider="openai", model_id="gpt-realtime")
    row = of_systems([Track("conversation", made)], {"a": hosted}, []).frame.row(0, named=True)
    assert 0 < row["usd_low"] < row["usd_high"]
    unknown = card(family="hosted", provider="openai", model_id="nobody-knows")
    assert of_systems([Track("conversation", made)], {"a": unknown}, []).frame["usd_low"].item() is None
    assert "nobody-knows" in prices([], [unknown]).caption


def test_prices_say_when_they_were_read_and_where():
    frame = prices([dataclasses.replace(CALL, model="gpt-realtime")], []).frame
    assert frame["read_on"].null_count() == frame["source"].null_count() == 0
    assert frame.filter(pl.col("used"))["model"].to_list() == ["gpt-realtime, gpt-realtime-1.5"]
