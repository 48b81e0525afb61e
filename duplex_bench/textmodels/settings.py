"""Which text model is asked, and how calls are made: frozen settings that a profile holds."""

import re
from dataclasses import dataclass
from typing import Final, Literal

Vendor = Literal["openai", "anthropic", "gemini", "openai_compatible"]
Effort = Literal["", "low", "medium", "high", "max"]

ANTHROPIC_VERSION: Final = "2026-10-21"
"""The version that the pinned Anthropic package speaks; it refuses sampling parameters."""
_MODEL_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")


class TextModelSettingsError(ValueError):
    """Settings that no call could be made with; the message names the setting and the remedy."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One text model.

    Attributes:
        vendor: whose protocol is spoken. "openai_compatible" is chat completions at ``base_url``.
        model: id as the vendor names it; what the server says it used is stored beside every answer.
        temperature: None sends none. Where an API version or a model refuses it, it is left out and the answer says so.
        max_output_tokens: most tokens of one answer, thinking included.
        effort: how much to reason, for models that take it; empty sends nothing.
        api_version: of the Anthropic API; empty is ``ANTHROPIC_VERSION``. "2023-06-01" still takes a temperature.
        base_url: another address of the API; empty takes the vendor's environment variable, then the vendor's own.
        key_variable: environment variable that holds the key of an "openai_compatible" server; empty sends no key.
        timeout_s: seconds without an answer after which a call counts as lost.
        input_usd_per_million: price of a million input tokens, from the vendor's list; None: not known here.
        output_usd_per_million: the same for output tokens.
        epoch: raise it to ask a drifting model anew on purpose.
    """

    vendor: Vendor
    model: str
    temperature: float | None = None
    max_output_tokens: int = 2048
    effort: Effort = ""
    api_version: str = ""
    base_url: str = ""
    key_variable: str = ""
    timeout_s: float = 120.0
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    epoch: int = 0

    def __post_init__(self) -> None:
        if not _MODEL_ID.fullmatch(self.model) or ".." in self.model:
            raise TextModelSettingsError(f"model {self.model!r} is no model id: letters, digits and . _ : / - only")
        if self.vendor == "openai_compatible" and not self.base_url:
            raise TextModelSettingsError("vendor openai_compatible needs base_url: the address of its /v1")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise TextModelSettingsError(f"base_url {self.base_url!r} is no address: begin it with https:// or http://")
        if self.max_output_tokens < 1 or self.timeout_s <= 0:
            raise TextModelSettingsError("max_output_tokens and timeout_s must be above zero")
        if (self.input_usd_per_million is None) != (self.output_usd_per_million is None):
            raise TextModelSettingsError("give both input_usd_per_million and output_usd_per_million, or neither")

    @property
    def name(self) -> str:
        """Vendor and model, as results name it."""
        return f"{self.vendor}/{self.model}"


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made, whichever the model.

    Attributes:
        concurrency: calls under way at a time.
        attempts: sends of one call: what a rate limit, a server fault or a cut connection ended is sent again.
        first_wait_s: wait before the second send; it doubles from there, with jitter.
        most_wait_s: longest wait between two sends before its jitter, also where the server asks for more.
        readings: answers fetched where one cannot be read, before "no answer".
        budget_usd: most that all runs on this data folder may spend on text models; None sets no limit.
        block_usd: money is set aside in blocks of this size, so that not every call writes a file.
    """

    concurrency: int = 4
    attempts: int = 5
    first_wait_s: float = 1.0
    most_wait_s: float = 60.0
    readings: int = 2
    budget_usd: float | None = None
    block_usd: float = 0.25

    def __post_init__(self) -> None:
        if min(self.concurrency, self.attempts, self.readings) < 1:
            raise TextModelSettingsError("concurrency, attempts and readings must be at least 1")
        if self.first_wait_s < 0 or self.most_wait_s < self.first_wait_s:
            raise TextModelSettingsError("waits must not be negative, and most_wait_s not below first_wait_s")
        if (self.budget_usd is not None and self.budget_usd < 0) or self.block_usd <= 0:
            raise TextModelSettingsError("budget_usd must not be negative, and block_usd above zero")
