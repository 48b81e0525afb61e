"""What an item is called for people: what happens in it, and where it comes from. Ids stay beside it, for machines."""

import re
from collections.abc import Mapping
from typing import Any

from duplex_bench.reporting.formats import clock

_NUMBER = re.compile(r"(?:^|-)0*(\d+)(?:-|$)")
_POINTS = {"pause": "Pause", "turn_end": "Turn end"}
_RECALL = {"conversation_recall": "Recall of the conversation", "fact_recall": "Recall of a fact"}


def item_title(item_id: str, condition: str, cluster: str, attributes: Mapping[str, Any]) -> str:
    """The title of an item: its id where the reference tells too little for one.

    Args:
        item_id: the id.
        condition: addressing form, or kind of point.
        cluster: scenario or conversation.
        attributes: of the item's reference.
    """
    if {"domain", "family"} <= set(attributes):
        place = _NUMBER.search(cluster)
        named = f"{_first_upper(attributes['domain'])}: {_plain(attributes['family'])}, {_plain(condition)}"
        return f"{named} (scene {place[1]})" if place else named
    if condition in _POINTS and "boundary_s" in attributes:
        where = f"{_POINTS[condition]} at {clock(float(attributes['boundary_s']))}"
        who = f", {_plain(attributes['speaker'])} speaker" if "speaker" in attributes else ""
        return f"{where} of {cluster}{who}"
    if condition in _RECALL and "history_target_s" in attributes:
        return f"{_RECALL[condition]} after {float(attributes['history_target_s']):g} s of {cluster}"
    return item_id


def _plain(name: object) -> str:
    return str(name).replace("_", " ")


def _first_upper(name: object) -> str:
    text = _plain(name)
    return text[:1].upper() + text[1:]
