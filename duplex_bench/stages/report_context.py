"""What the report says about a run beside its tables: warnings, what was not measured and why, cards for reading."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from duplex_bench.judging.conflicts import conflict
from duplex_bench.records.items import Track
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages.conformance import stored_examination
from duplex_bench.stages.profile import Profile
from duplex_bench.stages.text_costs import text_models_of
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.card import SystemCard

# Fields of a card that its page shows by themselves, and those of a plain default that tell a reader nothing.
_SHOWN_APART: Final = frozenset({"name", "title", "family", "licence", "stands_in_for", "notes"})
_RECALL_OFF: Final = (
    "recall is off in profile {profile} (conversation.recall.enabled): its probes need planted or extracted facts and "
    "a cloned voice for the question"
)
_RECALL_NONE: Final = "no conversation of this run gave a recall point"


def warnings(workspace: Workspace, tracks: Sequence[TrackTables], cards: Sequence[SystemCard]) -> tuple[str, ...]:
    """What a reader must know before believing a number: models and systems of one maker, results scored anew."""
    ran = {name for track in tracks for name in track.rollouts["system"]}
    found = [
        f"Judge and judged share a maker: {told}."
        for role, settings in _models(workspace.profile)
        for card in cards
        if card.name in ran and card.provider
        for told in [conflict(role, settings, card.name, card.provider)]
        if told is not None
    ]
    found += [
        f"Stored results of this run were also scored under other settings, as \N{LEFT DOUBLE QUOTATION MARK}{name}"
        f"\N{RIGHT DOUBLE QUOTATION MARK}; this page shows the settings of profile {workspace.profile.name}. {notice}"
        for name, notice in rescored(workspace)
    ]
    return tuple(dict.fromkeys(found))


def _models(profile: Profile) -> list[tuple[str, Any]]:
    """Every model that judges, selects, writes or reads, with its role."""
    found: list[tuple[str, Any]] = list(text_models_of(profile))
    known = {role for role, _ in found}
    conversation = profile.conversation
    for role, settings in (("point judge", conversation.point_judge), ("recall probes", conversation.recall.model)):
        if settings is not None and role not in known:
            found.append((role, settings))
    return found


def rescored(workspace: Workspace) -> list[tuple[str, str]]:
    """Name and comparability notice of every time that results of this profile were scored anew, by name."""
    found = []
    for path in sorted(workspace.data.glob(f"rescored/{workspace.profile.name}-rescored-*/rescore.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        found.append((str(told["name"]), str(told["notice"])))
    return found


def unmeasured(workspace: Workspace, tracks: Sequence[TrackTables]) -> dict[str, str]:
    """By metric id, why this run has no row of it; metrics with rows are not in it."""
    found: dict[str, str] = {}
    for track in tracks:
        measured = set(track.measurements["metric"])
        protocols = set(track.items["protocol"])
        for card in track.cards:
            if card.id not in measured:
                found[card.id] = _why(workspace.profile, track.track, card.id, protocols)
    return found


def _why(profile: Profile, track: Track, metric: str, protocols: set[str]) -> str:
    if track == "conversation" and metric.startswith("recall"):
        if not profile.conversation.recall.enabled:
            return _RECALL_OFF.format(profile=profile.name)
        return _RECALL_NONE if "recall" not in protocols else "no recall point was scored"
    return "no window of this run is one that this metric scores"


def card_facts(card: SystemCard) -> dict[str, str]:
    """A card's fields for reading: what the page does not show anyway, and what is not the default."""
    plain = card.model_dump(mode="json", exclude_defaults=True)
    if "environment" in plain:
        # As the card has it: where this machine keeps its folders tells a reader nothing, and is the same nowhere else.
        plain["environment"] |= plain["environment"].pop("as_written", {})
    return {
        name: _text(value) for name, value in plain.items() if name not in _SHOWN_APART and value not in ("", {}, [])
    }


def conformance(workspace: Workspace, card: SystemCard) -> str:
    """The level that the card's adapter reached in the conformance suite, and when; empty if it was not checked."""
    kept = stored_examination(card, workspace.store)
    if kept is None:
        return ""
    level = kept.examination.level
    reached = f"level {level} (of must, should, optional)" if level else "breaks the contract"
    return f"{reached}, checked {kept.checked_at[:10]}"


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(inner)}" for name, inner in value.items() if inner not in (None, "", [], {}))
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
