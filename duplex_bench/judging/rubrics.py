"""Rubrics: what a judge is asked, as reviewed prompt files with id, version and hash."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from duplex_bench.storage.digests import digest_bytes

RUBRIC_IDS: Final = ("acknowledgement", "answer_correctness", "recall_correctness")
_FENCE: Final = "+++\n"


class RubricError(ValueError):
    """An unknown rubric, or a question that lacks a field; the message names it."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """One prompt with named gaps.

    Attributes:
        id: name of its file in ``rubrics/``.
        version: raised with every change of the file.
        fields: names of the gaps, each ``{name}`` in the prompt.
        verdicts: the verdicts a judge may give.
        source: where the rule comes from.
        prompt: the text.
        sha256: of the whole file.
    """

    id: str
    version: int
    fields: tuple[str, ...]
    verdicts: tuple[str, ...]
    source: str
    prompt: str
    sha256: str

    def render(self, fields: Mapping[str, str]) -> str:
        """The prompt with its gaps filled; braces inside the fields stay as they are.

        Raises:
            RubricError: a field is missing.
        """
        missing = [name for name in self.fields if name not in fields]
        if missing:
            raise RubricError(f"rubric {self.id!r} needs {', '.join(missing)}: the question has {sorted(fields)}")
        return self.prompt.format_map({name: fields[name] for name in self.fields})


@cache
def rubric(rubric_id: str) -> Rubric:
    """The rubric of that id.

    Raises:
        RubricError: there is none.
    """
    if rubric_id not in RUBRIC_IDS:
        raise RubricError(f"no rubric {rubric_id!r}: there are {', '.join(RUBRIC_IDS)}")
    raw = files("duplex_bench.judging").joinpath(f"rubrics/{rubric_id}.md").read_bytes()
    _, head, prompt = raw.decode().split(_FENCE, 2)
    data = tomllib.loads(head)
    return Rubric(
        id=data["id"],
        version=data["version"],
        fields=tuple(data["fields"]),
        verdicts=tuple(data["verdicts"]),
        source=data["source"],
        prompt=prompt,
        sha256=digest_bytes(raw),
    )
