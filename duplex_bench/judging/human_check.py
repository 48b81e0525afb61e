"""Human answers on blind samples, and how far they agree with the judge (P1 3.5, A3.4)."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from duplex_bench.judging.agreement import agreement
from duplex_bench.statistics import wilson_interval

SAMPLE: Final = "sample"


class SheetError(ValueError):
    """A filled sheet cannot be used; the message names file, row and remedy."""


@dataclass(frozen=True, slots=True)
class HumanQuestion:
    """One column that a person fills: its name, what is asked, and the answers allowed."""

    column: str
    asks: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HumanTask:
    """What samples are drawn for. ``judged`` is the rubric whose verdicts the answers are compared with, or None:
    then every question is a check that passes on its first answer.
    """

    name: str
    title: str
    instruction: str
    questions: tuple[HumanQuestion, ...]
    judged: str | None = None


TASKS: Final[Mapping[str, HumanTask]] = {
    task.name: task
    for task in (
        HumanTask(
            "construction",
            "Are the scenes what they should be?",
            "Listen to the whole scene, read the script beside it, and answer for the scene as it is.",
            (
                HumanQuestion("answer_follows", "The gold answer follows from what was said before the request, or is "
                              "common knowledge", ("yes", "no")),
                HumanQuestion("form_fits", "The request is put to the assistant in the form stated", ("yes", "no")),
                HumanQuestion("labels_fit", "Every turn fits its label", ("yes", "no")),
                HumanQuestion("speech_matches", "Every turn is spoken in full, by the speaker stated", ("yes", "no")),
            ),
        ),
        HumanTask(
            "answers",
            "Is the answer right?",
            "Read the request and the gold answer, listen, and say whether what was said answers the request rightly.",
            (HumanQuestion("human", "The answer is", ("correct", "incorrect")),),
            "answer_correctness",
        ),
        HumanTask(
            "acknowledgement",
            "Acknowledgement or intrusion?",
            "Nobody asked the assistant here. Listen: is what it says no more than a brief sign of listening, or does "
            "it intrude?",
            (HumanQuestion("human", "What the assistant says is an", ("acknowledgement", "intrusion")),),
            "acknowledgement",
        ),
    )
}  # fmt: skip


def task_named(name: str) -> HumanTask:
    """A task by name; raises SheetError with the names there are."""
    if name not in TASKS:
        raise SheetError(f"no validation task {name!r}: choose {', '.join(TASKS)}")
    return TASKS[name]


def read_sheet(path: Path, task: HumanTask, samples: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The answers of a filled sheet: by question column, by sample; None where it was left blank.

    Raises:
        SheetError: the file cannot be read, lacks a column, names a sample that was not drawn or twice, or holds an
            answer that is not allowed.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SheetError(f"{path}: it cannot be read: {error}. Save the sheet as CSV in UTF-8") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = reader.fieldnames or []
    missing = [name for name in (SAMPLE, *(question.column for question in task.questions)) if name not in columns]
    if missing:
        raise SheetError(f"{path}, row 1: column {missing[0]!r} is missing: keep the columns of the drawn sheet")
    known = set(samples)
    found: dict[str, dict[str, str | None]] = {question.column: {} for question in task.questions}
    for row in reader:
        where = f"{path}, row {reader.line_num}"
        sample = (row[SAMPLE] or "").strip()
        if sample not in known:
            raise SheetError(f"{where}: sample {sample!r} was not drawn: score the sheet with the draw it came from")
        for question in task.questions:
            answer = (row[question.column] or "").strip().lower()
            if sample in found[question.column]:
                raise SheetError(f"{where}: sample {sample!r} stands twice: keep one row")
            if answer and answer not in question.answers:
                allowed = ", ".join(question.answers)
                raise SheetError(
                    f"{where}, {question.column}: {answer!r} is no answer: write {allowed}, or leave blank"
                )
            found[question.column][sample] = answer or None
    for answers in found.values():
        answers.update(dict.fromkeys(known - answers.keys()))
    return found


def results(
    task: HumanTask,
    answers: Mapping[str, Mapping[str, str | None]],
    verdicts: Mapping[str, str | None],
    other: Mapping[str, Mapping[str, str | None]] | None = None,
) -> list[dict[str, object]]:
    """One row a question: how many were answered, and the share that agrees with the judge or passes.

    Args:
        task: what was asked.
        answers: as ``read_sheet`` gives them.
        verdicts: the judge's verdict by sample; empty where nothing was judged.
        other: a second person's answers: adds rows with the agreement of the two.

    Returns:
        Columns task, question, compared, n_drawn, n_answered, n_agree, share, low, high (Wilson), kappa.
    """
    rows: list[dict[str, object]] = []
    for question in task.questions:
        mine = answers[question.column]
        if task.judged is None:
            known = [answer for answer in mine.values() if answer is not None]
            passed = sum(answer == question.answers[0] for answer in known)
            low, high = wilson_interval(passed, len(known))
            rows.append(
                _row(task, question, "passes", len(mine), len(known), passed,
                     passed / len(known) if known else None, low, high, None)
            )  # fmt: skip
        else:
            rows.append(_compared(task, question, "person and judge", mine, verdicts))
        if other is not None:
            rows.append(_compared(task, question, "two people", mine, other[question.column]))
    return rows


def _compared(
    task: HumanTask,
    question: HumanQuestion,
    what: str,
    one: Mapping[str, str | None],
    two: Mapping[str, str | None],
) -> dict[str, object]:
    found = agreement(one, two)
    n = found.n_both
    agree = round(found.share * n) if n else 0
    share = found.share if n else None
    kappa = None if found.kappa != found.kappa else found.kappa
    low, high = found.share_interval
    return _row(task, question, what, len(one), n, agree, share, low, high, kappa)


def _row(
    task: HumanTask, question: HumanQuestion, compared: str, n_drawn: int, n_answered: int, n_agree: int,
    share: float | None, low: float, high: float, kappa: float | None,
) -> dict[str, object]:  # fmt: skip
    bounded = share is not None
    return {"task": task.name, "question": question.column, "compared": compared, "n_drawn": n_drawn,
            "n_answered": n_answered, "n_agree": n_agree, "share": share, "low": low if bounded else None,
            "high": high if bounded else None, "kappa": kappa}  # fmt: skip
