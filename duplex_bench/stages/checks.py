"""What must hold of stored tables, as numbers and a yes or no."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.outcome import RETRIED_OUTCOMES, Outcome
from duplex_bench.stages import scoring
from duplex_bench.stages.items import items_of

# Above this share of questions without a verdict, rates over verdicts say little (ours).
MOST_WITHOUT_VERDICT = 0.1
# Labels are in whole nanoseconds; a float64 of a session's seconds is exact far below this.
ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether it holds, and the numbers that decided it."""

    passed: bool
    numbers: Mapping[str, int | float | str]


def rollouts_complete(rollouts: pl.DataFrame, items: pl.DataFrame) -> Checked:
    """Every item has a rollout, and none was lost in transport."""
    missing = set(items["item_id"]) - set(rollouts["item_id"])
    lost = rollouts.filter(pl.col("outcome").is_in([str(outcome) for outcome in RETRIED_OUTCOMES])).height
    numbers = {"items": items.height, "rollouts": rollouts.height, "missing": len(missing), "lost": lost}
    return Checked(not missing and not lost, numbers)


def verdict_share(judgements: pl.DataFrame) -> Checked:
    """The share of questions without a verdict is small."""
    without = judgements["verdict"].null_count()
    share = without / judgements.height if judgements.height else 0.0
    numbers = {"questions": judgements.height, "without_verdict": without, "share": round(share, 4)}
    return Checked(share <= MOST_WITHOUT_VERDICT, numbers)


def measurements_add_up(track: Track, measurements: pl.DataFrame, items: pl.DataFrame) -> Checked:
    """Every window of every item has every metric of its kind exactly once, as a value or a reason, never both."""
    expected = {
        (item.item_id, window_id, metric)
        for item in items_of(items).values()
        for window_id, metric in scoring.expected_metrics(track, item)
    }
    found = list(measurements.select("item_id", "window_id", "metric").iter_rows())
    both = measurements.filter(pl.col("value").is_null() == pl.col("reason").is_null()).height
    numbers = {
        "expected": len(expected),
        "found": len(found),
        "missing": len(expected - set(found)),
        "unexpected": len(set(found) - expected),
        "twice": len(found) - len(set(found)),
        "value_and_reason": both,
    }
    return Checked(len(found) == len(set(found)) and set(found) == expected and not both, numbers)


def estimates_sane(statistics: pl.DataFrame) -> Checked:
    """Estimates lie inside their intervals, and no more is scored than expected."""
    known = statistics.filter(pl.col("low").is_not_null() & pl.col("estimate").is_not_null())
    outside = known.filter(
        (pl.col("estimate") < pl.col("low") - ROUNDING_S) | (pl.col("estimate") > pl.col("high") + ROUNDING_S)
    ).height
    too_many = statistics.filter(pl.col("n_scored") > pl.col("n_expected")).height
    silent = statistics.filter(pl.col("estimate").is_null() & pl.col("reason").is_null()).height
    numbers = {"estimates": statistics.height, "outside": outside, "too_many": too_many, "without_reason": silent}
    return Checked(not outside and not too_many and not silent, numbers)


def systems_up_to_date(items: pl.DataFrame, rollouts: Mapping[str, pl.DataFrame]) -> Checked:
    """Which systems were run on stimuli that the items no longer hold, or not on all that they hold."""
    wanted = set(items.select("item_id", "stimulus_digest").iter_rows())
    behind: list[str] = []
    for system, table in sorted(rollouts.items()):
        if str(Outcome.NOT_APPLICABLE) in set(table["outcome"]):
            continue
        if set(table.select("item_id", "stimulus_digest").iter_rows()) != wanted:
            behind.append(system)
    return Checked(not behind, {"systems": len(rollouts), "behind": len(behind), "which": ", ".join(behind) or "none"})


def label_invariants(labels: pl.DataFrame) -> Checked:
    """No two turns of one speaker overlap, and every pause lies inside a turn of its speaker."""
    overlapping = outside = 0
    for _, mine in labels.group_by("session_id", "speaker", maintain_order=True):
        turns = mine.filter(pl.col("kind") == "turn").sort("start_s").select("start_s", "end_s").rows()
        overlapping += sum(later[0] < earlier[1] - ROUNDING_S for earlier, later in pairwise(turns))
        for start_s, end_s in mine.filter(pl.col("kind") == "pause").select("start_s", "end_s").iter_rows():
            outside += not any(a - ROUNDING_S <= start_s and end_s <= b + ROUNDING_S for a, b in turns)
    numbers = {"labels": labels.height, "overlapping_turns": overlapping, "pauses_outside_turns": outside}
    return Checked(not overlapping and not outside, numbers)


def funnel_adds_up(funnel: pl.DataFrame, points: pl.DataFrame) -> Checked:
    """The funnel's last row is what was drawn, each row is the one before minus its losses, and ids are unique."""
    wrong = 0
    for kind in ("pause", "turn_end"):
        left = funnel[f"n_{kind}"].to_list()
        lost = funnel[f"rejected_{kind}"].to_list()
        wrong += sum(left[n] != left[n - 1] - lost[n] for n in range(1, len(left)))
        wrong += left[-1] != points.filter(pl.col("kind") == kind).height
    twice = points.height - points["point_id"].n_unique()
    return Checked(not wrong and not twice, {"points": points.height, "rows_that_differ": wrong, "ids_twice": twice})
