"""Whether a model that judges, selects or writes comes from the maker of a system that it bears on (design 9)."""

import re
from collections.abc import Mapping
from typing import Final

from duplex_bench.textmodels.settings import ModelSettings

_MAKERS: Final[Mapping[str, str]] = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Google"}
_PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "OpenAI", "anthropic": "Anthropic", "google": "Google", "gemini": "Google", "xai": "xAI", "grok": "xAI",
}  # fmt: skip
# Behind a compatible endpoint only the model's name can tell.
_NAMES: Final = (
    (re.compile(r"gpt|(^|[/-])o\d"), "OpenAI"),
    (re.compile(r"claude"), "Anthropic"),
    (re.compile(r"gemini|gemma"), "Google"),
    (re.compile(r"grok"), "xAI"),
)


def maker_of(settings: ModelSettings) -> str:
    """Who made a text model; empty where neither vendor nor name tells."""
    if settings.vendor in _MAKERS:
        return _MAKERS[settings.vendor]
    name = settings.model.lower()
    return next((maker for pattern, maker in _NAMES if pattern.search(name)), "")


def conflict(role: str, settings: ModelSettings, system: str, provider: str) -> str | None:
    """A warning where the model in ``role`` and ``system`` (its card's provider) share a maker; None otherwise."""
    maker = maker_of(settings)
    if not maker or _PROVIDERS.get(provider.lower()) != maker:
        return None
    return f"the {role} {settings.name} and the system {system} are both by {maker}: verdicts may favour their own"
