"""What changes if short speech counts as none: recomputed from stored activity, without a rollout (P1 A3.5)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import polars as pl

from duplex_bench.reporting.estimates import Row
from duplex_bench.reporting.inputs import Table
from duplex_bench.reporting.tables.multiparty_windows import groups, made

_SCHEMA: Final = (
    ("system", pl.String),
    ("condition", pl.String),
    ("minimum_speech_s", pl.Float64),
    ("n_requests", pl.Int64),
    ("response_presence", pl.Float64),
    ("fresh_onset", pl.Float64),
    ("n_silence", pl.Int64),
    ("silence_preservation", pl.Float64),
    ("silence_rank", pl.Int64),
)


def minimum_speech(frame: pl.DataFrame, thresholds_s: Sequence[float], references: Collection[str] = ()) -> Table:
    """Rates where a window counts as holding speech only from a minimum on.

    Speech is the detected seconds inside the window, as stored with every score. A silence window with less passes;
    a request with less has no response. A window without a verdict is left out unless it passes by this rule.
    """
    rows: list[Row] = []
    for (system, condition), part in groups(frame, "system", "condition"):
        request = part.filter((pl.col("metric") == "response_presence") & pl.col("speech_in_window_s").is_not_null())
        fresh = part.filter((pl.col("metric") == "fresh_onset_response") & pl.col("speech_in_window_s").is_not_null())
        silence = part.filter((pl.col("metric") == "silence_preservation") & pl.col("speech_in_window_s").is_not_null())
        if not request.height and not silence.height:
            continue
        for threshold in thresholds_s:
            enough = (pl.col("speech_in_window_s") > 0) & (pl.col("speech_in_window_s") >= threshold)
            kept = silence.select(pl.when(enough).then(pl.col("value")).otherwise(1.0).alias("v"))["v"].drop_nulls()
            rows.append(
                {"system": system, "condition": condition, "minimum_speech_s": float(threshold),
                 "n_requests": request.height, "response_presence": _share(request, enough),
                 "fresh_onset": _share(fresh, enough & (pl.col("value") == 1.0)), "n_silence": len(kept),
                 "silence_preservation": float(kept.sum()) / len(kept) if len(kept) else None}
            )  # fmt: skip
    _rank(rows, references)
    return made(
        "minimum-speech",
        "Multiparty: sensitivity to short speech",
        "Detected speech shorter than the minimum in a window counts as none (P1 A3.5; minima ours). Recomputed from "
        f"stored activity. Rank 1 preserves silence best among the systems of a condition, policies left out: "
        f"{_said(rows)}.",
        rows,
        _SCHEMA,
    )


def _share(rows: pl.DataFrame, condition: pl.Expr) -> float | None:
    return rows.filter(condition).height / rows.height if rows.height else None


def _rank(rows: list[Row], references: Collection[str]) -> None:
    for row in rows:
        rivals = [
            other["silence_preservation"]
            for other in rows
            if other["condition"] == row["condition"]
            and other["minimum_speech_s"] == row["minimum_speech_s"]
            and other["system"] not in references
            and other["silence_preservation"] is not None
        ]
        if row["system"] not in references and row["silence_preservation"] is not None:
            row["silence_rank"] = 1 + sum(value > row["silence_preservation"] for value in rivals)


def _said(rows: Sequence[Row]) -> str:
    ranks: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if row.get("silence_rank") is not None:
            ranks.setdefault((row["system"], row["condition"]), set()).add(row["silence_rank"])
    moved = _moved(ranks)
    return "no rank changes over these minima" if not moved else f"ranks change for {', '.join(moved)}"


def _moved(ranks: Mapping[tuple[str, str], set[int]]) -> list[str]:
    return [f"{system} ({condition})" for (system, condition), seen in sorted(ranks.items()) if len(seen) > 1]
