"""Column names and types of every table that passes between stages. Seconds are float64 in columns ending ``_s``."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

Schema = Mapping[str, Any]

ITEMS: Final[Schema] = {
    "item_id": pl.String, "track": pl.String, "cluster": pl.String, "condition": pl.String, "protocol": pl.String,
    "stimulus_digest": pl.String, "stimulus": pl.String, "reference": pl.String, "licence": pl.String,
    "language": pl.String, "live_s": pl.Float64,
}  # fmt: skip

ROLLOUTS: Final[Schema] = {
    "rollout_key": pl.String, "item_id": pl.String, "system": pl.String, "stimulus_digest": pl.String,
    "repeat": pl.Int64, "outcome": pl.String, "reason": pl.String, "listener_audio": pl.String,
    "sample_rate_hz": pl.Int64, "timeline_s": pl.Float64, "input_s": pl.Float64, "events": pl.String,
    "compute_s": pl.Float64, "wall_s": pl.Float64, "attempts": pl.Int64,
}  # fmt: skip

ACTIVITY: Final[Schema] = {
    "rollout_key": pl.String, "system": pl.String, "gate_s": pl.List(pl.List(pl.Float64)),
    "vad_s": pl.List(pl.List(pl.Float64)), "gate_threshold": pl.Float64, "gate_release_ratio": pl.Float64,
    "gate_min_duration_s": pl.Float64, "vad_engine": pl.String,
}  # fmt: skip

WORD_STRUCT: Final = pl.Struct({"text": pl.String, "start_s": pl.Float64, "end_s": pl.Float64, "aligned": pl.Boolean})

WORDS: Final[Schema] = {
    "rollout_key": pl.String, "system": pl.String, "text": pl.String, "n_words": pl.Int64,
    "words": pl.List(WORD_STRUCT), "engine": pl.String,
}  # fmt: skip

JUDGEMENTS: Final[Schema] = {
    "judgement_id": pl.String, "rollout_key": pl.String, "item_id": pl.String, "window_id": pl.String,
    "system": pl.String, "rubric": pl.String, "rubric_version": pl.Int64, "judge": pl.String,
    "verdict": pl.String, "reason": pl.String, "raw": pl.String,
}  # fmt: skip

MEASUREMENTS: Final[Schema] = {
    "measurement_id": pl.String, "system": pl.String, "item_id": pl.String, "rollout_key": pl.String,
    "window_id": pl.String, "cluster": pl.String, "condition": pl.String, "metric": pl.String,
    "metric_version": pl.Int64, "value": pl.Float64, "reason": pl.String, "at_s": pl.Float64,
    "details": pl.String,
}  # fmt: skip

STATISTICS: Final[Schema] = {
    "track": pl.String, "system": pl.String, "condition": pl.String, "metric": pl.String, "statistic": pl.String,
    "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "q1": pl.Float64, "q3": pl.Float64,
    "n_scored": pl.Int64, "n_expected": pl.Int64, "n_clusters": pl.Int64, "method": pl.String,
    "reason": pl.String, "tie_group": pl.Int64,
}  # fmt: skip

COMPARISONS: Final[Schema] = {
    "track": pl.String, "condition": pl.String, "metric": pl.String, "system_a": pl.String, "system_b": pl.String,
    "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "p_corrected": pl.Float64,
    "correction": pl.String, "n_pairs": pl.Int64, "n_clusters": pl.Int64, "minimum_detectable": pl.Float64,
    "test": pl.String,
}  # fmt: skip
