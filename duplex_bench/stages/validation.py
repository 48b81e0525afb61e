"""Human validation of the multiparty track: blind samples drawn by hash, scored when the sheet comes back."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.judging.human_check import HumanTask, SheetError, read_sheet, results, task_named
from duplex_bench.records import tables
from duplex_bench.records.items import Item, Window
from duplex_bench.reporting.inputs import Table
from duplex_bench.reporting.validation_sheet import Sample, SheetQuestion, write_sheet
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.items import items_of
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value, draw_order
from duplex_bench.storage.frames import read_frame, write_frame

DEFAULT_SAMPLES = 100
# Heard around what is judged, so that a person knows what it follows (ours).
BEFORE_S = 2.0
AFTER_S = 1.5
ANSWER_TAIL_S = 4.0
RESULTS = "validation"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One thing a person could be asked about. ``verdict`` and ``system`` stay in the key, out of the sheet."""

    identity: str
    item: Item
    window: Window | None = None
    listener_audio: str | None = None
    verdict: str | None = None
    system: str = ""
    judge: str = ""
    said: str = ""


def draw(workspace: Workspace, task_name: str, folder: Path, n: int = DEFAULT_SAMPLES) -> StageResult:
    """Draw a blind sample and write its sheet, page and audio into ``folder``; the key stays in the data folder.

    Raises:
        SheetError: no such task, or nothing to draw from.
        ValueError: ``folder`` is not empty.
    """
    task = task_named(task_name)
    found = {one.identity: one for one in _candidates(workspace, task)}
    if not found:
        needed = "judgements with a verdict" if task.judged else "items"
        raise SheetError(
            f"there are no {needed} of the multiparty track under profile {workspace.profile.name}: run it"
        )
    chosen = [found[name] for name in draw_order(workspace.profile.seed, sorted(found))[:n]]
    draw_id = digest_value("validation", task.name, [one.identity for one in chosen])[:12]
    numbered = [(f"{place:03d}", one) for place, one in enumerate(chosen, 1)]
    samples = [_sample(workspace, task, name, one) for name, one in numbered]
    questions = [SheetQuestion(each.column, each.asks, each.answers) for each in task.questions]
    sheet = write_sheet(folder, draw_id, task.title, task.instruction, questions, samples)
    key = {
        "task": task.name,
        "samples": {
            name: {"identity": one.identity, "system": one.system, "verdict": one.verdict, "judge": one.judge}
            for name, one in numbered
        },
    }
    workspace.store.put(_key(draw_id), json.dumps(key, indent=1, sort_keys=True).encode())
    frame = pl.DataFrame(
        {"sample": [name for name, _ in numbered], "item_id": [one.item.item_id for _, one in numbered]}
    )
    return StageResult(frame, {"draw": draw_id, "samples": len(chosen), "of": len(found), "sheet": str(sheet)})


def score(workspace: Workspace, sheet: Path, other: Path | None = None) -> StageResult:
    """Compare a filled sheet with the judge (and with a second person's sheet) and keep the result for the report.

    Raises:
        SheetError: the sheet cannot be used; names file, row and remedy.
    """
    draw_id = _draw_id(sheet)
    if not workspace.store.exists(_key(draw_id)):
        raise SheetError(f"{sheet}: its draw {draw_id!r} is not known in this data folder: score it where it was drawn")
    key = json.loads(workspace.store.get(_key(draw_id)))
    task = task_named(key["task"])
    names = sorted(key["samples"])
    answers = read_sheet(sheet, task, names)
    verdicts = {name: entry["verdict"] for name, entry in key["samples"].items()}
    second = read_sheet(other, task, names) if other is not None else None
    rows = [{"draw": draw_id, **row} for row in results(task, answers, verdicts, second)]
    judges = ", ".join(sorted({entry["judge"] for entry in key["samples"].values()} - {""}))
    frame = pl.DataFrame([{**row, "judge": judges} for row in rows], schema=_SCHEMA)
    stored = _stored(workspace)
    kept = stored.filter((pl.col("task") != task.name) | (pl.col("draw") != draw_id))
    write_frame(workspace.store, workspace.table_key(("multiparty", RESULTS), None), pl.concat([kept, frame]))
    answered = sum(answer is not None for column in answers.values() for answer in column.values())
    return StageResult(frame, {"draw": draw_id, "answers": answered, "samples": len(names)})


def validation_tables(workspace: Workspace) -> list[Table]:
    """What people said, if sheets have been scored under this profile."""
    frame = _stored(workspace)
    if not frame.height:
        return []
    caption = (
        "Blind samples drawn by hash; share of answered samples that agree with the judge (or pass a construction "
        "check), Wilson 95 % intervals, Cohen's kappa. Blank answers are no disagreement. P1 3.5: 98 to 100 % of "
        "construction checks, 99 of 100 answers, 98 of 100 acknowledgements."
    )
    return [Table("multiparty-human-validation", "Multiparty: people against the judge", caption, frame)]


_SCHEMA = {
    "task": pl.String, "question": pl.String, "compared": pl.String, "n_drawn": pl.Int64, "n_answered": pl.Int64,
    "n_agree": pl.Int64, "share": pl.Float64, "low": pl.Float64, "high": pl.Float64, "kappa": pl.Float64,
    "judge": pl.String, "draw": pl.String,
}  # fmt: skip


def _key(draw_id: str) -> str:
    return f"validation/{draw_id}.json"


def _stored(workspace: Workspace) -> pl.DataFrame:
    key = workspace.table_key(("multiparty", RESULTS), None)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else pl.DataFrame(schema=_SCHEMA)


def _draw_id(sheet: Path) -> str:
    try:
        found = pl.read_csv(sheet, columns=["draw"], infer_schema=False, n_rows=1, encoding="utf8-lossy")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SheetError(f"{sheet}: it cannot be read as the sheet of a draw: {error}. Keep its column draw") from error
    if not found.height:
        raise SheetError(f"{sheet}: it holds no row: fill the sheet that was drawn")
    return str(found["draw"][0])


def _candidates(workspace: Workspace, task: HumanTask) -> Iterator[_Candidate]:
    key = workspace.table_key(("multiparty", "items"), None)
    if not workspace.store.exists(key):
        return
    items = items_of(read_frame(workspace.store, key))
    if task.judged is None:
        for item in items.values():
            yield _Candidate(item.item_id, item)
        return
    cards, _ = readable_cards(workspace.systems_folder)
    # What a reference policy says needs no ear, and one that always speaks would be most of a draw.
    evaluated = [name for name, card in cards.items() if card.family != "policy"]
    for system in sorted(evaluated or cards):
        judged, ran = (_table(workspace, name, system) for name in ("judgements", "rollouts"))
        audio = dict(ran.select("rollout_key", "listener_audio").iter_rows())
        asked = judged.filter((pl.col("rubric") == task.judged) & pl.col("verdict").is_not_null())
        said = _said(_table(workspace, "measurements", system), task)
        for row in asked.iter_rows(named=True):
            about = items.get(row["item_id"])
            if about is None:
                continue
            window = next(one for one in about.reference.windows if one.window_id == row["window_id"])
            yield _Candidate(
                row["judgement_id"], about, window, audio.get(row["rollout_key"]), row["verdict"], system, row["judge"],
                said.get((row["rollout_key"], row["window_id"]), ""),
            )  # fmt: skip


def _table(workspace: Workspace, name: str, system: str) -> pl.DataFrame:
    key = workspace.table_key(("multiparty", name), system)
    schemas = {"judgements": tables.JUDGEMENTS, "rollouts": tables.ROLLOUTS, "measurements": tables.MEASUREMENTS}
    if workspace.store.exists(key):
        return read_frame(workspace.store, key)
    return pl.DataFrame(schema=dict(schemas[name]))


def _said(measurements: pl.DataFrame, task: HumanTask) -> dict[tuple[str, str], str]:
    metric, field = ("answer_accuracy", "answer") if task.name == "answers" else ("silence_preservation", "text")
    rows = measurements.filter(pl.col("metric") == metric).select("rollout_key", "window_id", "details")
    return {(key, window): str(json.loads(details).get(field) or "") for key, window, details in rows.iter_rows()}


def _sample(workspace: Workspace, task: HumanTask, name: str, one: _Candidate) -> Sample:
    live = one.item.stimulus.live
    room, rate = workspace.blobs.read_audio(live.source)
    heard = room[live.start_sample : live.stop_sample, live.channel].astype(np.int32)
    if one.window is None:
        return Sample(name, tuple(_script(one.item)), _pcm16(heard), rate)
    if one.listener_audio is not None:
        spoken, system_rate = workspace.blobs.read_audio(one.listener_audio)
        if system_rate != rate:
            raise ValueError(f"item {one.item.item_id}: scene at {rate} Hz, system at {system_rate} Hz: run it again")
        longest = max(len(heard), len(spoken))
        mixed = np.zeros(longest, dtype=np.int32)
        mixed[: len(heard)] += heard
        mixed[: len(spoken)] += spoken[:, 0]
        heard = mixed
    window = one.window
    request = window.kind == "request"
    start_s = window.marks.get("t_start_s", window.start_s) if request else window.start_s
    stop_s = window.end_s + (ANSWER_TAIL_S if request else AFTER_S)
    cut = heard[round(max(0.0, start_s - BEFORE_S) * rate) : round(stop_s * rate)]
    if task.name == "answers":
        texts: tuple[tuple[str, str], ...] = (
            ("request", window.labels["text"]),
            ("gold_answer", one.item.reference.gold_answer or ""),
            ("recognised", one.said),
        )
    else:
        texts = (("human_turn", window.labels["text"]), ("recognised", one.said))
    return Sample(name, texts, _pcm16(cut), rate)


def _pcm16(samples: npt.NDArray[np.int32]) -> npt.NDArray[np.int16]:
    clipped: npt.NDArray[np.int16] = np.clip(samples, -32768, 32767).astype(np.int16)
    return clipped


def _script(item: Item) -> Sequence[tuple[str, str]]:
    attributes = item.reference.attributes
    speakers, kinds = (str(attributes[name]).split() for name in ("speakers", "turn_types"))
    lines = [
        f"{speaker} [{kind}] {turn.text}"
        for speaker, kind, turn in zip(speakers, kinds, item.reference.transcript, strict=True)
    ]
    return (
        ("form", str(attributes.get("addressing", item.condition))),
        ("gold_answer", item.reference.gold_answer or ""),
        ("script", "\n".join(lines)),
    )
