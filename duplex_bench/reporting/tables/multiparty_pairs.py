"""Paired analyses of the multiparty track: addressing, the paper's tests, orderings, rank correlations, acoustics."""

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final

import numpy as np
import polars as pl

from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.reporting.comparisons import SIGN_FLIP, WINDOW
from duplex_bench.reporting.estimates import Row, known_or_none
from duplex_bench.reporting.inputs import POOLED, Table, TrackTables
from duplex_bench.reporting.tables.multiparty_windows import groups, made
from duplex_bench.statistics import (
    bonferroni,
    equivalence_test,
    mcnemar_exact,
    multiplicities,
    rate_difference_interval,
    sign_flip_test,
    spearman,
    wilson_interval,
)
from duplex_bench.storage.digests import generator_from

EXPLICIT, IMPLICIT = "explicit", "implicit"
REQUEST_METRICS: Final = ("response_presence", "fresh_onset_response", "answer_accuracy")
PAPER_METRICS: Final = ("answer_accuracy", "silence_preservation")
RANKED_METRICS: Final = (
    "response_presence",
    "fresh_onset_response",
    "answer_accuracy",
    "silence_preservation",
    "answering_window_yield",
)


def addressing(frame: pl.DataFrame, analysis: MultipartyAnalysis) -> Table:
    """Explicit against implicit requests, scenario by scenario (P1 Table 16, A5.1), with an equivalence test (ours)."""
    rows: list[Row] = []
    columns = ("metric", "system", "condition", "cluster", "value")
    chosen = frame.filter(pl.col("metric").is_in(REQUEST_METRICS) & pl.col("value").is_not_null()).select(columns)
    # One set of resamples for every system and metric: their rows can be set side by side.
    draws = multiplicities(chosen["cluster"].to_numpy(), generator_from("addressing/2"), analysis.n_resamples)
    for (metric, system), part in groups(chosen, "metric", "system"):
        sides = [
            part.filter(pl.col("condition") == condition).select("cluster", "value")
            for condition in (EXPLICIT, IMPLICIT)
        ]
        both = sides[0].join(sides[1], on="cluster", suffix="_implicit").sort("cluster")
        if both.height == 0:
            continue
        explicit, implicit = both["value"].to_numpy(), both["value_implicit"].to_numpy()
        only = [int(((one == 1) & (other == 0)).sum()) for one, other in ((explicit, implicit), (implicit, explicit))]
        clusters = both["cluster"].to_numpy()
        names = (system, metric)
        low, high = rate_difference_interval(explicit, implicit, clusters, draws=draws, level=analysis.level)
        margin, alpha = analysis.equivalence_margin, 1 - analysis.level
        if sum(only):
            alike = equivalence_test(explicit - implicit, clusters, margin, draws=draws, alpha=alpha)
            p_alike, equivalent = alike.p, alike.equivalent
        else:
            p_alike, equivalent = _never_differed(both["cluster"].n_unique(), margin, alpha)
        flips = sign_flip_test(explicit - implicit, clusters, rng=generator_from("addressing-flips/1", *names))
        rows.append(
            {"system": system, "metric": metric, "n_pairs": both.height, "explicit": float(explicit.mean()),
             "implicit": float(implicit.mean()), "only_explicit": only[0], "only_implicit": only[1],
             "difference": float((explicit - implicit).mean()), "low": known_or_none(low), "high": known_or_none(high),
             "p_mcnemar": mcnemar_exact(*only), "p": known_or_none(flips), "margin": margin,
             "p_equivalence": known_or_none(p_alike), "conclusion": _conclusion(flips, equivalent, alpha)}
        )  # fmt: skip
    return made(
        "addressing",
        "Multiparty: explicit against implicit requests",
        "The same scenario in both forms; pairs with a value in both. McNemar's exact test is the paper's; p flips the "
        "sign of whole scenarios (ours). Equivalent: the interval of level 1 - 2 alpha lies inside the margin, which "
        "the profile names (ours); 'undecided' says that this many scenarios show neither a difference nor equality. "
        "Where every scenario differs alike, or none does, the interval is the Wilson bound over scenarios.",
        rows,
        [("system", pl.String), ("metric", pl.String), ("n_pairs", pl.Int64), ("explicit", pl.Float64),
         ("implicit", pl.Float64), ("only_explicit", pl.Int64), ("only_implicit", pl.Int64),
         ("difference", pl.Float64), ("low", pl.Float64), ("high", pl.Float64), ("p_mcnemar", pl.Float64),
         ("p", pl.Float64), ("margin", pl.Float64), ("p_equivalence", pl.Float64), ("conclusion", pl.String)],
    )  # fmt: skip


def _never_differed(n_scenarios: int, margin: float, alpha: float) -> tuple[float, bool]:
    """The p and outcome of equivalence where no scenario differs, which resampling would call certain.

    The difference is at most the share of scenarios that differ: its Wilson bound must lie inside the margin, and p
    is the chance to see none of ``n_scenarios`` differ if as many did as the margin allows.
    """
    bound = wilson_interval(0, n_scenarios, 1 - 2 * alpha).high
    return float((1 - min(margin, 1.0)) ** n_scenarios), bound < margin


def _conclusion(p: float, equivalent: bool | None, alpha: float) -> str:
    if equivalent is None or np.isnan(p):
        return "too few scenarios"
    differs = p < alpha
    if differs:
        return "different, within the margin" if equivalent else "different"
    return "equivalent within the margin" if equivalent else "undecided"


def paper_tests(frame: pl.DataFrame, analysis: MultipartyAnalysis) -> Table:
    """McNemar on common items with the paper's fixed correction, per condition (P1 A7.1, Table 21)."""
    rows: list[Row] = []
    chosen = frame.filter(pl.col("metric").is_in(PAPER_METRICS) & pl.col("value").is_not_null())
    for (metric, condition), part in groups(chosen, "metric", "condition"):
        systems = {str(name): mine.select(*WINDOW, "value") for (name,), mine in groups(part, "system")}
        for a, b in combinations(sorted(systems), 2):
            shared = systems[a].join(systems[b], on=WINDOW, suffix="_b").sort(WINDOW)
            if shared.height == 0:
                continue
            ours, theirs = shared["value"].to_numpy(), shared["value_b"].to_numpy()
            only_a, only_b = int(((ours == 1) & (theirs == 0)).sum()), int(((ours == 0) & (theirs == 1)).sum())
            p = mcnemar_exact(only_a, only_b)
            rows.append(
                {"metric": metric, "condition": condition, "system_a": a, "system_b": b, "n_common": shared.height,
                 "passed_a": int(ours.sum()), "passed_b": int(theirs.sum()), "only_a": only_a, "only_b": only_b,
                 "difference": float((ours - theirs).mean()), "p": p,
                 "p_corrected": bonferroni(p, analysis.paper_family)}
            )  # fmt: skip
    return made(
        "paper-comparable",
        "Multiparty: paper-comparable tests",
        f"Exact two-sided McNemar tests on common items, Bonferroni over {analysis.paper_family} comparisons per "
        "condition as in P1 A7.1, whatever the number of systems here. Windows of one scenario are not independent: "
        "the headline is the clustered test of the pairwise table.",
        rows,
        [("metric", pl.String), ("condition", pl.String), ("system_a", pl.String), ("system_b", pl.String),
         ("n_common", pl.Int64), ("passed_a", pl.Int64), ("passed_b", pl.Int64), ("only_a", pl.Int64),
         ("only_b", pl.Int64), ("difference", pl.Float64), ("p", pl.Float64), ("p_corrected", pl.Float64)],
    )  # fmt: skip


def orderings(tables: TrackTables, references: Collection[str] = ()) -> Table:
    """What may be said about order: only steps that the headline test supports (P1 A7.1)."""
    rows: list[Row] = []
    for card in tables.headline_cards:
        estimates = tables.statistics.filter(
            (pl.col("metric") == card.id) & (pl.col("condition") != POOLED) & pl.col("estimate").is_not_null()
            & ~pl.col("system").is_in(list(references))
        )  # fmt: skip
        for (condition,), part in groups(estimates, "condition"):
            ranked = part.sort(["estimate", "system"], descending=[card.direction != "lower", False])[
                "system"
            ].to_list()
            if len(ranked) < 2:
                continue
            known = _separable(tables, card.id, condition)
            pairs = list(combinations(ranked, 2))
            supported = [pair for pair in pairs if known.get(frozenset(pair), False)]
            rows.append(
                {"metric": card.id, "condition": condition, "statement": _statement(ranked, known),
                 "pairs_supported": len(supported), "pairs": len(pairs),
                 "complete_order": len(supported) == len(pairs)}
            )  # fmt: skip
    return made(
        "orderings",
        "Multiparty: which orderings are supported",
        "A > B: every system left of the sign is separable from every system right of it (clustered sign flips, Holm, "
        f"corrected p < {tables.alpha:.2g}, and the paired interval of the difference excludes 0). Systems joined by a "
        "comma are not told apart as groups. Reference policies are left out.",
        rows,
        [("metric", pl.String), ("condition", pl.String), ("statement", pl.String), ("pairs_supported", pl.Int64),
         ("pairs", pl.Int64), ("complete_order", pl.Boolean)],
    )  # fmt: skip


def _separable(tables: TrackTables, metric: str, condition: str) -> dict[frozenset[str], bool]:
    rows = tables.comparisons.filter(
        (pl.col("metric") == metric) & (pl.col("condition") == condition) & (pl.col("test") == SIGN_FLIP)
    )
    return {
        frozenset((row["system_a"], row["system_b"])): row["p_corrected"] is not None
        and row["p_corrected"] < tables.alpha
        and row["low"] is not None
        and row["high"] is not None
        and (row["low"] > 0 or row["high"] < 0)
        for row in rows.to_dicts()
    }


def _statement(ranked: Sequence[str], separable: dict[frozenset[str], bool]) -> str:
    parts: list[list[str]] = [[ranked[0]]]
    for place in range(1, len(ranked)):
        left, right = ranked[:place], ranked[place:]
        if all(separable.get(frozenset((a, b)), False) for a in left for b in right):
            parts.append([])
        parts[-1].append(ranked[place])
    return " > ".join(", ".join(part) for part in parts) if len(parts) > 1 else "no order is supported"


def rank_correlations(tables: TrackTables, references: Collection[str] = ()) -> Table:
    """Spearman's rho between metrics over condition entries, one a system and condition (P1 4.5)."""
    entries = tables.statistics.filter(
        pl.col("condition").is_in([EXPLICIT, IMPLICIT])
        & pl.col("metric").is_in(RANKED_METRICS)
        & ~pl.col("system").is_in(list(references))
    ).with_columns((pl.col("system") + " " + pl.col("condition")).alias("entry"))
    by_metric = {
        metric: dict(entries.filter(pl.col("metric") == metric).select("entry", "estimate").iter_rows())
        for metric in RANKED_METRICS
    }
    rows: list[Row] = []
    for one, other in combinations(RANKED_METRICS, 2):
        shared = sorted(by_metric[one].keys() & by_metric[other].keys())
        if not shared:
            continue
        left, right = (
            np.array([by_metric[name][entry] for entry in shared], dtype=np.float64) for name in (one, other)
        )
        found = spearman(left, right)
        rows.append({"metric": one, "other_metric": other, "n_entries": found.n, "rho": known_or_none(found.rho),
                     "p": known_or_none(found.p)})  # fmt: skip
    return made(
        "rank-correlations",
        "Multiparty: do metrics rank systems alike",
        "Spearman's rho over condition entries, one for each system and addressing condition, reference policies left "
        "out; P1 4.5 gives -0.43 between response presence and fresh onset over ten. None below three entries or "
        "where a metric does not vary.",
        rows,
        [("metric", pl.String), ("other_metric", pl.String), ("n_entries", pl.Int64), ("rho", pl.Float64),
         ("p", pl.Float64)],
    )  # fmt: skip


def acoustics(tables: TrackTables, frame: pl.DataFrame) -> Table:
    """Clean scenes against the same scenes in other acoustics, window by window (ours)."""
    about = tables.items.select(
        "item_id",
        pl.col("reference").str.json_path_match("$.attributes.acoustics").alias("acoustics"),
        pl.col("reference").str.json_path_match("$.attributes.base_item").alias("base_item"),
        pl.col("reference").str.json_path_match("$.attributes.addressing").alias("addressing"),
    )
    headline = {card.id for card in tables.headline_cards} | {"response_presence"}
    scored = frame.filter(pl.col("metric").is_in(headline) & pl.col("value").is_not_null()).join(about, on="item_id")
    clean = scored.filter(pl.col("acoustics") == "clean").select(
        "system", "metric", "window_id", pl.col("item_id").alias("base_item"), pl.col("value").alias("clean")
    )
    other = scored.filter(pl.col("acoustics") != "clean")
    paired = other.join(clean, on=["system", "metric", "window_id", "base_item"])
    rows: list[Row] = []
    for (metric, kind, addressing_form, system), part in groups(paired, "metric", "acoustics", "addressing", "system"):
        mine = part.sort("base_item", "window_id")
        before, after, clusters = mine["clean"].to_numpy(), mine["value"].to_numpy(), mine["cluster"].to_numpy()
        low, high = rate_difference_interval(
            after, before, clusters, rng=generator_from("acoustics/1", system, metric, kind, addressing_form),
            n_resamples=tables.analysis.n_resamples, level=tables.analysis.level,
        )  # fmt: skip
        p = sign_flip_test(after - before, clusters, rng=generator_from("acoustics-flips/1", system, metric, kind))
        rows.append(
            {"metric": metric, "acoustics": kind, "addressing": addressing_form, "system": system,
             "n_pairs": mine.height, "clean": float(before.mean()), "changed": float(after.mean()),
             "difference": float((after - before).mean()), "low": known_or_none(low), "high": known_or_none(high),
             "p": known_or_none(p)}
        )  # fmt: skip
    return made(
        "acoustics",
        "Multiparty: clean scenes against other acoustics",
        "Ours. The same windows of the same scenario, heard clean and changed; difference is changed minus clean, "
        "over windows with a value in both; intervals and p by whole scenarios, not corrected for the number of rows.",
        rows,
        [("metric", pl.String), ("acoustics", pl.String), ("addressing", pl.String), ("system", pl.String),
         ("n_pairs", pl.Int64), ("clean", pl.Float64), ("changed", pl.Float64), ("difference", pl.Float64),
         ("low", pl.Float64), ("high", pl.Float64), ("p", pl.Float64)],
    )  # fmt: skip
