"""Tables of the multiparty track on measurements written by hand, so that every number can be counted on paper."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.multiparty.cards import CARDS
from duplex_bench.records import tables as schemas
from duplex_bench.reporting.aggregate import AggregateSettings, statistics_table
from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.reporting.figures.multiparty import sketches
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.multiparty import multiparty_tables
from duplex_bench.reporting.tables.multiparty_pairs import addressing
from duplex_bench.reporting.tables.multiparty_windows import speech_in_silence, windows

pytestmark = pytest.mark.unit
THIRDS = ("earlier", "middle", "later")
SYSTEMS = (
    SystemInfo("good", "Good"),
    SystemInfo("bad", "Bad"),
    SystemInfo("never-speak", "Never speak", reference=True),
)


class Run:
    """Collects rows of a made-up run; each scenario has both forms."""

    def __init__(self, n_scenarios=9, acoustics=()):
        self.rows = []
        self.judged = []
        self.items = []
        for kind in ("clean", *acoustics):
            for n in range(n_scenarios):
                for form in ("explicit", "implicit"):
                    self._item(f"s{n}", form, kind, n, n_scenarios)

    def _item(self, scenario, form, kind, n, of):
        base = f"{scenario}-{form}"
        item = base if kind == "clean" else f"{base}~{kind}"
        reference = {
            "windows": [], "gold_answer": "seven", "human_reply": None, "transcript": [],
            "attributes": {"request_third": THIRDS[n * 3 // of], "request_time_s": 10.0 + n, "acoustics": kind,
                           "base_item": base, "addressing": form, "turn_types": ""},
        }  # fmt: skip
        self.items.append(
            {"item_id": item, "track": "multiparty", "cluster": scenario,
             "condition": form if kind == "clean" else f"{kind} {form}", "protocol": "multiparty",
             "stimulus_digest": item, "stimulus": "{}", "reference": json.dumps(reference), "licence": "CC0",
             "language": "en", "live_s": 40.0}
        )  # fmt: skip

    def score(self, system, item, window, metric, value, reason=None, **details):
        about = next(row for row in self.items if row["item_id"] == item)
        self.rows.append(
            {"measurement_id": f"{system}/{item}/{window}/{metric}", "system": system, "item_id": item,
             "rollout_key": f"{system}/{item}", "window_id": window, "cluster": about["cluster"],
             "condition": about["condition"], "metric": metric, "metric_version": 1, "value": value,
             "reason": reason, "at_s": 3.0, "details": json.dumps(details)}
        )  # fmt: skip

    def request(self, system, item, *, present, correct=None, fresh=None, speech_s=1.0, answer="seven"):
        details = {"turn_type": "T", "addressee": "assistant", "speech_in_window_s": speech_s if present else 0.0,
                   "answer": answer if present else "", "gold": "seven"}  # fmt: skip
        fresh = present if fresh is None else fresh
        self.score(system, item, "T", "response_presence", float(present), **details)
        self.score(system, item, "T", "fresh_onset_response", float(fresh), **details)
        value = float(correct) if present else None
        self.score(system, item, "T", "answer_accuracy", value, None if present else "no response in the window",
                   **details)  # fmt: skip

    def silence(self, system, item, window, turn_type, value, *, speech_s=0.0, wordless=False, text="", to="group"):
        reason = None if value is not None else "no verdict: undecided"
        self.score(system, item, window, "silence_preservation", value, reason, turn_type=turn_type, addressee=to,
                   speech_in_window_s=speech_s, wordless=wordless, text=text, carried_over=False)  # fmt: skip

    def event(self, system, item, outcome):
        eligible = not outcome.startswith("not_eligible")
        value = float(outcome == "stopped") if eligible else None
        details = {"turn_type": "N4Q", "addressee": "assistant", "outcome": outcome, "eligible": eligible,
                   "stop_latency_s": 0.5 if outcome == "stopped" else None}  # fmt: skip
        self.score(system, item, "Q", "answering_window_yield", value, None if eligible else "not eligible", **details)

    def tables(self, **analysis):
        measurements = pl.DataFrame(self.rows, schema=dict(schemas.MEASUREMENTS))
        found = statistics_table(
            measurements, CARDS, track="multiparty", settings=AggregateSettings(n_resamples=200, n_permutations=400)
        )
        empty = {name: pl.DataFrame(schema=dict(getattr(schemas, name.upper()))) for name in
                 ("rollouts", "activity", "words")}  # fmt: skip
        return TrackTables(
            track="multiparty",
            items=pl.DataFrame(self.items, schema=dict(schemas.ITEMS)),
            judgements=pl.DataFrame(self.judged, schema=dict(schemas.JUDGEMENTS)),
            measurements=measurements,
            statistics=found.statistics,
            comparisons=found.comparisons,
            cards=CARDS,
            analysis=MultipartyAnalysis(n_resamples=400, **analysis),
            **empty,
        )

    def made(self, **analysis):
        found = multiparty_tables(self.tables(**analysis), SYSTEMS)
        return {table.id.removeprefix("multiparty-"): table.frame for table in found}


def clean_items(run, form):
    return [row["item_id"] for row in run.items if row["condition"] == form]


def test_turn_types_and_addressees_count_their_own_windows():
    run = Run(2)
    for item in clean_items(run, "explicit"):
        run.silence("good", item, "a", "N1", 1.0, to="B")
        run.silence("good", item, "b", "N1", 0.0, speech_s=1.0, text="sure", to="B")
        run.silence("good", item, "c", "N2", 1.0, speech_s=0.3, text="mm")
    made = run.made()
    kinds = {row["turn_type"]: row for row in made["turn-types"].to_dicts()}
    assert (kinds["N1"]["n_windows"], kinds["N1"]["rate"], kinds["N1"]["with_speech"]) == (4, 0.5, 2)
    assert (kinds["N2"]["n_windows"], kinds["N2"]["rate"], kinds["N2"]["with_speech"]) == (2, 1.0, 2)
    to = {row["addressed_to"]: row for row in made["addressees"].to_dicts()}
    assert (to["another human"]["n_failed"], to["another human"]["n_scored"]) == (2, 4)
    assert to["everybody"]["n_failed"] == 0


def test_what_filled_silence_adds_up_and_the_alternative_moves_only_wordless_windows():
    run = Run(1)
    item = clean_items(run, "explicit")[0]
    for n, (value, kind) in enumerate(
        [(1.0, {}), (1.0, {"speech_s": 0.3, "text": "mm"}), (0.0, {"speech_s": 2.0, "text": "the answer"}),
         (0.0, {"speech_s": 1.0, "wordless": True}), (None, {"speech_s": 1.0, "text": "so it is"})]
    ):  # fmt: skip
        run.silence("good", item, f"w{n}", "N2", value, **kind)
    row = run.made()["speech-in-silence"].row(0, named=True)
    parts = [row[name] for name in ("silent", "acknowledgement", "intrusion", "wordless", "undecided", "not_measured")]
    assert parts == [1, 1, 1, 1, 1, 0]
    assert sum(parts) == row["n_windows"]
    assert row["rate"] == pytest.approx(2 / 4)
    assert row["if_wordless_passed"] == pytest.approx(3 / 4)
    assert (row["worst"], row["best"]) == (pytest.approx(2 / 5), pytest.approx(3 / 5))
    assert row["undecided_share"] == pytest.approx(1 / 4)


def test_stopping_outcomes_add_up_to_eligible_and_one_event_has_no_rate():
    run = Run(4)
    items = clean_items(run, "explicit")
    outcomes = ["stopped", "resumed", "speaking_through_deadline", "not_eligible_no_onset_in_window"]
    for item, outcome in zip(items, outcomes, strict=True):
        run.event("good", item, outcome)
        run.event("bad", item, "stopped" if item == items[0] else "not_eligible_active_at_question_end")
    rows = {row["system"]: row for row in run.made()["stopping"].to_dicts()}
    good = rows["good"]
    assert good["eligible"] == good["stopped"] + good["speaking_through_deadline"] + good["resumed"] == 3
    assert good["yield_rate"] == pytest.approx(1 / 3)
    assert good["no_onset_in_window"] == 1
    assert (rows["bad"]["eligible"], rows["bad"]["yield_rate"]) == (1, None)


def test_accuracy_is_conditional_and_prints_its_coverage():
    run = Run(4)
    for n, item in enumerate(clean_items(run, "explicit")):
        run.request("good", item, present=n < 2, correct=n == 0)
    row = run.made()["accuracy"].row(0, named=True)
    assert (row["n_requests"], row["n_responses"], row["n_correct"], row["n_judged"]) == (4, 2, 1, 2)
    assert row["accuracy"] == 0.5
    assert row["correct_of_requests"] == 0.25


def test_request_thirds_are_in_order_and_hold_every_request():
    run = Run(6)
    for n, item in enumerate(clean_items(run, "explicit")):
        run.request("good", item, present=n < 2, correct=True)
    rows = run.made()["request-thirds"].to_dicts()
    assert [row["third"] for row in rows] == list(THIRDS)
    assert [row["response_presence"] for row in rows] == [1.0, 0.0, 0.0]
    assert sum(row["n_requests"] for row in rows) == 6
    assert (rows[0]["from_s"], rows[-1]["to_s"]) == (10.0, 15.0)


def test_short_speech_counts_as_none_from_its_minimum_on():
    run = Run(1)
    item = clean_items(run, "explicit")[0]
    run.request("good", item, present=True, correct=True, speech_s=0.2)
    run.silence("good", item, "w", "N2", 0.0, speech_s=0.2, text="yes")
    run.silence("good", item, "v", "N2", None, speech_s=0.2, text="so it is")
    rows = {
        row["minimum_speech_s"]: row for row in run.made(minimum_speech_s=(0.0, 0.2, 0.3))["minimum-speech"].to_dicts()
    }
    assert [rows[s]["response_presence"] for s in (0.0, 0.2, 0.3)] == [1.0, 1.0, 0.0]
    assert [rows[s]["silence_preservation"] for s in (0.0, 0.2, 0.3)] == [0.0, 0.0, 1.0]
    assert [rows[s]["n_silence"] for s in (0.0, 0.2, 0.3)] == [1, 1, 2]


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from([0.0, 1.0])), min_size=1, max_size=12))
def test_silence_never_falls_as_the_minimum_rises(found):
    run = Run(1)
    item = clean_items(run, "explicit")[0]
    for n, (speech_s, value) in enumerate(found):
        run.silence("good", item, f"w{n}", "N2", value if speech_s > 0 else 1.0, speech_s=speech_s, text="words")
    rates = run.made()["minimum-speech"].sort("minimum_speech_s")["silence_preservation"].to_list()
    assert rates == sorted(rates)


def test_a_response_without_a_verdict_is_not_counted_as_wrong():
    """Four requests, three responses: right, wrong, and one that the judge could not be asked about."""
    run = Run(4)
    first, second, third, fourth = clean_items(run, "explicit")
    run.request("good", first, present=True, correct=True)
    run.request("good", second, present=True, correct=False)
    run.request("good", fourth, present=False)
    run.score("good", third, "T", "response_presence", 1.0, speech_in_window_s=1.0)
    run.score("good", third, "T", "fresh_onset_response", 1.0, speech_in_window_s=1.0)
    run.score("good", third, "T", "answer_accuracy", None, "not judged", answer="seven", gold="seven")
    (row,) = run.made()["accuracy"].to_dicts()
    assert (row["n_requests"], row["n_responses"], row["n_judged"], row["without_verdict"]) == (4, 3, 2, 1)
    assert row["accuracy"] == 0.5
    assert row["correct_of_requests"] == pytest.approx(1 / 3)


def test_one_number_has_one_interval_throughout_the_report():
    run = Run(12)
    for n, item in enumerate(clean_items(run, "explicit")):
        run.request("good", item, present=True, correct=n % 3 > 0)
        run.event("good", item, "stopped" if n % 4 else "resumed")
    tables = run.tables()
    made = {table.id.removeprefix("multiparty-"): table.frame for table in multiparty_tables(tables, SYSTEMS)}
    for name, metric in (("accuracy", "answer_accuracy"), ("stopping", "answering_window_yield")):
        stored = tables.statistics.filter(metric=metric, condition="explicit").select("low", "high").row(0)
        assert made[name].select("low", "high").row(0) == stored


def test_stop_latency_says_over_how_many_stops_it_is():
    run = Run(3)
    for item, outcome in zip(clean_items(run, "explicit"), ("stopped", "stopped", "resumed"), strict=True):
        run.event("good", item, outcome)
    (row,) = run.made()["stopping"].to_dicts()
    assert (row["eligible"], row["stops_seen"], row["stop_latency_s"]) == (3, 2, 0.5)


def test_references_have_no_rank():
    run = Run(1)
    item = clean_items(run, "explicit")[0]
    for system, value in (("good", 1.0), ("bad", 0.0), ("never-speak", 1.0)):
        run.silence(system, item, "w", "N2", value, speech_s=0.0 if value else 9.0, text="words")
    ranks = {row["system"]: row["silence_rank"] for row in run.made()["minimum-speech"].to_dicts()}
    assert ranks == {"good": 1, "bad": 2, "never-speak": None}


def addressed(explicit, implicit, n, system="good"):
    run = Run(n)
    for item, present in zip(clean_items(run, "explicit"), explicit, strict=True):
        run.request(system, item, present=present, correct=True)
    for item, present in zip(clean_items(run, "implicit"), implicit, strict=True):
        run.request(system, item, present=present, correct=True)
    rows = run.made()["addressing"].filter(pl.col("metric") == "response_presence")
    return rows.row(0, named=True)


def test_addressing_counts_discordant_scenarios():
    row = addressed([True, True, True, False], [True, False, False, True], 4)
    assert (row["n_pairs"], row["only_explicit"], row["only_implicit"]) == (4, 2, 1)
    assert row["difference"] == pytest.approx(0.25)
    assert row["conclusion"] == "undecided"


def test_no_discordant_scenario_is_no_proof_of_equality_when_there_are_few():
    few, many = addressed([True] * 12, [True] * 12, 12), addressed([True] * 80, [True] * 80, 80)
    assert few["conclusion"] == "undecided"
    assert few["p_equivalence"] == pytest.approx(0.95**12)
    assert many["conclusion"] == "equivalent within the margin"


def test_a_plain_difference_is_called_one():
    row = addressed([True] * 20, [False] * 20, 20)
    assert row["conclusion"] == "different"
    assert row["difference"] == 1.0


def discordant(only_a, only_b, both):
    """Two systems whose explicit answers differ on so many requests."""
    run = Run(only_a + only_b + both)
    for n, item in enumerate(clean_items(run, "explicit")):
        run.request("good", item, present=True, correct=n < only_a or n >= only_a + only_b)
        run.request("bad", item, present=True, correct=n >= only_a)
    found = run.made()["paper-comparable"].filter(pl.col("metric") == "answer_accuracy")
    return found.row(0, named=True)


@pytest.mark.parametrize(("only_a", "only_b", "p"), [(28, 2, 1.74e-5), (20, 5, 0.0815)])
def test_the_papers_corrected_tests_come_out_of_the_table(only_a, only_b, p):
    row = discordant(only_a, only_b, 3)
    assert {row["only_a"], row["only_b"]} == {only_a, only_b}
    assert row["n_common"] == only_a + only_b + 3
    assert row["p_corrected"] == pytest.approx(p, rel=5e-3)


def test_an_order_is_stated_only_where_every_pair_across_it_is_separable():
    run = Run(12)
    for item in clean_items(run, "explicit"):
        run.request("good", item, present=True, correct=True)
        run.request("bad", item, present=False)
        run.silence("good", item, "w", "N2", 1.0)
        run.silence("bad", item, "w", "N2", 1.0)
    rows = {row["metric"]: row for row in run.made()["orderings"].to_dicts()}
    assert rows["fresh_onset_response"]["statement"] == "good > bad"
    assert rows["fresh_onset_response"]["complete_order"] is True
    assert rows["silence_preservation"]["statement"] == "no order is supported"


def test_rank_correlation_over_condition_entries_leaves_policies_out():
    run = Run(4)
    rates = {"good": (4, 3), "bad": (2, 1), "never-speak": (0, 0)}
    for system, counts in rates.items():
        for form, count in zip(("explicit", "implicit"), counts, strict=True):
            for n, item in enumerate(clean_items(run, form)):
                run.request(system, item, present=n < count, fresh=n >= count, correct=True)
    rows = run.made()["rank-correlations"].filter(
        (pl.col("metric") == "response_presence") & (pl.col("other_metric") == "fresh_onset_response")
    )
    row = rows.row(0, named=True)
    assert row["n_entries"] == 4
    assert row["rho"] == pytest.approx(-1.0)


def test_acoustics_are_paired_window_by_window_and_never_pooled():
    run = Run(6, acoustics=("noise",))
    for form in ("explicit", "implicit"):
        for item in clean_items(run, form):
            run.request("good", item, present=True, correct=True)
            run.request("good", f"{item}~noise", present=item < "s3", correct=True)
    made = run.made()
    rows = made["acoustics"].filter((pl.col("metric") == "response_presence") & (pl.col("addressing") == "explicit"))
    row = rows.row(0, named=True)
    assert (row["n_pairs"], row["clean"], row["changed"], row["difference"]) == (6, 1.0, 0.5, -0.5)
    pooled = run.tables().statistics.filter((pl.col("condition") == "all") & (pl.col("metric") == "response_presence"))
    assert pooled["n_scored"].to_list() == [12]
    assert set(made["addressing"]["n_pairs"]) == {6}


def test_examples_are_chosen_by_rule_and_bring_the_judges_reason():
    run = Run(3)
    items = clean_items(run, "explicit")
    for item in items:
        run.silence("good", item, "w", "N2", 0.0, speech_s=1.0, text="let me help")
        run.judged.append(
            {"judgement_id": item, "rollout_key": f"good/{item}", "item_id": item, "window_id": "w", "system": "good",
             "rubric": "acknowledgement", "rubric_version": 1, "judge": "lexicon", "verdict": "intrusion",
             "reason": "3 of 3 words outside", "raw": "{}"}
        )  # fmt: skip
    one, again = run.made()["examples"], run.made()["examples"]
    assert one.equals(again)
    row = one.row(0, named=True)
    assert one.height == 1
    assert (row["rule"], row["verdict"], row["reason"]) == (
        "speech penalised in silence", "intrusion", "3 of 3 words outside",
    )  # fmt: skip
    assert row["said"] == "let me help"


def test_no_measurements_make_no_tables_and_figures_say_nothing():
    run = Run(2)
    tables = run.tables()
    assert multiparty_tables(tables, SYSTEMS) == []
    assert sketches(tables, SYSTEMS) == []


def test_details_without_the_fields_become_missing_not_zero():
    run = Run(1)
    run.score("good", clean_items(run, "explicit")[0], "w", "silence_preservation", None, "transport_error")
    row = windows(run.tables()).row(0, named=True)
    assert row["speech_in_window_s"] is None
    parts = run.made()["speech-in-silence"].row(0, named=True)
    assert (parts["not_measured"], parts["silent"], parts["rate"]) == (1, 0, None)


def test_figures_are_drawn_from_what_there_is():
    run = Run(6)
    for form in ("explicit", "implicit"):
        for n, item in enumerate(clean_items(run, form)):
            run.request("good", item, present=n < 3, correct=n < 2)
            run.silence("good", item, "w", "N2", float(n % 2), speech_s=0.5 * n, text="words")
            run.event("good", item, "stopped" if n % 2 else "resumed")
    found = {sketch.id: sketch for sketch in sketches(run.tables(), SYSTEMS)}
    assert set(found) == {"multiparty-stopping", "multiparty-request-thirds", "multiparty-minimum-speech"}
    for sketch in found.values():
        assert sketch.make().axes


@pytest.mark.parametrize(
    "wrong",
    [{"equivalence_margin": 0.0}, {"minimum_speech_s": ()}, {"minimum_speech_s": (0.5, 0.1)}, {"paper_family": 0},
     {"level": 1.0}, {"minimum_speech_s": (float("nan"),)}],
)  # fmt: skip
def test_analysis_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=r"give|level|minimum"):
        MultipartyAnalysis(**wrong)


def test_intervals_hold_their_rate():
    run = Run(9)
    rng = np.random.default_rng(3)
    for item in clean_items(run, "explicit"):
        for n in range(4):
            run.silence("good", item, f"w{n}", "N2", float(rng.random() < 0.6), speech_s=1.0, text="x")
    row = run.made()["turn-types"].row(0, named=True)
    assert row["low"] < row["rate"] < row["high"]


def test_the_papers_paired_addressing_comes_out_of_the_table():
    """P1 A5.1: 90 explicit-only against 78 implicit-only of 2,000 is +0.60 points, p 0.396: no difference shown."""
    n, only_explicit, only_implicit = 2000, 90, 78
    both = np.arange(n) >= only_explicit + only_implicit
    explicit = (np.arange(n) < only_explicit) | both
    implicit = ~explicit | both
    frame = pl.concat(
        pl.DataFrame(
            {"system": "minicpm", "metric": "response_presence", "condition": form,
             "cluster": [f"s{k}" for k in range(n)], "value": present.astype(float)}
        )
        for form, present in (("explicit", explicit), ("implicit", implicit))
    )  # fmt: skip
    row = addressing(frame, MultipartyAnalysis(n_resamples=500)).frame.row(0, named=True)
    assert (row["only_explicit"], row["only_implicit"]) == (90, 78)
    assert row["difference"] == pytest.approx(0.0060)
    assert row["p_mcnemar"] == pytest.approx(0.396, abs=5e-4)
    assert row["conclusion"] == "equivalent within the margin"


def test_the_papers_171_wordless_windows_move_its_rate_as_printed():
    """P1 A3.3: 83.51 % becomes 84.35 %. The paper's number of windows follows from the two rates and the 171."""
    n, passed, wordless = 20_357, 17_000, 171
    frame = pl.DataFrame(
        {"system": "voila", "condition": "explicit", "metric": "silence_preservation",
         "value": (np.arange(n) < passed).astype(float), "speech_in_window_s": (np.arange(n) >= passed).astype(float),
         "wordless": np.arange(n) >= n - wordless, "carried_over": False}
    )  # fmt: skip
    row = speech_in_silence(frame).frame.row(0, named=True)
    assert row["wordless"] == 171
    assert row["rate"] == pytest.approx(0.8351, abs=5e-5)
    assert row["if_wordless_passed"] == pytest.approx(0.8435, abs=5e-5)
