"""What may be changed when stored rollouts are scored again, and what would need new stimuli or new runs."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from duplex_bench.stages.profile import Profile, ProfileError, parse_profile, shipped_profiles
from duplex_bench.storage.digests import canonical_json

# Settings that decide only how a stored rollout is heard, judged, scored and counted. All else is refused: a setting
# that is new to the profile must not be taken for harmless.
SCORING_SETTINGS: Final = (
    "gate", "speech.recogniser", "speech.voice_activity", "judge", "text_calls", "multiparty.scoring",
    "multiparty.detector", "conversation.scoring", "conversation.recall.min_share",
    "statistics",
)  # fmt: skip
# Those of them that no score hangs on: they may differ without being told.
_IDLE: Final = ("processes", "systems", "rollout.attempts", "rollout.budget_usd")
# Why the others are refused; the first that fits is told.
_REFUSALS: Final = (
    ("rollout", "it decides how systems are run"),
    ("speech.text_to_speech", "it decides what systems hear"),
    ("speech.gap_fill", "it decides the words that labels and points are made from"),
    ("multiparty.analysis", "it decides tables of the report and no score (duplex-bench report makes them)"),
    ("multiparty.reference", "it decides how the transcript is read, which is a run"),
    ("conversation.calibration", "it decides a table beside the scores and no score"),
    ("multiparty", "it decides the scripts and scenes that systems hear"),
    ("conversation", "it decides which recordings, labels and points there are"),
    ("seed", "it decides which items are drawn"),
    ("limit", "it decides which items are drawn"),
)  # fmt: skip
# Settings that also have a part in making stimuli of the conversation track, which rescoring leaves as they are.
_HELD: Final = (
    ("gate", "the points were drawn with the gate of the run, and stay"),
    ("speech.recogniser", "words that gap fill found in the corpus, and so labels and points, stay those of the run"),
    ("speech.voice_activity", "labels and points stay those of the run"),
    ("conversation.recall.min_share", "which facts the strict matcher turned down stays as in the run"),
)


class RescoreRefusedError(ValueError):
    """The change would alter what systems heard or did; the message says which setting and what to do instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting of the profile, before and after, as JSON text."""

    setting: str
    before: str
    after: str


def overlay_of(settings: Sequence[str], profile: str | None = None) -> dict[str, Any]:
    """A TOML table of the settings to change.

    Args:
        settings: ``key=value`` with dotted keys, as ``gate.threshold=0.02``; a bare word is taken as text.
        profile: a TOML file (a whole profile or only some tables), or a shipped profile's name. ``settings`` win.

    Raises:
        ProfileError: no such file, no TOML, or a setting that is not ``key=value``.
    """
    overlay: dict[str, Any] = {}
    if profile is not None:
        overlay = _table(profile)
    for told in settings:
        key, equals, value = told.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ProfileError(f"{told!r} is no setting: give key=value, as gate.threshold=0.02")
        try:
            table = tomllib.loads(f"{key} = {value}")
        except tomllib.TOMLDecodeError:
            try:
                table = tomllib.loads(f"{key} = {canonical_json(value.strip())}")
            except tomllib.TOMLDecodeError as error:
                raise ProfileError(f"{told!r} is no setting: {error}") from error
        overlay = _merged(overlay, table)
    return overlay


def _table(name_or_path: str) -> dict[str, Any]:
    if name_or_path in shipped_profiles():
        text = (resources.files("duplex_bench.profiles") / f"{name_or_path}.toml").read_text("utf-8")
        return tomllib.loads(text)
    path = Path(name_or_path)
    if path.is_dir():
        raise ProfileError(f"{name_or_path} is a folder: name a TOML file of settings (perhaps one in it)")
    if not path.is_file():
        raise ProfileError(f"{name_or_path}: no such profile: name one of {', '.join(shipped_profiles())} or a file")
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{name_or_path}: not TOML: {error}") from error


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in over.items():
        inner = found.get(key)
        found[key] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return found


def changed_profile(base: Profile, overlay: Mapping[str, Any]) -> tuple[Profile, tuple[Change, ...]]:
    """``base`` with the overlay's settings in place of its own, and what that changed; the name stays.

    Raises:
        ProfileError: an unknown key or a wrong value.
        RescoreRefusedError: a setting that stimuli or rollouts hang on.
    """
    before = dataclasses.asdict(base)
    told = {key: value for key, value in overlay.items() if key != "name"}
    changed = parse_profile(_merged(before, told), "the settings to rescore with")
    changes = setting_changes(before, dataclasses.asdict(changed))
    refused = [change for change in changes if not _within(change.setting, SCORING_SETTINGS)]
    if refused:
        first = refused[0]
        why = next((why for prefix, why in _REFUSALS if _within(first.setting, (prefix,))), "stimuli may hang on it")
        more = f" (and {len(refused) - 1} more settings)" if len(refused) > 1 else ""
        raise RescoreRefusedError(
            f"{first.setting} cannot be rescored{more}: {why}. Leave it at {first.before}, or run the changed profile "
            "under a name of its own with duplex-bench run"
        )
    return changed, changes


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Settings in which two profiles, nested as in their TOML, differ; those that no score hangs on are left out."""
    return tuple(
        change for change in _changes(_leaves(before), _leaves(after)) if not _within(change.setting, (*_IDLE, "name"))
    )


def scoring_settings(profile: Profile) -> dict[str, str]:
    """Settings by which a system's stored rollouts are scored, as JSON text, without those of the statistics."""
    told = _leaves(dataclasses.asdict(profile))
    return {name: value for name, value in told.items() if decides_scoring(name) and not _within(name, ("statistics",))}


def decides_scoring(setting: str) -> bool:
    """Whether a setting decides only how stored rollouts are scored, and none decides what systems heard or did."""
    return _within(setting, SCORING_SETTINGS)


def held_fixed(changes: Sequence[Change]) -> tuple[str, ...]:
    """What the changed settings also decide on the conversation track, but is left as it is in the run."""
    return tuple(
        f"{prefix}: {what}" for prefix, what in _HELD if any(_within(change.setting, (prefix,)) for change in changes)
    )


def _within(setting: str, prefixes: Sequence[str]) -> bool:
    return any(setting == prefix or setting.startswith(f"{prefix}.") for prefix in prefixes)


def _leaves(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _leaves(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = canonical_json(value)
    return found


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    return tuple(
        Change(setting, before.get(setting, "-"), after.get(setting, "-"))
        for setting in sorted(before.keys() | after.keys())
        if before.get(setting) != after.get(setting)
    )
