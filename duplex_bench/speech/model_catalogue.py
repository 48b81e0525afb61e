"""Which model files the embedded engines read, from ``models.toml``: verified paths, and a card for the docs."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from duplex_bench.storage.model_files import ModelFileError, verified_file


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file inside a package's folder and the only content it may have."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Where a model comes from, under which licence, and what it stands in for."""

    name: str
    package: str
    version: str
    module: str
    licence: str
    role: str
    stands_in_for: str
    files: tuple[ModelFile, ...]


@cache
def model_cards() -> dict[str, ModelCard]:
    """All models by name, in the order of ``models.toml``."""
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    return {
        name: ModelCard(name=name, **{**entry, "files": tuple(ModelFile(**file) for file in entry["files"])})
        for name, entry in tomllib.loads(text).items()
    }


@cache
def verified_model(name: str) -> dict[str, Path]:
    """Paths of a model's files by their name without folders; each is hashed once per process.

    Raises:
        ModelFileError: a file is missing or has another hash than ``models.toml`` says.
        ValueError: no model of that name.
    """
    if name not in model_cards():
        raise ValueError(f"no model {name!r} in models.toml: choose one of {', '.join(model_cards())}")
    card = model_cards()[name]
    return {Path(file.path).name: verified_file(card.module, file.path, file.sha256) for file in card.files}


def check_all() -> list[tuple[str, str | None]]:
    """Every model by name with what is wrong with its files, or None."""
    found: list[tuple[str, str | None]] = []
    for name in model_cards():
        try:
            verified_model(name)
        except ModelFileError as error:
            found.append((name, str(error)))
        else:
            found.append((name, None))
    return found


def model_id(name: str) -> str:
    """Package, version and the first digits of the main file's hash: the model's part of an engine id."""
    card = model_cards()[name]
    return f"{card.package}-{card.version}@{card.files[0].sha256[:8]}"
