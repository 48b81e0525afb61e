"""Address and key of each provider, from settings and environment. Keys never leave this module and the transport."""

import os
from collections.abc import Mapping
from typing import Final

from duplex_bench.textmodels.errors import MissingKeyError
from duplex_bench.textmodels.settings import ModelSettings, Vendor

# The first variable that is set counts; where two are, Google's own package prefers the first.
KEY_VARIABLES: Final[Mapping[Vendor, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
_URL_VARIABLES: Final[Mapping[Vendor, str]] = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
_URLS: Final[Mapping[Vendor, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
HIDDEN: Final = "[key]"


def base_url(settings: ModelSettings) -> str:
    """Where the API is: the settings, the vendor's environment variable, or the vendor's own address."""
    if settings.base_url:
        return settings.base_url
    return os.environ.get(_URL_VARIABLES[settings.vendor], "") or _URLS[settings.vendor]


def _variables(settings: ModelSettings) -> tuple[str, ...]:
    if settings.vendor == "openai_compatible":
        return (settings.key_variable,) if settings.key_variable else ()
    return KEY_VARIABLES[settings.vendor]


def has_key(settings: ModelSettings) -> bool:
    """Whether calls to this model can be made: its key is set, or it needs none."""
    names = _variables(settings)
    return not names or any(os.environ.get(name) for name in names)


def key_of(settings: ModelSettings) -> str:
    """The key from the environment; empty for a server that needs none.

    Raises:
        MissingKeyError: none of its variables is set.
    """
    names = _variables(settings)
    for name in names:
        if value := os.environ.get(name):
            return value
    if not names:
        return ""
    raise MissingKeyError(
        f"{settings.name} needs a key: set {' or '.join(names)} in the environment, or choose the embedded engine"
    )


def without_key(text: str, key: str) -> str:
    """``text`` with the key hidden, whatever a server echoed."""
    return text.replace(key, HIDDEN) if key else text
