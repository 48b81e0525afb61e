"""Multiparty windows in groups: by turn type, addressee, request time; what filled them; how speech was stopped."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.estimates import AggregateSettings, Row, estimate
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.statistics import Multiplicities, multiplicities
from duplex_bench.storage.digests import generator_from

DETAILS: Final = pl.Struct(
    {
        "turn_type": pl.String,
        "addressee": pl.String,
        "speech_in_window_s": pl.Float64,
        "response_latency_s": pl.Float64,
        "answer": pl.String,
        "gold": pl.String,
        "text": pl.String,
        "carried_over": pl.Boolean,
        "wordless": pl.Boolean,
        "outcome": pl.String,
        "eligible": pl.Boolean,
        "stop_latency_s": pl.Float64,
    }
)
# The other metrics of silence windows repeat the same details and stand in no table of groups.
_OTHER_READINGS: Final = (
    "silence_without_carry_over",
    "silence_carry_over",
    "silence_untranscribed_passes",
    "silence_without_untranscribed",
)
THIRDS: Final = ("earlier", "middle", "later")
NOT_ELIGIBLE: Final = {
    "speaking_at_question_end": "not_eligible_active_at_question_end",
    "no_onset_in_window": "not_eligible_no_onset_in_window",
    "silent_at_resolution": "not_eligible_silent_at_resolution",
}


def windows(tables: TrackTables) -> pl.DataFrame:
    """Measurements with the numbers behind them as columns, and what their items are grouped by.

    Other readings of a silence window are left out: they hold the same numbers again.

    Columns added to those of MEASUREMENTS: the fields of ``DETAILS``, ``request_third``, ``request_time_s``.
    """
    about = tables.items.select(
        "item_id",
        pl.col("reference").str.json_path_match("$.attributes.request_third").alias("request_third"),
        pl.col("reference").str.json_path_match("$.attributes.request_time_s").cast(pl.Float64).alias("request_time_s"),
    )
    return (
        tables.measurements.filter(~pl.col("metric").is_in(_OTHER_READINGS))
        .with_columns(pl.col("details").str.json_decode(DETAILS).alias("decoded"))
        .unnest("decoded")
        .join(about, on="item_id", how="left")
    )


class Rates:
    """Rates of groups of windows with cluster intervals; groups share their draws, so that they can be set side by
    side.
    """

    def __init__(self, tables: TrackTables) -> None:
        self._tables = tables
        self._settings = AggregateSettings(n_resamples=tables.analysis.n_resamples, level=tables.analysis.level)
        rng = generator_from("multiparty-tables/1", tables.track)
        clusters = tables.measurements["cluster"].unique().sort().to_numpy()
        self._draws: Multiplicities = multiplicities(clusters, rng, self._settings.n_resamples)

    def card(self, metric: str) -> MetricCard | None:
        """The metric's card, or None where this run has none."""
        return next((card for card in self._tables.cards if card.id == metric), None)

    def of(self, rows: pl.DataFrame, metric: str, name: str = "rate") -> Row:
        """Columns ``n_windows``, ``n_scored``, ``<name>``, ``low``, ``high`` of the rows of one metric."""
        card = self.card(metric)
        mine = (
            rows.lazy()
            .filter(pl.col("metric") == metric)
            .select("item_id", "window_id", "cluster", "value", "reason")
            .sort("item_id", "window_id")
            .collect()
        )
        if card is None or mine.height == 0:
            return {"n_windows": 0, "n_scored": 0, name: None, "low": None, "high": None}
        found = estimate(mine, card, mine.height, self._draws, self._settings)
        return {"n_windows": mine.height, "n_scored": found["n_scored"], name: found["estimate"],
                "low": found["low"], "high": found["high"]}  # fmt: skip

    def stored(self, system: str, condition: str, metric: str, name: str = "rate") -> Row:
        """As ``of``, for all windows of a system in a condition: the row of STATISTICS, so that one number has one
        interval throughout a report.
        """
        rows = self._tables.statistics.filter(
            (pl.col("system") == system) & (pl.col("condition") == condition) & (pl.col("metric") == metric)
        )
        if not rows.height:
            return {"n_windows": 0, "n_scored": 0, name: None, "low": None, "high": None}
        found = rows.row(0, named=True)
        return {"n_windows": found["n_expected"], "n_scored": found["n_scored"], name: found["estimate"],
                "low": found["low"], "high": found["high"]}  # fmt: skip

    def simple(self, rows: pl.DataFrame, metric: str) -> tuple[int, float | None]:
        """Number scored and mean of the rows of one metric."""
        values = rows.filter((pl.col("metric") == metric) & pl.col("value").is_not_null())["value"]
        return len(values), _mean(values)


def _mean(values: pl.Series) -> float | None:
    found = values.mean()
    return float(found) if isinstance(found, int | float) else None


def groups(frame: pl.DataFrame, *names: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Parts of a frame by the values of some columns, in sorted order; rows without a value are left out."""
    present = frame.drop_nulls(list(names)).sort(*names)
    yield from present.group_by(*names, maintain_order=True)


def made(table_id: str, title: str, caption: str, rows: Iterable[Row], schema: Sequence[tuple[str, Any]]) -> Table:
    """A table of the track from rows, in the columns of ``schema``."""
    frame = pl.DataFrame([{name: row.get(name) for name, _ in schema} for row in rows], schema=dict(schema))
    return Table(f"multiparty-{table_id}", title, caption, frame)


_RATE_COLUMNS: Final = (
    ("n_windows", pl.Int64),
    ("n_scored", pl.Int64),
    ("rate", pl.Float64),
    ("low", pl.Float64),
    ("high", pl.Float64),
)
_BY: Final = (("system", pl.String), ("condition", pl.String))


def by_turn_type(frame: pl.DataFrame, rates: Rates) -> Table:
    """Silence preservation by turn type (P1 A5.3), with how many windows held speech."""
    rows = []
    silence = frame.filter(pl.col("metric") == "silence_preservation")
    for (system, condition, kind), part in groups(silence, "system", "condition", "turn_type"):
        spoken = part.filter(pl.col("speech_in_window_s") > 0).height
        rows.append({"system": system, "condition": condition, "turn_type": kind, "with_speech": spoken,
                     **rates.of(part, "silence_preservation")})  # fmt: skip
    return made(
        "turn-types",
        "Multiparty: silence preservation by turn type",
        "N1: a request to another human, N2: a statement among humans that carries evidence, N3: talk that mentions or "
        "quotes the assistant (definitions ours). Rate over windows with a value; intervals resample scenarios. "
        "with speech (ours): windows in which the system was heard.",
        rows,
        [*_BY, ("turn_type", pl.String), ("with_speech", pl.Int64), *_RATE_COLUMNS],
    )


def by_addressee(frame: pl.DataFrame, rates: Rates) -> Table:
    """Speech after requests to the assistant beside speech on requests to others (P1 4.2, A5.3)."""
    rows = []
    to_whom = (
        pl.when(pl.col("addressee") == "assistant")
        .then(pl.lit("the assistant"))
        .when(pl.col("addressee") == "group")
        .then(pl.lit("everybody"))
        .otherwise(pl.lit("another human"))
    )
    chosen = frame.filter(
        pl.col("metric").is_in(["response_presence", "silence_preservation", "n4q_window_response"])
        & pl.col("addressee").is_not_null()
    ).with_columns(to_whom.alias("to"))
    for (system, condition, metric, to), part in groups(chosen, "system", "condition", "metric", "to"):
        scored = part.filter(pl.col("value").is_not_null())
        failing = scored.filter(pl.col("value") == 0.0).height
        rows.append({"system": system, "condition": condition, "metric": metric, "addressed_to": to,
                     "n_failed": failing, **rates.of(part, metric)})  # fmt: skip
    return made(
        "addressees",
        "Multiparty: by who is addressed",
        "Response presence after requests to the assistant (T), window response to N4Q, and silence preservation on "
        "turns to another human or to everybody. n failed of n scored is how P1 4.2 prints 216 of 4,704.",
        rows,
        [*_BY, ("metric", pl.String), ("addressed_to", pl.String), ("n_failed", pl.Int64), *_RATE_COLUMNS],
    )


def conditional_accuracy(frame: pl.DataFrame, rates: Rates) -> Table:
    """Answer accuracy with the coverage that it is conditional on (P1 4.1)."""
    rows = []
    for (system, condition), part in groups(frame, "system", "condition"):
        presence = rates.stored(system, condition, "response_presence", "response_presence")
        fresh = rates.stored(system, condition, "fresh_onset_response", "fresh_onset")
        answered = rates.stored(system, condition, "answer_accuracy", "accuracy")
        if not presence["n_windows"]:
            continue
        of_answers = part.filter(pl.col("metric") == "answer_accuracy")
        correct = int(of_answers["value"].sum())
        n_responses = int(part.filter(pl.col("metric") == "response_presence")["value"].sum())
        # Whatever the reason: not judged, judged in prose, a judge that could not be reached.
        without = n_responses - answered["n_scored"]
        decided = presence["n_scored"] - without
        rows.append(
            {"system": system, "condition": condition, "n_requests": presence["n_scored"], "n_responses": n_responses,
             "response_presence": presence["response_presence"], "fresh_onset": fresh["fresh_onset"],
             "n_judged": answered["n_scored"], "n_correct": correct, "without_verdict": without,
             "accuracy": answered["accuracy"], "low": answered["low"], "high": answered["high"],
             "correct_of_requests": correct / decided if decided else None}
        )  # fmt: skip
    return made(
        "accuracy",
        "Multiparty: answers, given a response",
        "Accuracy is over responses with a verdict (speech without a transcript is incorrect), so that it must be read "
        "with the presence beside it. correct of requests is ours, and leaves out requests whose response has no "
        "verdict. The interval is of the accuracy.",
        rows,
        [*_BY, ("n_requests", pl.Int64), ("response_presence", pl.Float64), ("fresh_onset", pl.Float64),
         ("n_responses", pl.Int64), ("n_judged", pl.Int64), ("n_correct", pl.Int64), ("without_verdict", pl.Int64),
         ("accuracy", pl.Float64), ("low", pl.Float64), ("high", pl.Float64), ("correct_of_requests", pl.Float64)],
    )  # fmt: skip


def speech_in_silence(frame: pl.DataFrame) -> Table:
    """What filled silence windows, and what the rate would be under other readings (P1 A3.3)."""
    rows = []
    silence = frame.filter(pl.col("metric") == "silence_preservation")
    for (system, condition), part in groups(silence, "system", "condition"):
        heard = part.filter(pl.col("speech_in_window_s").is_not_null())
        speaking = heard.filter(pl.col("speech_in_window_s") > 0)
        wordless = speaking.filter(pl.col("wordless"))
        worded = speaking.filter(~pl.col("wordless"))
        allowed, undecided = (
            worded.filter(pl.col("value") == 1.0).height,
            worded.filter(pl.col("value").is_null()).height,
        )
        quiet = heard.height - speaking.height
        decided = heard.height - undecided
        intrusions = worded.height - allowed - undecided
        carried = heard.filter(pl.col("carried_over")).height

        def share(count: int, of: int) -> float | None:
            return count / of if of else None

        rows.append(
            {"system": system, "condition": condition, "n_windows": part.height,
             "not_measured": part.height - heard.height, "silent": quiet, "acknowledgement": allowed,
             "intrusion": intrusions, "undecided": undecided, "undecided_share": share(undecided, speaking.height),
             "wordless": wordless.height, "rate": share(quiet + allowed, decided),
             "if_wordless_passed": share(quiet + allowed + wordless.height, decided),
             "worst": share(quiet + allowed, heard.height), "best": share(quiet + allowed + undecided, heard.height),
             "carry_over_share": share(carried, heard.height)}
        )  # fmt: skip
    return made(
        "speech-in-silence",
        "Multiparty: what was heard where silence was due",
        "Windows: silent + acknowledgement + intrusion + undecided (no verdict) + wordless (speech without a "
        "transcript, which fails) + not measured. undecided share is of windows with speech. if wordless passed is the "
        "alternative that P1 A3.3 prints for 171 windows. worst and best count every undecided window as failed or as "
        "passed (ours). carry over: the rest of an answer to T runs into the window.",
        rows,
        [*_BY, ("n_windows", pl.Int64), ("silent", pl.Int64), ("acknowledgement", pl.Int64), ("intrusion", pl.Int64),
         ("undecided", pl.Int64), ("undecided_share", pl.Float64), ("wordless", pl.Int64), ("not_measured", pl.Int64),
         ("rate", pl.Float64), ("if_wordless_passed", pl.Float64), ("worst", pl.Float64), ("best", pl.Float64),
         ("carry_over_share", pl.Float64)],
    )  # fmt: skip


def stopping(frame: pl.DataFrame, rates: Rates) -> Table:
    """Eligibility and outcomes when a human resolves a question (P1 Tables 14 and 15)."""
    rows = []
    events = frame.filter(pl.col("metric").is_in(["answering_window_yield", "n4q_window_response"]))
    for (system, condition), part in groups(events, "system", "condition"):
        asked = part.filter(pl.col("metric") == "answering_window_yield")
        if not asked.height:
            continue
        counts = {
            row["outcome"]: row["len"] for row in asked.drop_nulls("outcome").group_by("outcome").len().to_dicts()
        }
        stops = asked.filter(pl.col("eligible"))["stop_latency_s"].drop_nulls()
        rate = rates.stored(system, condition, "answering_window_yield", "yield_rate")
        _, answered = rates.simple(part, "n4q_window_response")
        rows.append(
            {"system": system, "condition": condition, "n_events": asked.height, "window_response": answered,
             "eligible": rate["n_scored"], **{name: counts.get(name, 0) for name in
                                              ("stopped", "speaking_through_deadline", "resumed")},
             "yield_rate": rate["yield_rate"], "low": rate["low"], "high": rate["high"],
             "stops_seen": len(stops), "stop_latency_s": stops.median(),
             **{name: counts.get(outcome, 0) for name, outcome in NOT_ELIGIBLE.items()}}
        )  # fmt: skip
    return made(
        "stopping",
        "Multiparty: stopping when a human resolves the question",
        "Eligible: silent at the end of N4Q, first onset within 3 s, speaking when N4R begins. eligible = stopped + "
        "speaking through the deadline (2 s after N4R begins) + resumed before the observation ends; the last three "
        "columns say why the others are not eligible. No rate at n = 1. stop latency (ours) is the median over the "
        "stops that were seen: who still speaks when the observation ends is not in it, so that it reads short.",
        rows,
        [*_BY, ("n_events", pl.Int64), ("window_response", pl.Float64), ("eligible", pl.Int64), ("stopped", pl.Int64),
         ("speaking_through_deadline", pl.Int64), ("resumed", pl.Int64), ("yield_rate", pl.Float64),
         ("low", pl.Float64), ("high", pl.Float64), ("stops_seen", pl.Int64), ("stop_latency_s", pl.Float64),
         *((name, pl.Int64) for name in NOT_ELIGIBLE)],
    )  # fmt: skip


def request_thirds(frame: pl.DataFrame, rates: Rates) -> Table:
    """Responses and answers by when in the stream the request came (P1 4.4, A3.6)."""
    rows = []
    order = {name: place for place, name in enumerate(THIRDS)}
    for (system, condition, third), part in groups(frame, "system", "condition", "request_third"):
        n_requests, presence = rates.simple(part, "response_presence")
        _, fresh = rates.simple(part, "fresh_onset_response")
        n_judged, accuracy = rates.simple(part, "answer_accuracy")
        timed = part.filter(pl.col("metric") == "response_presence")["request_time_s"]
        rows.append(
            {"system": system, "condition": condition, "third": third, "from_s": timed.min(), "to_s": timed.max(),
             "n_requests": n_requests, "response_presence": presence, "fresh_onset": fresh, "n_judged": n_judged,
             "accuracy": accuracy}
        )  # fmt: skip
    rows.sort(key=lambda row: (row["system"], row["condition"], order.get(row["third"], len(order))))
    return made(
        "request-thirds",
        "Multiparty: by request time",
        "All requests of both conditions are cut into three groups of equal size by when T ends on the stream, never "
        "by scores. Response rates use every request of a group, accuracy those with a judged response.",
        rows,
        [*_BY, ("third", pl.String), ("from_s", pl.Float64), ("to_s", pl.Float64), ("n_requests", pl.Int64),
         ("response_presence", pl.Float64), ("fresh_onset", pl.Float64), ("n_judged", pl.Int64),
         ("accuracy", pl.Float64)],
    )  # fmt: skip
