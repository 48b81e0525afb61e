"""Sentinel questions: asked anew in every run that judges, to notice a judge that changed behind its name."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from duplex_bench.judging.model_judge import ModelJudge
from duplex_bench.records.score import Question
from duplex_bench.storage.digests import canonical_json, digest_value, seed_from
from duplex_bench.storage.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class Sentinel:
    """A question with the verdict it should get."""

    question: Question
    verdict: str


@dataclass(frozen=True, slots=True)
class SentinelResult:
    """How a judge did on the sentinels now, and against the run before (None: there was none)."""

    asked: int
    wrong: tuple[str, ...]
    no_verdict: tuple[str, ...]
    moved: tuple[str, ...] | None


@cache
def sentinels() -> tuple[Sentinel, ...]:
    """The sentinels of this version (``sentinels.toml``)."""
    data = tomllib.loads(files("duplex_bench.judging").joinpath("sentinels.toml").read_text("utf-8"))
    return tuple(
        Sentinel(Question(row["id"], row["id"], row["rubric"], row["fields"]), row["verdict"])
        for row in data["sentinel"]
    )


def judge_sentinels(
    judge: ModelJudge, store: ObjectStore, run: str, rubrics: Sequence[str] | None = None
) -> SentinelResult:
    """Ask the sentinels anew, store the verdicts, and compare them with the last stored ones of the same judge.

    Args:
        judge: the judge.
        store: where verdicts of earlier runs lie, below ``sentinels/``.
        run: names this run; the same run asks only once.
        rubrics: only sentinels of these rubrics; all where None.
    """
    asked = [one for one in sentinels() if rubrics is None or one.question.rubric in rubrics]
    # A positive number that no other run has: the cache would otherwise answer for the model.
    sample = 1 + seed_from("sentinels", run) % (1 << 53)
    found = {one.question.question_id: judge.judge(one.question, "sentinels", sample).verdict for one in asked}
    folder = f"sentinels/{digest_value(judge.name, [judge.key(one.question) for one in asked])[:16]}"
    before = [json.loads(store.get(name)) for name in store.keys(folder)]
    last = max((entry for entry in before if entry["run"] != run), key=lambda entry: entry["at"], default=None)
    entry = {"run": run, "at": datetime.now(UTC).isoformat(), "judge": judge.name, "verdicts": found}
    store.put(f"{folder}/{digest_value(run)[:24]}.json", canonical_json(entry).encode())
    expected = {one.question.question_id: one.verdict for one in asked}
    return SentinelResult(
        asked=len(asked),
        wrong=tuple(name for name, verdict in found.items() if verdict not in (expected[name], None)),
        no_verdict=tuple(name for name, verdict in found.items() if verdict is None),
        moved=None if last is None else tuple(
            name for name, verdict in found.items() if last["verdicts"].get(name) != verdict
        ),
    )  # fmt: skip
