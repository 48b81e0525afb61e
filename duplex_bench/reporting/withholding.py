"""What may leave the house of an item whose text is not ours to give: numbers, and names from closed vocabularies.

A corpus's words come back in many places: transcripts, gold answers, what a judge was asked and replied, labels of
windows. The rule is the same everywhere and lets nothing pass by default: numbers, truth values and names of
``NAMES`` stay; what a system said stays (it is machine-generated); every other text goes.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from duplex_bench.records.outcome import Outcome

# Labels of windows, attributes of references and details of scores whose values are from closed vocabularies or ids.
NAMES: Final = frozenset({
    "turn_type", "turn_types", "addressee", "named_addressee", "speaker", "speakers", "utterance_id", "kind", "asker",
    "outcome", "pause_outcome", "domain", "family", "preamble", "acoustics", "addressing", "base_item",
    "request_third", "label_rule", "question_id", "bound",
})  # fmt: skip
# Details that hold what a system said.
SAID: Final = frozenset({"answer", "text", "response_text"})
# Reasons are fixed texts of ours, but for what follows one of these: the words of a judge or of a vendor's server.
_QUOTING: Final = ("no verdict", *(str(outcome) for outcome in Outcome))
# Absolute paths and addresses say where something ran, never what came out.
_PLACE: Final = re.compile(r"(?<![\w./~-])(?:~?/[\w.@+-]+(?:/[\w.@+-]*)+|[A-Za-z]:\\[^\s'\"]+|\w+://[^\s'\"]+)")


def public_stimulus(text: str) -> str:
    """A stimulus without identity prompt and history turns: what is left are digests and lengths of its audio."""
    told = json.loads(text)
    return _json({**told, "identity_prompt": None, "history": []})


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
            "attributes": _plain(told["attributes"]),
            "windows": [
                {**window, "labels": _plain(window["labels"]), "marks": _plain(window["marks"])}
                for window in told["windows"]
            ],
        }
    )


def public_details(text: str, *, of_system: bool) -> str:
    """Details of a score without words but those that a system said.

    Args:
        text: the JSON object of column ``details``.
        of_system: whether a system was scored; what a person said is the corpus's.
    """
    told = json.loads(text) if text else {}
    said = {name: value for name, value in told.items() if of_system and name in SAID}
    return _json({**_plain(told), **said})


def public_reason(reason: str | None) -> str | None:
    """A reason without what it quotes of a judge or a server."""
    if reason is None:
        return None
    head = reason.partition(":")[0]
    return head if head in _QUOTING else reason


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


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and name in NAMES)
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
