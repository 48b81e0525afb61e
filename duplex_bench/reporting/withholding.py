"""The release bundle's part of what may leave this machine: whole records, and where something ran.

Which texts pass is decided in ``public_filter``, for the public report and the bundle alike. Here records are emptied
so that they can still be read and scored, and paths and addresses are taken out of every text.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import polars as pl

from duplex_bench.records.outcome import Outcome
from duplex_bench.reporting import public_filter
from duplex_bench.reporting.public_filter import public_attributes, public_details, public_labels

# What follows one of these in a reason are the words of a vendor's server, which may repeat what it was sent.
_QUOTING: Final = frozenset(str(outcome) for outcome in Outcome)
# Absolute paths and addresses say where something ran, never what came out.
_PLACE: Final = re.compile(r"(?<![\w./~-])(?:~?/[\w.@+-]+(?:/[\w.@+-]*)+|[A-Za-z]:\\[^\s'\"]+|\w+://[^\s'\"]+)")


def public_stimulus(text: str) -> str:
    """A stimulus without identity prompt, history turns and words: digests and lengths of its audio are left."""
    told = json.loads(text)
    # Bundles that were made before a stimulus had them stay as they are.
    words: dict[str, list[str]] = {"history_words": []} if "history_words" in told else {}
    return _json({**told, "identity_prompt": None, "history": [], **words})


def public_reference(text: str) -> str:
    """A reference without words: windows with times and names, how long and how many words the person's reply had."""
    told = json.loads(text)
    reply = told["human_reply"]
    return _json(
        {
            **told,
            "gold_answer": None,
            "transcript": [],
            "human_reply": None if reply is None else {**reply, "text": ""},
            "attributes": public_attributes(told["attributes"]),
            "windows": [{**window, "labels": public_labels(window["labels"])} for window in told["windows"]],
        }
    )


def public_scores(frame: pl.DataFrame, *, of_system: bool) -> pl.DataFrame:
    """Measurements without words but those that a system said, in reasons and details."""
    return frame.with_columns(
        mapped("reason", public_reason), mapped("details", lambda text: public_details(text, of_system=of_system))
    )


def public_verdicts(frame: pl.DataFrame) -> pl.DataFrame:
    """Judgements without the judge's words, which may quote what it was asked about."""
    return frame.with_columns(pl.lit("").alias("reason"), pl.lit("").alias("raw"))


def public_reason(reason: str | None) -> str | None:
    """A reason without what it quotes of a judge or a server."""
    kept = public_filter.public_reason(reason)
    head = (kept or "").partition(":")[0]
    return head if head in _QUOTING else kept


def mapped(name: str, rule: Callable[[Any], Any]) -> pl.Expr:
    """A text column with ``rule`` applied to every text in it."""
    return pl.col(name).map_elements(rule, return_dtype=pl.String, skip_nulls=True)


def without_places(text: str | None) -> str | None:
    """A text without absolute paths and addresses of the machine that it was written on."""
    return None if text is None else _PLACE.sub("<place>", text)


def placeless(value: Any) -> Any:
    """Settings without absolute paths and addresses, at any depth."""
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, Mapping):
        return {key: placeless(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [placeless(inner) for inner in value]
    return value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
