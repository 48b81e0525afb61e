"""Types of system against the papers' findings, on planted measurements: agrees, disagrees, cannot tell, and why."""

import dataclasses

import numpy as np
import polars as pl
import pytest

from duplex_bench.records.tables import MEASUREMENTS, ROLLOUTS
from duplex_bench.reporting.estimates import AggregateSettings
from duplex_bench.reporting.inputs import SCHEMAS, SystemInfo, TrackTables
from duplex_bench.reporting.public_filter import public_table
from duplex_bench.reporting.system_types import types_section
from duplex_bench.reporting.system_types.claims import CLAIMS
from duplex_bench.reporting.system_types.estimates import TypeStatistics
from duplex_bench.stages.scoring import metric_cards
from duplex_bench.statistics import wilson_interval

pytestmark = pytest.mark.unit

DUPLEX = tuple(SystemInfo(f"duplex-{n}", f"Duplex {n}", type="full_duplex") for n in range(5))
WAITING = tuple(SystemInfo(f"waiting-{n}", f"Waiting {n}", type="endpointer") for n in range(5))
NEVER = SystemInfo("never-speak", "Never speaks", reference=True)
SYSTEMS = (*DUPLEX, *WAITING, NEVER)


def planted(track, values, systems=SYSTEMS, n_clusters=12, per_cluster=4, resamples=300):
    """``values``: by metric a function of system, place among its type, window, generator and condition."""
    rows = []
    conditions = ("explicit", "implicit") if track == "multiparty" else ("pause",)
    for metric, value in values.items():
        for one in systems:
            place = int(one.name[-1]) if one.name[-1].isdigit() else 0
            generator = np.random.default_rng([place, len(metric), len(one.name)])
            for cluster in range(n_clusters):
                for window in range(per_cluster):
                    for condition in conditions:
                        scored = value(one, place, window, generator, condition)
                        rows.append({
                            "measurement_id": f"{metric}/{one.name}/{cluster}/{window}/{condition}", "system": one.name,
                            "item_id": f"i{cluster}-{window}-{condition}", "rollout_key": f"{one.name}-{cluster}",
                            "window_id": "w", "cluster": f"c{cluster:02d}", "condition": condition, "metric": metric,
                            "metric_version": 1, "value": scored, "reason": None if scored is not None else "none",
                            "at_s": 0.0, "details": None,
                        })  # fmt: skip
    frames = {name: pl.DataFrame(schema=dict(schema)) for name, schema in SCHEMAS.items()}
    frames["measurements"] = pl.DataFrame(rows, schema=dict(MEASUREMENTS))
    ran = [{"rollout_key": one.name, "system": one.name} for one in systems]
    frames["rollouts"] = pl.concat([frames["rollouts"], pl.DataFrame(ran)], how="diagonal").select(list(ROLLOUTS))
    return TrackTables(
        track=track, cards=metric_cards(track), aggregation=AggregateSettings(n_resamples=resamples), **frames
    )


def answered(tables, systems=SYSTEMS):
    return {one.claim.id: one for one in types_section(tables, systems).answers}


def chance(duplex, waiting):
    """A rate with these odds for the two types."""
    return lambda one, place, window, generator, condition: float(
        generator.random() < (duplex if one.type == "full_duplex" else waiting)
    )


def test_what_was_planted_as_in_the_paper_agrees_and_says_the_numbers():
    found = answered(planted("conversation", {"pause_silent": chance(0.4, 0.02)}))["silent"]
    assert found.agreement == "agrees"
    assert found.estimate.value == pytest.approx(0.38, abs=0.08)
    assert found.estimate.low > 0.2
    assert found.estimate.p < 0.01
    assert "Here full-duplex systems keep silent at more pauses." in found.sentence
    assert f"difference +{found.estimate.value:.2f}" in found.sentence


def test_a_type_that_never_varies_has_the_width_that_its_conversations_leave():
    """Full-duplex systems always silent, the others never: with six conversations that is not certain."""
    tables = planted("conversation", {"pause_silent": lambda one, *_: float(one.type == "full_duplex")}, n_clusters=6)
    found = answered(tables)["silent"].estimate
    share = wilson_interval(0, 6).high
    assert (found.value, found.low, found.high) == pytest.approx((1, 1 - 2 * share, 1))


def test_the_opposite_disagrees_and_says_what_holds_instead():
    found = answered(planted("conversation", {"pause_silent": chance(0.02, 0.4)}))["silent"]
    assert found.agreement == "disagrees"
    assert "Here endpointer-dependent systems keep silent at more pauses." in found.sentence


def test_no_difference_cannot_be_told_and_says_which_way_it_points():
    found = answered(planted("conversation", {"pause_silent": chance(0.3, 0.3)}))["silent"]
    assert found.agreement == "cannot tell"
    assert found.estimate.low < 0 < found.estimate.high
    assert "may be chance" in found.sentence
    way = "the papers' way" if found.estimate.value > 0 else "the other way"
    assert way in found.sentence


def test_five_conversations_cannot_tell_whatever_they_show():
    found = answered(planted("conversation", {"pause_silent": chance(1.0, 0.0)}, n_clusters=5))["silent"]
    assert found.estimate.value == 1.0
    assert found.agreement == "cannot tell"
    assert "with 5 conversations no test can tell" in found.sentence


def test_six_conversations_tell_one_finding_but_not_beside_others():
    tables = planted("conversation", {"pause_silent": chance(1.0, 0.0), "no_words": chance(1.0, 0.0)}, n_clusters=6)
    found = answered(tables)["silent"]
    assert found.agreement == "agrees"
    assert found.estimate.p == pytest.approx(2 / 64)
    assert found.p_corrected == pytest.approx(4 / 64)
    assert "beside the other findings not (corrected p 0.062)" in found.sentence


def test_without_a_type_or_a_measure_it_says_so():
    tables = planted("conversation", {"pause_silent": chance(0.4, 0.0)}, systems=(*WAITING, NEVER))
    found = answered(tables, (*WAITING, NEVER))
    assert found["silent"].agreement == "cannot tell"
    assert found["silent"].sentence == "Cannot be told: this run has no full-duplex system."
    assert "did not measure it (Recall, judged)" in answered(planted("conversation", {}))["recall"].sentence


def test_where_no_system_has_a_type_there_is_no_section():
    assert types_section(planted("conversation", {"pause_silent": chance(1, 1)}, (NEVER,)), (NEVER,)) is None


def test_two_measures_on_the_same_pauses_are_compared_within_a_type():
    values = {"pause_after": chance(0.5, 0.8), "pause_takeover": chance(0.5, 0.1)}
    assert answered(planted("conversation", values))["late"].agreement == "agrees"
    values = {"pause_after": chance(0.5, 0.1), "pause_takeover": chance(0.5, 0.8)}
    assert answered(planted("conversation", values))["late"].agreement == "disagrees"


@pytest.mark.parametrize(("slope", "agreement"), [(-0.18, "agrees"), (0.18, "disagrees"), (0.0, "cannot tell")])
def test_later_starts_and_fewer_takeovers_are_a_rank_correlation_over_systems(slope, agreement):
    values = {
        "first_word_from_pause_start": lambda one, place, window, generator, condition: (
            0.5 * place + generator.random()
        ),
        "pause_takeover": lambda one, place, window, generator, condition: float(
            generator.random() < 0.5 + slope * (place - 2)
        ),
    }
    assert answered(planted("conversation", values, per_cluster=8))["latency-decides"].agreement == agreement


def test_three_systems_have_too_few_orders_for_a_correlation():
    few = (*DUPLEX, *WAITING[:3])
    values = {"first_word_from_pause_start": lambda one, place, *_: float(place), "pause_takeover": chance(0.5, 0.5)}
    found = answered(planted("conversation", values, few), few)["latency-decides"]
    assert "it needs 4 such systems with both measured, and there are 3" in found.sentence


@pytest.mark.parametrize(("middle", "agreement"), [(3.0, "agrees"), (0.4, "disagrees"), (1.0, "cannot tell")])
def test_talking_longer_than_the_person_is_against_a_ratio_of_one(middle, agreement):
    values = {"duration_ratio": lambda one, place, window, generator, condition: middle * generator.lognormal(0, 0.3)}
    found = answered(planted("conversation", values))
    assert found["longer-hosted"].agreement == found["longer-duplex"].agreement == agreement


def test_addressing_agrees_within_the_margin_disagrees_beyond_it_and_else_cannot_tell():
    def odds(explicit, implicit):
        return lambda one, place, window, generator, condition: float(
            generator.random() < (explicit if condition == "explicit" else implicit)
        )

    def agreement(values, n):
        tables = planted("multiparty", {"response_presence": values}, n_clusters=n)
        return answered(tables)["addressing"].agreement

    assert agreement(odds(0.9, 0.9), 60) == "agrees"
    assert agreement(odds(0.9, 0.3), 20) == "disagrees"
    assert agreement(odds(0.5, 0.5), 6) == "cannot tell"
    # Never a difference: six scenarios do not show that there is none, two hundred do.
    assert agreement(odds(1.0, 1.0), 6) == "cannot tell"
    assert agreement(odds(1.0, 1.0), 200) == "agrees"


def test_every_system_counts_alike_however_many_windows_it_has():
    def value(one, place, window, generator, condition):
        return None if place and window else float(place == 0)

    tables = planted("conversation", {"pause_silent": value})
    estimate = TypeStatistics(tables, SYSTEMS).of_type("pause_silent", "full_duplex")
    assert estimate.value == pytest.approx(1 / 5)
    assert (estimate.n_systems, estimate.n, estimate.n_clusters) == (5, 12 * (4 + 4), 12)


def test_references_and_missing_scores_are_no_part_of_a_type():
    tables = planted("conversation", {"pause_silent": lambda one, *_: None if one.type == "endpointer" else 1.0})
    statistics = TypeStatistics(tables, SYSTEMS)
    assert statistics.of_type("pause_silent", "endpointer").value is None
    sure = statistics.of_type("pause_silent", "full_duplex")
    assert (sure.value, sure.high) == (1.0, 1.0)
    # Every window alike: Wilson over conversations, not certainty.
    assert 0.7 < sure.low < 0.8


def test_stand_ins_are_said_to_stand_for_nothing_but_themselves():
    duplex = [dataclasses.replace(one, stands_in_for="a model") for one in DUPLEX]
    systems = (*duplex, dataclasses.replace(WAITING[0], stands_in_for="an API"), *WAITING[1:])
    caution = types_section(planted("conversation", {}, systems), systems).caution
    assert caution.startswith(
        "All full-duplex systems and 1 of the 5 endpointer-dependent systems stand in for others."
    )
    assert types_section(planted("conversation", {}), SYSTEMS).caution == ""


def test_the_same_tables_give_the_same_section():
    tables = planted("conversation", {"pause_silent": chance(0.4, 0.2), "pause_takeover": chance(0.1, 0.4)})
    shuffled = dataclasses.replace(tables, measurements=tables.measurements.sample(fraction=1.0, shuffle=True, seed=3))
    first, second = types_section(tables, SYSTEMS), types_section(shuffled, SYSTEMS)
    assert first.answers == second.answers
    assert first.compared == second.compared


def test_both_tables_hold_every_row_and_pass_the_public_filter_whole():
    section = types_section(planted("conversation", {"pause_silent": chance(0.4, 0.02)}), SYSTEMS)
    measures, findings = section.tables()
    assert measures.frame["system_type"].to_list() == [
        "full-duplex", "endpointer-dependent", "full-duplex minus endpointer-dependent",
    ]  # fmt: skip
    assert findings.frame.height == sum(claim.track == "conversation" for claim in CLAIMS)
    for table in (measures, findings):
        public = public_table(table)
        assert public.frame.columns == table.frame.columns
        assert "Left out" not in public.caption


def test_every_claim_is_about_metrics_that_the_track_has():
    for claim in CLAIMS:
        assert set(claim.metrics) <= {card.id for card in metric_cards(claim.track)}, claim.id
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
