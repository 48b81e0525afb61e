"""Tables and figures of the conversation track on measurements written by hand: every number is counted on paper."""

import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from duplex_bench.conversation.cards import POINT_CARDS
from duplex_bench.records import tables as schemas
from duplex_bench.reporting.aggregate import AggregateSettings, statistics_table
from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.reporting.figures import draw_sketches
from duplex_bench.reporting.figures.conversation import conversation_sketches
from duplex_bench.reporting.figures.corpus import label_distributions, liveliness
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.conversation import conversation_tables
from duplex_bench.reporting.tables.conversation_pauses import by_tercile, pairs

pytestmark = pytest.mark.unit
SYSTEMS = (
    SystemInfo("quick", "Quick", card={"settings": "300 ms"}),
    SystemInfo("slow", "Slow"),
    SystemInfo("never-speak", "Never speak", reference=True),
)
N = 24


def item(number, condition):
    attributes = {"ranking": number / N, "pause_s": 0.6 + 0.1 * number} if condition == "pause" else {}
    return {
        "item_id": f"{condition}-{number:02d}", "track": "conversation", "cluster": f"c{number % 6}",
        "condition": condition, "protocol": condition, "stimulus_digest": f"{condition}{number}", "stimulus": "{}",
        "reference": json.dumps({"windows": [], "attributes": attributes}), "licence": "CC0", "language": "en",
        "live_s": 9.0,
    }  # fmt: skip


def measurement(system, about, metric, value):
    return {
        "measurement_id": f"{system}/{about['item_id']}/{metric}", "system": system, "item_id": about["item_id"],
        "rollout_key": f"{system}/{about['item_id']}", "window_id": about["condition"], "cluster": about["cluster"],
        "condition": about["condition"], "metric": metric, "metric_version": 1, "value": value,
        "reason": None if value is not None else "no audio came", "at_s": 1.0, "details": "{}",
    }  # fmt: skip


def rollout(system, about, outcome):
    return {
        "rollout_key": f"{system}/{about['item_id']}", "item_id": about["item_id"], "system": system,
        "stimulus_digest": about["stimulus_digest"], "repeat": 0, "outcome": outcome, "reason": "",
        "listener_audio": None, "sample_rate_hz": 24000, "timeline_s": 12.0, "input_s": 9.0, "events": None,
        "compute_s": 0.0, "wall_s": 0.0, "attempts": 1,
    }  # fmt: skip


@pytest.fixture(scope="module")
def track():
    """Quick takes pauses from 1.1 s on, slow from 2.1 s on; three turn ends of slow are lost, one has no audio."""
    items = [item(n, condition) for condition in ("pause", "turn_end") for n in range(N)]
    rows, rolled = [], []
    for system, takes_from in (("quick", 5), ("slow", 15), ("never-speak", N)):
        for n, about in enumerate(items):
            number = n % N
            lost = system == "slow" and about["condition"] == "turn_end" and number < 3
            silent = system == "slow" and about["condition"] == "turn_end" and number == 3
            rolled.append(rollout(system, about, "transport_error" if lost else "no_audio" if silent else "completed"))
            if about["condition"] == "pause":
                took = number >= takes_from
                rows.append(measurement(system, about, "pause_takeover", float(took)))
                rows.append(measurement(system, about, "pause_silent", float(not took)))
                rows.append(measurement(system, about, "takeover_latency", 0.5 if took else None))
                rows.append(measurement(system, about, "first_word_from_pause_end", -0.1 if took else None))
            elif not lost:
                speaks = system != "never-speak" and not silent
                rows.append(measurement(system, about, "at_cap", float(system == "quick" and number < 4)))
                rows.append(measurement(system, about, "no_words", float(not speaks)))
                rows.append(measurement(system, about, "response_rate", float(speaks)))
                latency = (number - 2) / 10 if speaks else None
                rows.append(measurement(system, about, "turn_end_latency", latency))
                rows.append(measurement(system, about, "duration_ratio", 2.0 if speaks else None))
    frame = pl.DataFrame(rows, schema=dict(schemas.MEASUREMENTS))
    found = statistics_table(frame, POINT_CARDS, track="conversation", settings=AggregateSettings(n_resamples=50))

    def empty(schema):
        return pl.DataFrame(schema=dict(schema))

    return TrackTables(
        track="conversation",
        items=pl.DataFrame(items, schema=dict(schemas.ITEMS)),
        rollouts=pl.DataFrame(rolled, schema=dict(schemas.ROLLOUTS)),
        activity=empty(schemas.ACTIVITY),
        words=empty(schemas.WORDS),
        judgements=empty(schemas.JUDGEMENTS),
        measurements=frame,
        statistics=found.statistics,
        comparisons=found.comparisons,
        cards=POINT_CARDS,
        analysis=MultipartyAnalysis(n_resamples=50),
    )


@pytest.fixture(scope="module")
def tables(track):
    return {table.id: table.frame for table in conversation_tables(track, SYSTEMS)}


def row_of(frame, **values):
    return frame.row(by_predicate=pl.all_horizontal(*(pl.col(k) == v for k, v in values.items())), named=True)


def test_main_results_hold_both_kinds_of_point_and_no_value_is_made_up(tables):
    quick = row_of(tables["conversation-main-results"], system="quick")
    assert quick["n_pause"] == quick["n_turn_end"] == N
    assert quick["takeover"] == pytest.approx(19 / 24)
    assert quick["still_speaking_at_cap"] == pytest.approx(4 / 24)
    assert quick["cosine"] is None
    never = row_of(tables["conversation-main-results"], system="never-speak")
    assert never["takeover"] == 0.0
    assert never["turn_end_latency_s"] is None


def test_every_value_of_the_main_results_has_its_interval(tables):
    main, told = tables["conversation-main-results"], tables["conversation-intervals"]
    known = {(row["system"], row["title"]): row["estimate"] for row in told.iter_rows(named=True)}
    assert known["slow", "Took the floor in the pause"] == row_of(main, system="slow")["takeover"]
    shown = told.filter(pl.col("estimate").is_not_null())
    assert shown.filter(pl.col("low") > pl.col("estimate")).height == 0


def test_takeovers_by_length_are_those_of_the_pauses_in_the_bin(tables):
    frame = tables["conversation-takeover-by-length"]
    longest = row_of(frame, system="quick", pause="1.5 to 2.5 s")
    assert (longest["n"], longest["takeovers"], longest["rate"]) == (10, 10, 1.0)
    short = row_of(frame, system="quick", pause="under 0.8 s")
    assert (short["n"], short["rate"], short["reason"]) == (2, None, "2 pauses, at least 10 wanted")
    assert frame.group_by("system").agg(pl.col("n").sum())["n"].to_list() == [N] * 3


def test_terciles_hold_all_pauses_in_order_of_ranking(tables):
    thirds = tables["conversation-takeover-by-ranking"].filter(pl.col("system") == "quick")
    assert thirds["n"].to_list() == [8, 8, 8]
    assert thirds["takeovers"].to_list() == [3, 8, 8]
    assert thirds["to"].to_list()[:-1] < thirds["from"].to_list()[1:]


def test_a_third_holds_the_same_points_for_a_system_that_lost_some(track):
    """Without its first eight pauses a system has none in the lowest third, and keeps its other two."""
    lost = track.items.filter(pl.col("condition") == "pause").sort("item_id")["item_id"][:8].to_list()
    gone = (pl.col("system") == "slow") & pl.col("item_id").is_in(lost)
    fewer = dataclasses.replace(track, measurements=track.measurements.filter(~gone))
    thirds = by_tercile(fewer).frame
    assert thirds.filter(system="slow")["n"].to_list() == [0, 8, 8]
    for name in ("from", "to"):
        assert thirds.filter(system="slow")[name].to_list() == thirds.filter(system="quick")[name].to_list()


def test_pairs_count_each_shared_pause_once_and_leave_policies_out(tables):
    (pair,) = tables["conversation-takeover-pairs"].iter_rows(named=True)
    assert (pair["system_a"], pair["system_b"]) == ("quick", "slow")
    assert (pair["both"], pair["only_a"], pair["only_b"], pair["neither"]) == (9, 10, 0, 5)
    assert pair["p_mcnemar"] == pytest.approx(2 / 2**10)


def test_exceptional_outcomes_add_up_to_what_ended_so(tables):
    slow = row_of(tables["conversation-exceptional"], system="slow")
    assert (slow["turn_end_rollouts"], slow["turn_end_errors"], slow["turn_end_no_audio"]) == (N, 3, 1)
    assert (slow["turn_end_no_words"], slow["turn_end_censored"]) == (1, 0)
    assert slow["recall_rollouts"] == 0
    assert slow["recall_errors"] is None


def test_distributions_tell_how_many_were_already_speaking(tables):
    quick = row_of(tables["conversation-distributions"], system="quick", metric="turn_end_latency")
    assert (quick["n"], quick["least"]) == (N, -0.2)
    assert quick["at_or_below_0"] == pytest.approx(3 / 24)


def test_cards_are_those_of_systems_that_ran(tables):
    assert tables["conversation-system-cards"]["settings"].to_list() == ["300 ms", None, None]


def test_figures_are_drawn_where_there_are_values(track):
    sketched = conversation_sketches(track, SYSTEMS)
    assert {one.id for one in sketched} == {
        "conversation-first-words", "conversation-takeover-and-response", "conversation-turn-end-distributions",
        "conversation-turn-end-quartiles",
    }  # fmt: skip
    assert all(one.svg.startswith(b"<?xml") for one in draw_sketches(sketched))


def test_a_corpus_of_one_conversation_has_no_selection_to_draw():
    one = np.array([0.5])
    assert liveliness(one, one, one > 0, 0.75) is None
    assert label_distributions({"turn": np.zeros(0)}, np.zeros(0)) is None


def test_corpus_figures_say_how_many_are_kept():
    scores, kept = np.linspace(0.1, 0.9, 9), np.linspace(0.1, 0.9, 9) >= 0.75
    figure = liveliness(scores, 400 + 100 * scores, kept, 0.75)
    assert "n = 9 conversations, 2 kept" in figure.caption
    lengths = label_distributions(
        {"turn": np.array([1.0, 2.0, 0.0]), "pause": np.array([0.6, 1.0])}, np.array([-1, 1.0])
    )
    assert len(draw_sketches([figure, lengths])) == 2


def test_the_papers_pair_of_endpointers_is_counted_as_it_counts(track):
    """P2 App. E: on the 296 shared pauses 32 taken at both settings, 46 at 300 ms only, 18 at 500 ms only, 200 at none;
    each setting has pauses of its own besides, which count for nothing.
    """
    about = [item(n, "pause") for n in range(300)]
    taken = {"300ms": {*range(32), *range(32, 78), 296, 297}, "500ms": {*range(32), *range(78, 96), 298, 299}}
    rows = [
        measurement(system, about[n], "pause_takeover", float(n in taken[system]))
        for system, own in (("300ms", (296, 297)), ("500ms", (298, 299)))
        for n in (*range(296), *own)
    ]
    found = pairs(
        dataclasses.replace(
            track,
            items=pl.DataFrame(about, schema=dict(schemas.ITEMS)),
            measurements=pl.DataFrame(rows, schema=dict(schemas.MEASUREMENTS)),
        )
    )
    (pair,) = found.frame.iter_rows(named=True)
    counted = tuple(pair[name] for name in ("n_shared", "both", "only_a", "only_b", "neither"))
    assert counted == (296, 32, 46, 18, 200)
