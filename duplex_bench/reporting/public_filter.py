"""What may leave this machine: stored rows without corpus audio, cloned questions, forced history or corpus words.

Corpus licences let labels, times, scores and what systems said be passed on, not what people said. Free text is left
out by rule, not by looking at it: a text column, a key of ``details``, an attribute or a label passes only if it is
listed here as a name, a digest, a closed vocabulary, our own wording, or the words of a system. What is new is
therefore left out until somebody lists it. The public report and the release bundle both use this module.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import polars as pl

from duplex_bench.reporting.inputs import Table

NOTICE: Final = (
    "System outputs are machine-generated and may not be used to train models; CC BY-NC 4.0. What people said, the "
    "audio that systems heard, forced history and the questions in a cloned voice are left out."
)

# Strings of ``Measurement.details``: closed vocabularies, and what the system itself said.
DETAILS: Final = frozenset({
    "addressee", "answer", "bound", "counted_as", "kind", "outcome", "pause_outcome", "response_text", "speaker",
    "text", "turn_type", "utterance_id",
})  # fmt: skip
# A row about a person's reply (ceiling, floor, the person) holds that person's words under the same keys.
_BOUND_DETAILS: Final = DETAILS - {"answer", "response_text", "text"}
ATTRIBUTES: Final = frozenset({
    "acoustics", "addressing", "asker", "base_item", "domain", "family", "label_rule", "preamble", "question_id",
    "request_third", "source", "speaker", "speakers", "turn_types",
})  # fmt: skip
LABELS: Final = frozenset({"addressee", "kind", "speaker", "turn_type", "utterance_id"})
# Events whose text is the system's own or the driver's; others keep time and kind alone.
EVENT_TEXTS: Final = frozenset({"earlier_attempt", "error", "flush", "rollout", "state", "text"})

# Text columns of tables, stored and printed, that pass as they are.
COLUMNS: Final = frozenset({
    # names, ids, digests
    "annotator", "base_item", "cluster", "condition", "conversations", "decider", "detector", "engine", "events",
    "item_id", "item_a", "item_b", "judge", "judge_a", "judge_b", "judgement_id", "label", "label_rule",
    "listener_audio", "measurement_id", "measurement_a", "measurement_b", "metric", "model_id", "other_metric",
    "point_id", "protocol", "question_id", "rollout_key", "rubric", "scenario_id", "script_id", "session",
    "session_id", "stimulus_digest", "system", "system_a", "system_b", "track", "utterance_id", "vad_engine", "voice",
    "window_id", "run", "profile", "provider", "model", "role", "subject",
    # closed vocabularies
    "addressed_to", "addressee", "adapter_version", "boundary", "by", "correction", "curation", "direction", "domain",
    "edge", "epoch", "family", "flag", "group", "kind", "language", "licence", "named_addressee", "outcome", "pause",
    "quantity", "ranking", "rule", "second", "sensitivity", "setting", "source", "speaker", "stage", "statistic",
    "test", "third", "tie", "turn_type", "unit", "verdict", "what", "acoustics", "addressing", "status", "level",
    "agreement", "system_type",
    # our own wording
    "caption", "check", "compared", "conclusion", "consequence", "drawn_as", "fact", "finding", "in_words", "limit",
    "measure", "method", "paper_section",
    "needs", "note", "number", "omitted", "paper", "reason", "settings", "shown_as", "stands_in_for", "test_method",
    "title", "value",
    # the words of a system
    "answer", "said", "response_text",
})  # fmt: skip
# Beside ``text`` of WORDS, columns of stored tables that hold more than one kind of text.
_STORED_DROPPED: Final[Mapping[str, tuple[str, ...]]] = {
    "items": ("stimulus", "reference"),
    "judgements": ("reason", "raw"),
}
_QUOTING: Final[Mapping[str, tuple[str, ...]]] = {"transcript_reference_decisions": ("answer",)}
_PROSE_AFTER: Final = "no verdict:"


def public_details(details: str | None, *, of_system: bool = True) -> str | None:
    """The JSON of ``details`` without free text that may repeat what people said.

    Args:
        details: JSON object, as MEASUREMENTS holds it, or None.
        of_system: whether the row scores a system; rows of bounds quote people.
    """
    if not details:
        return details
    known = json.loads(details)
    allowed = DETAILS if of_system and "bound" not in known else _BOUND_DETAILS
    return json.dumps({name: value for name, value in known.items() if _passes(name, value, allowed)}, sort_keys=True)


def public_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of a reference: numbers, and the listed names."""
    return {name: value for name, value in attributes.items() if _passes(name, value, ATTRIBUTES)}


def public_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of a window without the text that was said in it."""
    return {name: value for name, value in labels.items() if name in LABELS}


def public_events(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Drawn events without what the system understood from its input, which is what a person said."""
    return [{**event, "text": event["text"] if event["kind"] in EVENT_TEXTS else ""} for event in events]


def public_reason(reason: str | None) -> str | None:
    """Why there is no value, without a judge's prose: that may quote the gold answer."""
    if reason is None or _PROSE_AFTER not in reason:
        return reason
    return reason[: reason.index(_PROSE_AFTER)] + _PROSE_AFTER.removesuffix(":")


def public_stored(name: str, frame: pl.DataFrame, *, of_systems: bool = True, drop: bool = True) -> pl.DataFrame:
    """A stored table of a track (a name of ``inputs.SCHEMAS``) as it may be passed on.

    WORDS pass whole: they are what systems said. Items keep their digests, judgements their verdicts.

    Args:
        name: items, rollouts, activity, words, judgements, measurements, statistics, comparisons.
        frame: the table.
        of_systems: False for measurements of bounds.
        drop: leave columns out that may not pass; False keeps them, empty, so that the table keeps its schema.
    """
    withheld = [column for column in _STORED_DROPPED.get(name, ()) if column in frame.columns]
    kept = frame.drop(withheld) if drop else frame.with_columns(pl.lit(None, pl.String).alias(one) for one in withheld)
    if "details" in kept.columns:
        kept = _mapped(kept, "details", lambda text: public_details(text, of_system=of_systems))
    if "reason" in kept.columns:
        kept = _mapped(kept, "reason", public_reason)
    return kept


def public_table(table: Table) -> Table:
    """A table of the report without the columns that are not listed; its caption names what was left out."""
    frame = table.frame
    kept = [
        name
        for name, kind in frame.schema.items()
        if (name in COLUMNS or kind not in (pl.String, pl.Categorical)) and kind != pl.Object
    ]
    # A reader of the transcript answers in its words.
    kept = [name for name in kept if name not in _QUOTING.get(table.id, ())]
    left_out = [name for name in frame.columns if name not in kept]
    # A reason beside a verdict is the judge's, any other is ours.
    if "verdict" in kept or "gold" in left_out:
        left_out += [name for name in kept if name == "reason"]
        kept = [name for name in kept if name != "reason"]
    frame = frame.select(kept)
    if "reason" in frame.columns:
        frame = _mapped(frame, "reason", public_reason)
    caption = table.caption
    if left_out:
        caption = f"{caption} Left out of this public build: {', '.join(left_out)}."
    return Table(table.id, table.title, caption.strip(), frame)


def _passes(name: str, value: object, allowed: frozenset[str]) -> bool:
    return value is None or isinstance(value, bool | int | float) or name in allowed


def _mapped(frame: pl.DataFrame, column: str, change: Callable[[str | None], str | None]) -> pl.DataFrame:
    if frame.schema[column] != pl.String:
        return frame
    # A table repeats few reasons and details often: each text is changed once.
    texts = frame[column].unique().to_list()
    changed = {text: change(text) for text in texts if text is not None}
    if not changed:
        return frame
    return frame.with_columns(pl.col(column).replace(list(changed), list(changed.values())).alias(column))
