"""Looks at a Python that a card names: which it is, and whether the contract can be served under it."""

import json
import subprocess
from dataclasses import dataclass
from typing import Final

OLDEST_PYTHON: Final = (3, 10)
_FACTS: Final = (
    "import importlib.util, json, sys; "
    "print(json.dumps([sys.version_info[:3], sys.implementation.name, importlib.util.find_spec('numpy') is not None]))"
)
_PATIENCE_S: Final = 60.0


class NoPythonError(ValueError):
    """What was named as a Python cannot be run as one."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python: ``version`` as three numbers, ``implementation`` as it calls itself, whether it finds numpy."""

    version: tuple[int, int, int]
    implementation: str
    has_numpy: bool

    @property
    def title(self) -> str:
        """Its name and version, for messages."""
        return f"{self.implementation} {'.'.join(map(str, self.version))}"

    @property
    def is_old(self) -> bool:
        """Older than the contract can be served under."""
        return self.version[:2] < OLDEST_PYTHON


def look_at(python: str) -> Interpreter:
    """Run ``python`` and ask.

    Raises:
        NoPythonError: It cannot be started, fails, or answers something else.
    """
    try:
        told = subprocess.run(
            [python, "-c", _FACTS], capture_output=True, text=True, check=True, timeout=_PATIENCE_S
        ).stdout
        (major, minor, patch), implementation, has_numpy = json.loads(told)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NoPythonError(f"{python!r} is no Python that can be run") from error
    return Interpreter((major, minor, patch), implementation, has_numpy)


def fault_of(python: str) -> str | None:
    """Why the contract cannot be served under ``python``, and what to do; None if it can."""
    try:
        found = look_at(python)
    except NoPythonError as error:
        return f"{error}: name another"
    if found.is_old:
        return f"{python!r} is {found.title}: name 3.10 or newer"
    if not found.has_numpy:
        return f"{python!r} has no numpy, which the contract needs: {python} -m pip install numpy"
    return None
