"""Keys live in the environment alone: which values are keys, and texts without them.

What others say may repeat a key (a vendor's refusal, a traceback, an address with a password), so every text that is
kept is passed through ``redacted`` by whoever keeps it: records of rollouts, errors of items, logs, a run's events.
"""

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

# Parts of names of variables that hold keys.
KEY_NAMES: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
# Shorter values ("1", "yes") stand in ordinary text too; no vendor's key is so short. Passwords are at times.
LEAST_KEY: Final = 12
LEAST_PASSWORD: Final = 8


def secret_values(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Secret text to the name of the variable that holds it: keys, and passwords within addresses; longest first."""
    found: dict[str, str] = {}
    for name, value in (os.environ if environ is None else environ).items():
        # A path, as in SSH_KEY_FILE, is no secret, and stands in every second message.
        is_key = any(part in name.upper() for part in KEY_NAMES) and not value.startswith(("/", "./"))
        if is_key and len(value) >= LEAST_KEY:
            found.setdefault(value, name)
        if "://" in value and "@" in value:
            for password in _passwords(value):
                found.setdefault(password, name)
    return {text: found[text] for text in sorted(found, key=len, reverse=True)}


def redacted(text: str, environ: Mapping[str, str] | None = None) -> str:
    """``text`` with each key of the environment replaced by the name of its variable."""
    for value, name in secret_values(environ).items():
        if value in text:
            text = text.replace(value, f"[{name}]")
    return text


def _passwords(address: str) -> set[str]:
    try:
        password = urlsplit(address).password
    except ValueError:
        return set()
    # As it stands in the address, and as a client that decoded it may print it.
    return {password, unquote(password)} if password and len(password) >= LEAST_PASSWORD else set()
