"""Code versions of the graph's stages: raising one marks what it made as out of date, for all systems.

What belongs to one system (card, adapter version, model) is not here: it would stale every other system with it.
Prompts, rubrics and metric versions are part of a version through their own digests.
"""

from collections.abc import Callable, Mapping
from functools import cache

from duplex_bench.records.items import Track
from duplex_bench.storage.digests import digest_value

VERSIONS: Mapping[str, int] = {
    "scenarios": 1,
    "pairs": 1,
    "utterance_speech": 1,
    "scenes": 1,
    "items": 2,
    "inventory": 1,
    "construction": 1,
    "transcript_reference": 1,
    "transcript_decisions": 1,
    "lively_sessions": 1,
    "gap_fill": 1,
    "engine_labels": 1,
    "review_flags": 1,
    "labels": 2,
    "candidates": 1,
    "points": 1,
    "bounds": 1,
    "corpus_figures": 3,
    "gate_calibration": 1,
    "identity_prompts": 1,
    "recall_facts": 1,
    "recall_questions": 1,
    "question_speech": 1,
    "rollouts": 1,
    "activity": 1,
    "words": 1,
    "judgements": 1,
    "measurements": 1,
    "statistics": 3,
    "comparisons": 3,
    "tables": 3,
    "figures": 3,
    "report": 3,
    "release": 1,
    "voice_quality": 1,
    "recogniser_quality": 2,
}


def _rubrics(_: Track) -> object:
    from duplex_bench.judging.rubrics import RUBRIC_IDS, rubric

    return {name: rubric(name).sha256 for name in RUBRIC_IDS}


def _metrics(track: Track) -> object:
    from duplex_bench.stages.scoring import versions

    return versions(track)


_DATA: Mapping[str, Callable[[Track], object]] = {"judgements": _rubrics, "measurements": _metrics}


@cache
def of(track: Track, stage: str) -> str:
    """The code version of a stage: its number, and a short digest of the data files it depends on, if any."""
    number = str(VERSIONS[stage])
    if stage not in _DATA:
        return number
    return f"{number}-{digest_value(_DATA[stage](track))[:8]}"
