"""The cast: which engine speaks each voice, and by which recipe. Data in ``voices.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from duplex_bench.storage.digests import digest_value


@dataclass(frozen=True, slots=True)
class VoiceRecipe:
    """How one voice is made.

    ``pitch_ratio`` scales F0 and ``formant_ratio`` the spectral envelope along frequency before synthesis;
    ``tape_ratio`` k speaks 1/k times faster and resamples by k, which moves both together; ``speed`` above 1
    is faster. These four are hibari's. ``noise_scale`` and ``noise_width`` are joe's (how much the voice and
    its rhythm vary).
    """

    engine: Literal["hibari", "joe"]
    description: str
    pitch_ratio: float = 1.0
    formant_ratio: float = 1.0
    tape_ratio: float = 1.0
    speed: float = 1.0
    noise_scale: float = 0.333
    noise_width: float = 0.4


@dataclass(frozen=True, slots=True)
class Cast:
    """Voices by name, and the RMS level in dBFS that all are brought to."""

    version: int
    level_dbfs: float
    voices: dict[str, VoiceRecipe]

    @property
    def digest(self) -> str:
        """Digest of every recipe: a changed recipe makes new cache keys."""
        return digest_value("cast", self)


@cache
def embedded_cast() -> Cast:
    """The cast in ``voices.toml``."""
    table = tomllib.loads(resources.files(__package__).joinpath("voices.toml").read_text(encoding="utf-8"))
    version, level_dbfs = table.pop("version"), table.pop("level_dbfs")
    return Cast(version, level_dbfs, {name: VoiceRecipe(**entry) for name, entry in table.items()})
