"""Prompts as reviewed files: a TOML head with id and version between ``+++`` lines, then the text with named gaps."""

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from duplex_bench.storage.digests import digest_bytes

_FENCE: Final = "+++\n"


class PromptError(ValueError):
    """A prompt file that cannot be used, or a gap without a text; the message names it."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One prompt.

    Attributes:
        id: name of the file.
        version: raised with every change of it; a test holds version and hash together.
        source: where the wording comes from.
        text: the prompt, gaps as ``{name}``.
        fields: the gaps, in order of first use.
        sha256: of the whole file.
    """

    id: str
    version: int
    source: str
    text: str
    fields: tuple[str, ...]
    sha256: str

    def render(self, values: Mapping[str, str]) -> str:
        """The text with its gaps filled; braces inside the values stay as they are.

        Raises:
            PromptError: a gap without a value.
        """
        missing = [name for name in self.fields if name not in values]
        if missing:
            raise PromptError(f"prompt {self.id!r} needs {', '.join(missing)}")
        return self.text.format_map({name: values[name] for name in self.fields})


@cache
def prompt_file(package: str, name: str) -> PromptFile:
    """The prompt ``name`` (a path without ``.md``) inside ``package``.

    Raises:
        PromptError: no such file, or one without a head.
    """
    entry = files(package).joinpath(f"{name}.md")
    if not entry.is_file():
        raise PromptError(f"package {package} has no prompt {name!r}")
    raw = entry.read_bytes()
    parts = raw.decode().split(_FENCE, 2)
    if len(parts) != 3 or parts[0]:
        raise PromptError(f"prompt {name!r} does not begin with a head between +++ lines")
    head = tomllib.loads(parts[1])
    gaps = dict.fromkeys(gap for _, gap, _, _ in string.Formatter().parse(parts[2]) if gap)
    return PromptFile(head["id"], head["version"], head["source"], parts[2], tuple(gaps), digest_bytes(raw))
