"""What a session cost, from the usage that its vendor reported and the price table of ``textmodels``."""

from typing import Final

from duplex_bench.textmodels.prices import Price, price_of

_COUNTED: Final = ("text_in", "audio_in", "cached_in", "text_out", "audio_out")


def _per_token(price: Price) -> dict[str, float]:
    # Cached input whose own price is not known counts in full: a bill is never told too low.
    cached = price.audio_input if price.audio_input_cached is None else price.audio_input_cached
    found = (price.text_input, price.audio_input, cached, price.text_output, price.audio_output)
    return {name: usd / 1e6 for name, usd in zip(_COUNTED, found, strict=True) if usd is not None}


def cost_usd(model: str, usage: dict[str, float]) -> float | None:
    """US dollars for ``usage``, or None for a model without known prices.

    Args:
        model: As the vendor names it.
        usage: Counts by name: text_in, audio_in, cached_in, text_out, audio_out in tokens; billable_s in seconds;
            text_items, where a vendor charges for each item of text in a conversation.
    """
    price = price_of(model)
    if price is None:
        return None
    tokens = sum(usage.get(name, 0.0) * usd for name, usd in _per_token(price).items())
    items = (price.text_item or 0.0) * usage.get("text_items", 0.0)
    return tokens + items + (price.audio or 0.0) * usage.get("billable_s", 0.0) / 60


def usd_per_text_item(model: str) -> float:
    """US dollars for an item of text that is put into a conversation; 0 where none is charged or no price is known."""
    price = price_of(model)
    return 0.0 if price is None else price.text_item or 0.0


def usd_per_minute(model: str) -> tuple[float, float] | None:
    """US dollars for a minute of session, low and high (ours), or None for a model without known prices.

    Low: the user's speech heard once. High: as long a reply, and everything re-read twice. A minute of speech is about
    600 tokens in and 1,200 out on OpenAI, 1,500 either way on Gemini.
    """
    price = price_of(model)
    if price is None:
        return None
    if price.audio is not None:
        return price.audio, 2 * price.audio
    usd = _per_token(price)
    tokens_in, tokens_out = (1500, 1500) if model.startswith("gemini") else (600, 1200)
    low = tokens_in * usd["audio_in"]
    return low, 3 * (low + tokens_out * usd["audio_out"])
