"""What calls cost: a dated price table as data, and estimates that say when they cannot be made."""

import re
import tomllib
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict

from duplex_bench.textmodels.replies import Usage
from duplex_bench.textmodels.settings import ModelSettings

_MILLION: Final = 1_000_000
_FORM: Final = re.compile(r"-(latest|preview(-[\w-]+)?|\d{4}-\d{2}-\d{2}|\d{8})$")


class Price(BaseModel):
    """One row of ``prices.toml``: US dollars a million tokens, ``audio`` a minute; None where nothing was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[str, ...]
    read_on: date
    source: str
    audio: float | None = None
    audio_input: float | None = None
    audio_input_cached: float | None = None
    audio_output: float | None = None
    text_input: float | None = None
    text_output: float | None = None
    text_item: float | None = None


class BatchPrice(BaseModel):
    """One row ``batch`` of ``prices.toml``: what a request of a batch costs of the usual price."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vendor: str
    factor: float
    read_on: date
    source: str


@cache
def batch_factor(vendor: str) -> BatchPrice | None:
    """What a vendor's batches cost of the usual price, or None: not known."""
    text = files("duplex_bench.textmodels").joinpath("prices.toml").read_text("utf-8")
    rows = [BatchPrice.model_validate(row) for row in tomllib.loads(text).get("batch", [])]
    return next((row for row in rows if row.vendor == vendor), None)


@cache
def price_table() -> tuple[Price, ...]:
    """Every price that this version ships."""
    text = files("duplex_bench.textmodels").joinpath("prices.toml").read_text("utf-8")
    return tuple(Price.model_validate(row) for row in tomllib.loads(text)["price"])


def price_of(model: str) -> Price | None:
    """The price of a model, or None: not known. A dated, preview or latest form has the price of its name."""
    name = _FORM.sub("", model)
    return next((price for price in price_table() if model in price.models or name in price.models), None)


def token_prices(settings: ModelSettings) -> tuple[float, float] | None:
    """US dollars for one input and one output token of text: the profile's own, else the table's, else None."""
    if settings.input_usd_per_million is not None and settings.output_usd_per_million is not None:
        return settings.input_usd_per_million / _MILLION, settings.output_usd_per_million / _MILLION
    if settings.vendor == "openai_compatible":
        return None
    found = price_of(settings.model)
    if found is None or found.text_input is None or found.text_output is None:
        return None
    return found.text_input / _MILLION, found.text_output / _MILLION


def cost_usd(settings: ModelSettings, usage: Usage) -> float | None:
    """What a call cost by its usage (cached input at full price: an upper figure); None where price or usage lack."""
    prices = token_prices(settings)
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return prices[0] * usage.input_tokens + prices[1] * usage.output_tokens
