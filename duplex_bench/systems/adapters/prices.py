"""What a session cost, from the usage that its vendor reported and the prices in ``prices.toml``."""

import tomllib
from functools import cache
from importlib.resources import files


@cache
def _prices() -> dict[str, dict[str, float]]:
    text = files("duplex_bench.systems.adapters").joinpath("prices.toml").read_text(encoding="utf-8")
    return {name: dict(table) for name, table in tomllib.loads(text).items()}


def cost_usd(model: str, usage: dict[str, float]) -> float | None:
    """US dollars for ``usage``, or None for a model without known prices.

    Args:
        model: As the vendor names it.
        usage: Counts by name: text_in, audio_in, cached_in, text_out, audio_out in tokens; billable_s in seconds.
    """
    known = [name for name in _prices() if model.startswith(name)]
    if not known:
        return None
    prices = _prices()[max(known, key=len)]
    tokens = sum(usage.get(name, 0.0) * price for name, price in prices.items() if name != "minute") / 1e6
    return tokens + prices.get("minute", 0.0) * usage.get("billable_s", 0.0) / 60


def usd_per_minute(model: str) -> tuple[float, float] | None:
    """US dollars for a minute of session, low and high (ours), or None for a model without known prices.

    Low: the user's speech heard once. High: as long a reply, and everything re-read twice. A minute of speech is about
    600 tokens in and 1,200 out on OpenAI, 1,500 either way on Gemini.
    """
    known = [name for name in _prices() if model.startswith(name)]
    if not known:
        return None
    prices = _prices()[max(known, key=len)]
    if "minute" in prices:
        return prices["minute"], 2 * prices["minute"]
    tokens_in, tokens_out = (1500, 1500) if model.startswith("gemini") else (600, 1200)
    low = tokens_in * prices["audio_in"] / 1e6
    return low, 3 * (low + tokens_out * prices["audio_out"] / 1e6)
