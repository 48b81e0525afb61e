"""``duplex-bench doctor``: everything a run needs, checked in seconds, each with what to do about it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.markup import escape

from duplex_bench.cli.console import console
from duplex_bench.speech import engines
from duplex_bench.speech.model_catalogue import check_all
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.text_costs import text_models_of
from duplex_bench.systems.card import missing_env
from duplex_bench.systems.environments import not_set_up
from duplex_bench.text.vectors import TextVectors
from duplex_bench.textmodels.access import key_of
from duplex_bench.textmodels.settings import ModelSettings

# The demo leaves about 0.4 GB behind; a run that starts with less ends with a full disk.
LEAST_FREE_BYTES = 2 * 1024**3
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: whether it is right, and what is there."""

    name: str
    right: bool
    told: str


def diagnose(root: Path, data: Path, profile: str) -> bool:
    """Print every finding; True if a run can start."""
    findings = list(_findings(root / data, profile))
    for finding in findings:
        mark = "[green]ok  [/]" if finding.right else "[red]no  [/]"
        console.print(f"{mark} {escape(f'{finding.name}: {finding.told}')}", highlight=False)
    wrong = [finding.name for finding in findings if not finding.right]
    console.print(f"[red]{len(wrong)} to repair:[/] {escape(', '.join(wrong))}" if wrong else "[green]ready to run[/]")
    return not wrong


def _findings(data: Path, profile: str) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= OLDEST_PYTHON, f"{version} (3.11 or newer is needed)")
    yield _tried("profile", lambda: f"{profile}, digest {load_profile(profile).digest[:12]}")
    yield _disk(data)
    for name, told in check_all():
        yield Finding(f"model {name}", told is None, told or "right hash")
    yield _tried("sentence vectors", lambda: TextVectors().engine_id)
    yield _tried("text to speech", lambda: f"{len(engines.text_to_speech().voices)} voices")
    yield _tried("recogniser", lambda: engines.recogniser().engine_id)
    yield from _engines_apart(profile)
    yield from _text_models(profile)
    cards, errors = readable_cards(data / "systems")
    yield Finding("system cards", bool(cards), ", ".join(cards))
    for card in cards.values():
        missing = missing_env(card, os.environ)
        if missing:
            yield Finding(f"system {card.name}", True, f"not run here: set {' and '.join(missing)} to run it")
        undone = not_set_up(card, data / "cache")
        if undone is not None:
            yield Finding(f"system {card.name}", True, f"not run here: {undone}")
    for error in errors:
        yield Finding(f"card {error.file}", False, f"{error.message}; {error.remedy}")


def _text_models(profile: str) -> Iterator[Finding]:
    try:
        found = text_models_of(load_profile(profile))
    except ValueError:
        return  # told above, as the profile's own finding
    for role, model in found:
        yield _tried(f"{role} {model.name}", partial(_key_found, model))


def _key_found(model: ModelSettings) -> str:
    return "its key is in the environment" if key_of(model) else "it needs no key"


def _engines_apart(profile: str) -> Iterator[Finding]:
    try:
        speech = load_profile(profile).speech
    except ValueError:
        return  # told above, as the profile's own finding
    if engines.runs_apart(speech.text_to_speech):
        yield _tried(speech.text_to_speech, lambda: engines.text_to_speech(speech.text_to_speech).engine_id)
    for name in dict.fromkeys((speech.recogniser, speech.gap_fill)):
        if engines.runs_apart(name):
            yield _tried(name, partial(_recogniser_id, name))


def _recogniser_id(name: str) -> str:
    return engines.recogniser(name).engine_id


def _tried(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    except (ValueError, OSError, ImportError) as error:
        return Finding(name, False, str(error))


def _disk(data: Path) -> Finding:
    folder = next(parent for parent in (data, *data.parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    told = f"{free / 1024**3:.1f} GiB free at {folder}"
    return Finding("disk", free >= LEAST_FREE_BYTES, told if free >= LEAST_FREE_BYTES else f"{told}; free 2 GiB")
