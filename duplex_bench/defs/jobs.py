"""Jobs a user starts by name; each is a selection of the graph."""

import dagster as dg

_PER_SYSTEM = ("rollouts", "activity", "words", "judgements", "measurements")


def _keys(track: str, *names: str) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*(dg.AssetKey([track, name]) for name in names))


build_multiparty_items = dg.define_asset_job(
    "build_multiparty_items",
    _keys("multiparty", "scenarios", "pairs", "utterance_speech", "scenes", "items", "inventory", "construction"),
    description="Scripts, speech, scenes and items of the multiparty track, counted and checked.",
)
regenerate_points = dg.define_asset_job(
    "regenerate_points",
    _keys(
        "conversation",
        "reviews",
        "labels",
        "candidates",
        "points",
        "identity_prompts",
        "recall_facts",
        "recall_questions",
        "question_speech",
        "items",
        "bounds",
        "inventory",
        "corpus_figures",
    ),
    description="After a label review: labels, points and items anew. Only what changed is run again afterwards.",
)
evaluate_system = dg.define_asset_job(
    "evaluate_system",
    dg.AssetSelection.assets(dg.AssetKey(["systems", "cards"]))
    | _keys("multiparty", *_PER_SYSTEM)
    | _keys("conversation", *_PER_SYSTEM),
    description="One system on both tracks: rollouts to measurements. Finished items are never run twice.",
)
publish_report = dg.define_asset_job(
    "publish_report",
    _keys("multiparty", "statistics", "comparisons", "tables", "figures")
    | _keys("conversation", "statistics", "comparisons", "tables", "figures", "gate_calibration")
    | _keys("results", "voice_quality", "recogniser_quality", "report"),
    description="Statistics, tables, figures and the report over all systems.",
)

JOBS = [build_multiparty_items, regenerate_points, evaluate_system, publish_report]
