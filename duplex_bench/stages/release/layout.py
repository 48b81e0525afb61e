"""What lies in a release bundle: files, tables with their columns, and the terms of each kind of row."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from duplex_bench.records import tables
from duplex_bench.records.tables import Schema
from duplex_bench.reporting.places import RELEASE_MANIFEST, RELEASE_MARKER

# Raised when a bundle of before cannot be read as one of now.
FORMAT: Final = 1
MARKER: Final = RELEASE_MARKER
MANIFEST: Final = RELEASE_MANIFEST
CROISSANT: Final = "croissant.json"
CARD: Final = "README.md"
PROFILE: Final = "profile.json"
METRICS: Final = "metric_cards.json"
AUDIO: Final = "audio"
PROMPTS: Final = "prompts"

# What systems said, and numbers made from it (design 11).
OUTPUT_LICENCE: Final = "CC BY-NC 4.0; machine-generated; not for training"
NUMBERS_LICENCE: Final = "CC BY-NC 4.0"

_TRACK: Final[Schema] = {"track": pl.String}
# ``licence`` is that of the row; ``source_licence`` that of the scenario or conversation it was made on.
_LICENCE: Final[Schema] = {"licence": pl.String}
_TERMS: Final[Schema] = {"licence": pl.String, "source_licence": pl.String}

TABLES: Final[Mapping[str, Schema]] = {
    "measurements": {**_TRACK, **tables.MEASUREMENTS, **_TERMS},
    "judgements": {**_TRACK, **tables.JUDGEMENTS, "raw_sha256": pl.String, **_TERMS},
    "rollouts": {**_TRACK, **tables.ROLLOUTS, "audio": pl.String, "model_licence": pl.String, **_TERMS},
    "activity": {**_TRACK, **tables.ACTIVITY, **_LICENCE},
    "words": {**_TRACK, **tables.WORDS, **_LICENCE},
    "events": {
        **_TRACK, "system": pl.String, "rollout_key": pl.String, "place": pl.Int64, "kind": pl.String,
        "at_s": pl.Float64, "text": pl.String, **_LICENCE,
    },
    "items": {**tables.ITEMS, "withheld": pl.Boolean},
    "bounds": {**_TRACK, **tables.MEASUREMENTS, **_TERMS},
    "statistics": {**tables.STATISTICS, **_LICENCE},
    "comparisons": {**tables.COMPARISONS, **_LICENCE},
    "labels": {
        **_TRACK, "session_id": pl.String, "speaker": pl.String, "kind": pl.String, "start_s": pl.Float64,
        "end_s": pl.Float64, "rule": pl.String, "confidence": pl.Float64, "source": pl.String, **_LICENCE,
    },
    "points": {
        **_TRACK, "point_id": pl.String, "session_id": pl.String, "kind": pl.String, "speaker": pl.String,
        "boundary_s": pl.Float64, "pause_s": pl.Float64, "ranking": pl.Float64, **_LICENCE,
    },
    "scripts": {
        **_TRACK, "scenario_id": pl.String, "explicit_request": pl.String, "implicit_request": pl.String,
        "rewritten": pl.Int64, "differing": pl.Int64, "utterances": pl.Int64, "pair": pl.String, **_LICENCE,
    },
    "cards": {
        "system": pl.String, "title": pl.String, "family": pl.String, "execution_digest": pl.String,
        "stands_in_for": pl.String, "licence": pl.String, "card": pl.String,
    },
}  # fmt: skip

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "measurements": "One score, or the reason why there is none, for each metric of each window of each system.",
    "judgements": "Verdicts of judges with rubric, version and raw response (withheld where it may quote a corpus).",
    "rollouts": "One run of one system on one stimulus: outcome, times, and the file of what a listener heard.",
    "activity": "When each system spoke: intervals of the energy gate and of the voice detector, in seconds.",
    "words": "What each system said, with times, by the recogniser that is named.",
    "events": "What each system sent, in order: kind, second, and its own text where it gave one.",
    "items": "What systems were run on: digests of the audio, windows with their times, licence, language.",
    "bounds": "Scores of people, floors, ceilings and transcript readers on the same windows.",
    "statistics": "Estimates with intervals, counts and tie groups.",
    "comparisons": "Pairs of systems: difference, interval, tests.",
    "labels": "Turns, pauses, backchannels, overlaps and failed takes of the conversations, with rule and confidence.",
    "points": "Pauses and turn ends that were drawn.",
    "scripts": "Scenario pairs of the multiparty track, where they are ours to give.",
    "cards": "What each system is, how it was run, and under which terms.",
}
