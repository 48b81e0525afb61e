"""The spoken duty instruction that every system hears before the scene (P1 3.4, A3.1)."""

import tomllib
from functools import cache
from importlib import resources
from typing import Final

from pydantic import BaseModel, ConfigDict

REQUIRED_WORDS: Final = "stay silent"


class Preamble(BaseModel):
    """The instruction's words with their id and version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: int
    text: str


def parse_preamble(text: str, source: str) -> Preamble:
    """A preamble from TOML text; ``source`` names it in errors.

    Raises:
        ValueError: a key is missing, unknown or of the wrong type, or the text does not say "stay silent".
    """
    preamble = Preamble.model_validate(tomllib.loads(text))
    if REQUIRED_WORDS not in preamble.text.lower():
        raise ValueError(f'{source}: the preamble must contain the words "{REQUIRED_WORDS}"')
    return preamble


@cache
def duty_preamble() -> Preamble:
    """The preamble of the track."""
    name = "preamble.toml"
    return parse_preamble(resources.files("duplex_bench.multiparty").joinpath(name).read_text("utf-8"), name)
