"""Environments that are made from a card's lock: one folder for each text of a lock, whole or not used."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.interpreters import NoPythonError, look_at

_DIGEST_CHARS: Final = 16
_TOLD_CHARS: Final = 3000
# Written last: a folder without it was left half made.
_COMPLETE: Final = "duplex-bench-complete.json"


class EnvironmentSetupError(ValueError):
    """An environment could not be made; the message ends with what the failing step said and what to do."""


@dataclass(frozen=True, slots=True)
class MadeEnvironment:
    """An environment that stands: its folder, its interpreter, and whether it was made just now."""

    folder: Path
    interpreter: Path
    is_new: bool


def environment_folder(card: SystemCard, cache_folder: Path) -> Path:
    """Where the environment of ``card``'s lock lies: cards of one lock share it.

    Raises:
        EnvironmentSetupError: The card has no lock, or was not resolved.
    """
    digest = card.environment.lock_sha256
    if digest is None:
        raise EnvironmentSetupError(
            f"system {card.name} names no lock: there is nothing to set up. "
            "A card that says environment.lock has its environment made by `systems setup`"
        )
    return cache_folder.absolute() / "environments" / digest[:_DIGEST_CHARS]


def made_interpreter(card: SystemCard, cache_folder: Path) -> Path | None:
    """The interpreter of the environment made of ``card``'s lock; None if it is not there, or not whole."""
    folder = environment_folder(card, cache_folder)
    interpreter = folder / "bin" / "python"
    return interpreter if (folder / _COMPLETE).is_file() and interpreter.exists() else None


def set_up(
    card: SystemCard,
    cache_folder: Path,
    python: str = sys.executable,
    *,
    again: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> MadeEnvironment:
    """Make the environment of ``card``'s lock, unless it stands already.

    Two calls at once wait for each other. One that was interrupted leaves nothing that is used: the next begins anew.
    pip runs with the user's own configuration (index, certificates, wheels); ``--require-hashes`` is its own rule
    once a lock holds hashes.

    Args:
        card: With its paths resolved.
        cache_folder: The environment lies in ``environments/`` below it.
        python: Interpreter to make it with, at least 3.10.
        again: Make it anew although it stands.
        say: Told each step.

    Raises:
        EnvironmentSetupError: No lock, no such Python, or pip refused; nothing is left behind.
    """
    folder = environment_folder(card, cache_folder)
    lock = Path(str(card.environment.lock))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_suffix(".lock"), say):
        standing = made_interpreter(card, cache_folder)
        if standing is not None and not again:
            return MadeEnvironment(folder, standing, is_new=False)
        version = _version_of(python)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            say(f"making {folder} with Python {version}")
            _run([python, "-m", "venv", str(folder)], "the virtual environment could not be made")
            interpreter = folder / "bin" / "python"
            say(f"installing {lock.name}")
            install = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*install, "--requirement", str(lock)], f"the lock {lock} could not be installed")
            _run([str(interpreter), "-c", "import numpy"], f"the lock {lock} holds no numpy, which the worker needs")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        facts = {"lock": lock.name, "lock_sha256": card.environment.lock_sha256, "python": version}
        partial = folder / f"{_COMPLETE}.new"
        partial.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        partial.replace(folder / _COMPLETE)
        return MadeEnvironment(folder, interpreter, is_new=True)


@contextmanager
def _alone(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is making it: waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _version_of(python: str) -> str:
    try:
        found = look_at(python)
    except NoPythonError as error:
        raise EnvironmentSetupError(f"{error}: name one with --python") from error
    if found.is_old or found.implementation != "cpython":
        raise EnvironmentSetupError(f"{python!r} is {found.title}: CPython 3.10 or newer is needed")
    return ".".join(map(str, found.version))


def _run(command: list[str], what: str) -> None:
    # The variables of our own environment would send pip and Python to our packages.
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=kept, check=False)
    except OSError as error:
        raise EnvironmentSetupError(f"{what}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-_TOLD_CHARS:]
        raise EnvironmentSetupError(
            f"{what} (status {done.returncode}): {said or 'it said nothing'}\n"
            "Correct the lock, or name another interpreter with --python, then run it again"
        )
