"""Recall points with planted answers, added to the conversation track of the fixture."""

import dataclasses
import json

import polars as pl

from duplex_bench.conversation.cards import RECALL_CARDS
from duplex_bench.records.tables import JUDGEMENTS, MEASUREMENTS
from duplex_bench.reporting.aggregate import AggregateSettings, expected_windows, statistics_table

LENGTHS_S = (30.0, 60.0, 90.0, 120.0)
KINDS = ("conversation_recall", "fact_recall")
POINTS = 6


def recalls(system, kind, length_s, point):
    """Whether the planted answer is right: the first forgets with length, the second never, the third never knows."""
    place = ("cascade-300ms", "cascade-500ms", "cascade-semantic", "always-speak", "never-speak").index(system)
    if kind == "fact_recall":
        return place < 2
    return (place == 0 and point * 30 + 30 >= length_s) or (place == 1 and point > 0)


def with_recall(inputs):
    """The inputs with points of both kinds at every length for every system, judged and matched."""
    conversation = inputs.tracks[1]
    rows, verdicts = [], []
    for system in ("cascade-300ms", "cascade-500ms", "cascade-semantic", "always-speak", "never-speak"):
        for kind in KINDS:
            for length in LENGTHS_S:
                for point in range(POINTS):
                    item = f"{kind}-{point}-{length:g}"
                    right = recalls(system, kind, length, point)
                    details = {"history_target_s": length, "gold": "in March", "request": "When did I move?",
                               "answer": "It was in March." if right else "I could not say."}  # fmt: skip
                    common = {"system": system, "item_id": item, "rollout_key": f"{system}/{item}",
                              "window_id": "recall", "cluster": f"session-{point % 4}", "condition": kind}  # fmt: skip
                    # The strict matcher misses a paraphrase of every third point.
                    for metric, value in (("recall_correct", right), ("recall_strict", right and point % 3 > 0)):
                        rows.append(
                            {**common, "measurement_id": f"{system}/{item}/{metric}", "metric": metric,
                             "metric_version": 1, "value": float(value), "reason": None, "at_s": 1.0,
                             "details": json.dumps(details)}
                        )  # fmt: skip
                    verdicts.append(
                        {**{name: common[name] for name in ("rollout_key", "item_id", "window_id", "system")},
                         "judgement_id": f"j/{system}/{item}", "rubric": "recall_correctness", "rubric_version": 1,
                         "judge": "planted", "verdict": "correct" if right else "incorrect", "reason": "", "raw": ""}
                    )  # fmt: skip
    added = pl.DataFrame(rows, schema=dict(MEASUREMENTS))
    measurements = pl.concat([conversation.measurements, added])
    cards = (*conversation.cards, *RECALL_CARDS)
    found = statistics_table(
        measurements, cards, track="conversation", expected=expected_windows(measurements, conversation.rollouts),
        settings=AggregateSettings(n_resamples=200, n_permutations=200),
    )  # fmt: skip
    track = dataclasses.replace(
        conversation,
        measurements=measurements,
        judgements=pl.concat([conversation.judgements, pl.DataFrame(verdicts, schema=dict(JUDGEMENTS))]),
        statistics=found.statistics,
        comparisons=found.comparisons,
        cards=cards,
    )
    return dataclasses.replace(inputs, tracks=(inputs.tracks[0], track))
