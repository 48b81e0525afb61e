"""Who judges, and the table of verdicts: the embedded stand-ins, or a text model with sentinels and a second judge."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import polars as pl

from duplex_bench.judging import embedded_judge
from duplex_bench.judging.agreement import agreement
from duplex_bench.judging.conflicts import conflict
from duplex_bench.judging.model_judge import ModelJudge
from duplex_bench.judging.rubrics import rubric
from duplex_bench.judging.sentinels import SentinelResult, judge_sentinels
from duplex_bench.multiparty.transcript_reference import SYSTEM as TRANSCRIPT_REFERENCE
from duplex_bench.records import tables
from duplex_bench.records.items import Track
from duplex_bench.records.score import Judgement, Question
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.work import Task, WorkDone, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import frame_of, write_frame
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.textmodels.batches import ask_ahead
from duplex_bench.textmodels.errors import ModelUnavailableError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.settings import ModelSettings

SECOND = "second_judgements"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about one rollout of one item."""

    item_id: str
    rollout_key: str
    question: Question


@dataclass(slots=True)
class _Told:
    counts: dict[str, int | float | str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def judged(
    workspace: Workspace, track: Track, system: str, asked: Sequence[Asked], *, second: bool = True
) -> StageResult:
    """A verdict for every question, by the judge that the profile names; failed calls have no row and are counted.

    With a model as judge, the sentinels are judged anew first (where anything is to be judged), a second judge is put
    to the same questions unless ``second`` is false, and a judge by the maker of the system is warned about. The
    second judge's verdicts are kept in a table of their own and score nothing.
    """
    settings = workspace.profile.judge
    told = _Told()
    if settings.engine == "embedded" or settings.model is None:
        keys = [_embedded_key(one.question) for one in asked]
        done = resume(
            workspace.ledger(f"{track}/judgements/{system}"), f"{track} judgements {system}",
            _tasks(asked, keys), _embedded_verdict,
        )  # fmt: skip
    else:
        _warn(workspace, settings.model, "judge", system, told)
        keys, done = _by_model(workspace, track, "judgements", settings.model, system, asked, told)
    frame = frame_of(_rows(asked, keys, done, system), tables.JUDGEMENTS)
    if second and settings.engine == "model" and settings.second is not None:
        _second_opinion(workspace, track, settings.second, system, asked, frame, told)
    undecided = frame["verdict"].null_count()
    counts = {**done.counts(), "verdicts": frame.height - undecided, "no_verdict": undecided, **told.counts}
    told.notes += [f"failed: {error}" for error in sorted(set(done.failed.values()))[:10]]
    return StageResult(frame, counts, note="\n".join(f"- {note}" for note in told.notes))


def _tasks(asked: Sequence[Asked], keys: Sequence[str]) -> list[Task]:
    return [Task(key, one.item_id, one.question) for key, one in zip(keys, asked, strict=True)]


def _embedded_key(question: Question) -> str:
    prompt = rubric(question.rubric).sha256
    return digest_value("judgement", embedded_judge.version(question.rubric), prompt, question.rubric, question.fields)


def _embedded_verdict(question: Question) -> str:
    return to_json(embedded_judge.judge(question))


def _by_model(
    workspace: Workspace,
    track: Track,
    stage: str,
    settings: ModelSettings,
    system: str,
    asked: Sequence[Asked],
    told: _Told,
) -> tuple[list[str], WorkDone]:
    calls = workspace.profile.text_calls
    role = "judge" if stage == "judgements" else "second judge"
    with ExitStack() as open_until_done:
        model = open_until_done.enter_context(TextModel(settings, workspace.store, calls=calls, role=role))
        judge = ModelJudge(model)
        keys = [judge.key(one.question) for one in asked]
        ledger = workspace.ledger(f"{track}/{stage}/{system}")
        finished = ledger.finished()
        waiting = {key: one.question for key, one in zip(keys, asked, strict=True) if key not in finished}
        waiting_at: Mapping[str, str] = {}
        if any(judge.needs_call(question) for question in waiting.values()):
            # A missing key ends the stage here, not once for every question.
            model.check_key()
            if workspace.profile.judge.sentinels:
                # With the time in it: a run that is made again, over the same questions even, asks them anew.
                run = digest_value("run", track, system, datetime.now(UTC).isoformat())
                _watch(judge, workspace, role, run, told, waiting)
            waiting_at = _ahead(judge, workspace, role, system, list(waiting.values()), told)
        judge_one: Callable[[Question], str] = partial(_model_verdict, judge, system, waiting_at)
        threads = open_until_done.enter_context(ThreadPoolExecutor(calls.concurrency))
        # A question without a verdict is read again by the next run, from the cache unless more readings are allowed.
        done = resume(
            ledger, f"{track} {stage} {system}", _tasks(asked, keys), judge_one, executor=threads, final=_has_verdict
        )
    return keys, done


def _ahead(
    judge: ModelJudge, workspace: Workspace, role: str, system: str, questions: Sequence[Question], told: _Told
) -> Mapping[str, str]:
    """Put questions to the batch endpoint where the profile says so; the batch of each request still under way."""
    settings = workspace.profile.judge.batch
    if not settings.enabled or judge.model.settings.vendor == "openai_compatible":
        return {}
    asked = [judge.asked(question) for question in questions]
    found = ask_ahead(judge.model, asked, workspace.store, settings, subject=system)
    name = role.replace(" ", "_")
    told.counts |= {f"{name}_by_batch": len(found.stored), f"{name}_batch_faults": len(found.faults)}
    told.notes += [f"asked singly instead: {why}" for why in sorted(set(found.faults.values()))[:5]]
    if found.waiting:
        told.counts[f"{name}_waiting"] = len(found.waiting)
        batches = ", ".join(sorted(set(found.waiting.values())))
        told.notes.append(f"{len(found.waiting)} answers are not ready (batches {batches}): run again to collect them")
    return found.waiting


def _model_verdict(judge: ModelJudge, system: str, waiting_at: Mapping[str, str], question: Question) -> str:
    batch = waiting_at.get(judge.model.key(*judge.asked(question)))
    if batch is not None:
        # Asked singly it would be paid for twice.
        raise ModelUnavailableError(f"its answer is not ready in batch {batch}: run again to collect it")
    return to_json(judge.judge(question, system))


def _has_verdict(payload: str) -> bool:
    return from_json(Judgement, payload).verdict is not None


def _watch(
    judge: ModelJudge, workspace: Workspace, role: str, run: str, told: _Told, waiting: dict[str, Question]
) -> None:
    rubrics = sorted({question.rubric for question in waiting.values()})
    try:
        found: SentinelResult = judge_sentinels(judge, workspace.store, run, rubrics)
    except OSError as error:
        told.notes.append(f"the sentinels of the {role} could not be judged: {error}")
        return
    name = role.replace(" ", "_")
    told.counts |= {
        f"{name}_sentinels": found.asked,
        f"{name}_sentinels_wrong": len(found.wrong),
        f"{name}_sentinels_no_verdict": len(found.no_verdict),
    }
    if found.no_verdict:
        told.notes.append(f"the {role} {judge.name} gave no verdict that can be read on {', '.join(found.no_verdict)}")
    if found.wrong:
        told.notes.append(f"the {role} {judge.name} gave another verdict than due on {', '.join(found.wrong)}")
    if found.moved:
        told.counts[f"{name}_sentinels_moved"] = len(found.moved)
        told.notes.append(
            f"the {role} {judge.name} judges {', '.join(found.moved)} otherwise than in the run before: the model "
            "behind the name may have changed; raise its epoch to judge everything anew"
        )


def _rows(asked: Sequence[Asked], keys: Sequence[str], done: WorkDone, system: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for key, one in zip(keys, asked, strict=True):
        if key in done.payloads:
            verdict = from_json(Judgement, done.payloads[key])
            rows.append(
                {
                    "judgement_id": digest_value("judgement_id", key, one.rollout_key, one.question.question_id)[:24],
                    "rollout_key": one.rollout_key,
                    "item_id": one.item_id,
                    "window_id": one.question.window_id,
                    "system": system,
                    "rubric": verdict.rubric,
                    "rubric_version": verdict.rubric_version,
                    "judge": verdict.judge,
                    "verdict": verdict.verdict,
                    "reason": verdict.reason,
                    "raw": verdict.raw,
                }
            )
    return rows


def _second_opinion(
    workspace: Workspace,
    track: Track,
    settings: ModelSettings,
    system: str,
    asked: Sequence[Asked],
    first: pl.DataFrame,
    told: _Told,
) -> None:
    _warn(workspace, settings, "second judge", system, told)
    keys, done = _by_model(workspace, track, SECOND, settings, system, asked, told)
    second = frame_of(_rows(asked, keys, done, system), tables.JUDGEMENTS)
    write_frame(workspace.store, workspace.table_key((track, SECOND), system), second)
    for name in sorted({one.question.rubric for one in asked}):
        found = agreement(_verdicts(first, name), _verdicts(second, name))
        told.counts |= {
            f"second_judge_{name}_both": found.n_both,
            f"second_judge_{name}_undecided_by_one": found.n_only_a + found.n_only_b,
        }
        if found.n_both:
            low, high = found.share_interval
            told.counts[f"second_judge_{name}_agreement"] = round(found.share, 4)
            told.notes.append(
                f"the second judge {settings.name} agrees on {found.share:.1%} ({low:.1%} to {high:.1%}) of the "
                f"{found.n_both} {name} questions that both decided; kappa {found.kappa:.3f}"
            )


def _verdicts(table: pl.DataFrame, name: str) -> dict[str, str | None]:
    # With the item: a reader of the transcript has one key for all of them.
    rows = table.filter(pl.col("rubric") == name).select("rollout_key", "item_id", "window_id", "verdict").iter_rows()
    return {f"{rollout}:{item}:{window}": verdict for rollout, item, window, verdict in rows}


def _warn(workspace: Workspace, settings: ModelSettings, role: str, system: str, told: _Told) -> None:
    cards, _ = readable_cards(workspace.systems_folder)
    provider = cards[system].provider if system in cards else ""
    reads = workspace.profile.multiparty.reference
    if system == TRANSCRIPT_REFERENCE and reads.engine == "model" and reads.model is not None:
        provider = reads.model.vendor
    warning = conflict(role, settings, system, provider)
    if warning:
        told.counts["vendor_conflicts"] = int(told.counts.get("vendor_conflicts", 0)) + 1
        told.notes.append(warning)
