"""In which order systems stand in tables and figures: that of the papers, then the others by name."""

from typing import Final

# Both papers' orders in one: P1 has MiniCPM-o, Moshi, FLM-Audio, Voila, Freeze-Omni; P2 has PersonaPlex, Moshi, GPT
# Realtime at 300 ms, 500 ms and semantic, Gemini, Grok. Other ways to run a system follow it.
ROWS: Final = (
    "minicpm-o",
    "minicpm-o-vllm",
    "minicpm-o-demo",
    "personaplex",
    "personaplex-server",
    "moshi",
    "moshi-server",
    "flm-audio",
    "voila",
    "freeze-omni",
    "gpt-realtime-300ms",
    "gpt-realtime-500ms",
    "gpt-realtime-semantic",
    "gemini-live",
    "gemini-live-manual",
    "grok-voice",
)
_PLACES: Final = {name: place for place, name in enumerate(ROWS)}


def row_key(name: str) -> tuple[int, str]:
    """What systems are sorted by."""
    return _PLACES.get(name, len(ROWS)), name
