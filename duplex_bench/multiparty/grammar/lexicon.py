"""Domains and phrases: the words of the grammar, read from reviewed TOML files and validated."""

import tomllib
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_PACKAGE = "duplex_bench.multiparty.grammar"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stock(_Frozen):
    """Things that are counted, and where they lie."""

    things: str
    places: Annotated[tuple[str, ...], Field(min_length=3)]


class Goods(_Frozen):
    """Something with a price in whole dollars, from lowest to highest."""

    one: str
    many: str
    price: tuple[int, int]


class Event(_Frozen):
    """Something that begins at a clock time and lasts for minutes."""

    start: str
    lasts: str
    moment: str
    ask: str
    embedded: str


class Thing(_Frozen):
    """Something that lies in one of several places."""

    name: str
    places: Annotated[tuple[str, ...], Field(min_length=3)]


class Contest(_Frozen):
    """Things that one number orders; ``largest`` says which end the question asks for."""

    items: Annotated[tuple[str, ...], Field(min_length=3)]
    says: str
    ask: str
    range: tuple[int, int]
    step: int
    largest: bool


class Domain(_Frozen):
    """One setting that conversations take place in."""

    id: str
    title: str
    chores: Annotated[tuple[str, ...], Field(min_length=8)]
    chatter: Annotated[tuple[str, ...], Field(min_length=8)]
    mentions: Annotated[tuple[str, ...], Field(min_length=2)]
    stock: Annotated[tuple[Stock, ...], Field(min_length=2)]
    goods: Annotated[tuple[Goods, ...], Field(min_length=2)]
    events: Annotated[tuple[Event, ...], Field(min_length=2)]
    objects: Annotated[tuple[Thing, ...], Field(min_length=2)]
    contests: Annotated[tuple[Contest, ...], Field(min_length=1)]


class Resolve(_Frozen):
    """A question to the assistant that a human resolves."""

    fact: tuple[str, ...]
    question: tuple[str, ...]
    resolution: tuple[str, ...]


class FamilyPhrases(_Frozen):
    """How one scenario family is said: evidence in order, the question twice, and what only distracts."""

    evidence: tuple[tuple[str, ...], ...]
    ask: tuple[str, ...]
    embedded: tuple[str, ...]
    distract: tuple[str, ...]


class Phrases(_Frozen):
    """What all domains share."""

    version: int
    names_a: tuple[str, ...]
    names_b: tuple[str, ...]
    names_c: tuple[str, ...]
    names_d: tuple[str, ...]
    openers: tuple[str, ...]
    explicit: tuple[str, ...]
    implicit: tuple[str, ...]
    implicit_lead: tuple[str, ...]
    request_human: tuple[str, ...]
    reply_human: tuple[str, ...]
    mentions: tuple[str, ...]
    chatter: tuple[str, ...]
    resolve: Resolve
    families: dict[str, FamilyPhrases]


@cache
def phrases() -> Phrases:
    """The shared phrases."""
    text = resources.files(_PACKAGE).joinpath("phrases.toml").read_text("utf-8")
    return Phrases.model_validate(tomllib.loads(text))


@cache
def domains() -> dict[str, Domain]:
    """Every domain by id, in order of id.

    Raises:
        ValueError: a file's id is not its name.
    """
    found: dict[str, Domain] = {}
    folder = resources.files(_PACKAGE).joinpath("domains")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            domain = Domain.model_validate(tomllib.loads(file.read_text("utf-8")))
            if f"{domain.id}.toml" != file.name:
                raise ValueError(f"{file.name}: id is {domain.id!r}: give the file and the domain one name")
            found[domain.id] = domain
    return found
