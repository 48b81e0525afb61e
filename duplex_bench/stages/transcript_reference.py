"""The transcript reference over a track's items: decisions of every run, the scores of the first, their agreement."""

import dataclasses
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import polars as pl

from duplex_bench.judging.agreement import agreement
from duplex_bench.multiparty.reference_scoring import reference_questions, score_reference
from duplex_bench.multiparty.scripts import Script
from duplex_bench.multiparty.transcript_reference import (
    DECIDED_TYPES,
    Case,
    Decided,
    Decider,
    ModelDecider,
    ReferenceSettings,
    RuleDecider,
    case_of,
)
from duplex_bench.records import tables
from duplex_bench.records.items import Item, Window
from duplex_bench.reporting.inputs import Table
from duplex_bench.stages import judges, scoring
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.stages.items import items_of
from duplex_bench.stages.multiparty import scripts_of
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.textmodels.model import TextModel

DECISIONS = {
    "decider": pl.String, "run": pl.Int64, "item_id": pl.String, "cluster": pl.String, "condition": pl.String,
    "window_id": pl.String, "utterance_id": pl.String, "turn_type": pl.String, "respond": pl.Boolean,
    "answer": pl.String, "addressee": pl.String, "named_addressee": pl.String, "reason": pl.String,
}  # fmt: skip
RUNS = {
    "decider": pl.String, "run": pl.String, "condition": pl.String, "measure": pl.String, "share": pl.Float64,
    "kappa": pl.Float64, "n": pl.Int64, "n_expected": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """Measurements of the first run; and two stored tables: shares by run with their agreement, every decision."""

    measurements: StageResult
    tables: StageResult


@dataclass(frozen=True, slots=True)
class _Wanted:
    item: Item
    window: Window
    case: Case


def transcript_reference(workspace: Workspace, pairs_frame: pl.DataFrame, items_frame: pl.DataFrame) -> ReferenceResult:
    """Decide every T, N1 to N3 and N4Q of every clean item, in each run; score the first run.

    Items in other acoustics have the same transcript, so they are not decided again.
    """
    settings = workspace.profile.multiparty.reference
    if settings.engine == "off":
        nothing = StageResult(pl.DataFrame(schema=dict(tables.MEASUREMENTS)), {"engine": "off"})
        return ReferenceResult(nothing, store_tables(workspace, (), {"engine": "off"}))
    wanted = _wanted(pairs_frame, items_frame)
    rows: list[dict[str, object]] = []
    counts: dict[str, int | float | str] = {}
    notes: list[str] = []
    with ExitStack() as until_done:
        decider, executor = _decider(workspace, wanted, until_done)
        for run in range(settings.runs):
            rows += _run(workspace, decider, executor, run, wanted, counts, notes)
    decisions = pl.DataFrame(rows, schema=DECISIONS)
    shares = shares_of(decisions)
    told = store_tables(workspace, _tables(decider, settings, shares, decisions), {"decider": decider.name, **counts})
    noted = dataclasses.replace(told, preview=shares, note="\n".join(f"- {note}" for note in notes[:20]))
    measured = _measured(workspace, wanted, decisions)
    return ReferenceResult(dataclasses.replace(measured, counts={**measured.counts, **_headline(shares)}), noted)


def _tables(
    decider: Decider, settings: ReferenceSettings, shares: pl.DataFrame, decisions: pl.DataFrame
) -> tuple[Table, ...]:
    who = (
        f"Decided by {decider.name}"
        if settings.engine == "model"
        else f"Decided by {decider.name}, a stand-in whose cues are those of the scripts: it says nothing about models"
    )
    return (
        Table(
            "transcript_reference",
            "Transcript reference",
            f"{who}, from each utterance and the speaker-attributed dialogue before it (P1 A5.2). Shares over the "
            "first repeat of every clean item; n of n_expected gave a readable answer. Agreement counts equal "
            "decisions of two runs over all utterances. Fresh onset and stopping cannot be scored on a transcript.",
            shares,
        ),
        Table(
            "transcript_reference_decisions",
            "Decisions of the transcript reference",
            f"{who}. One row an utterance and run; no value: no readable answer, with the reason.",
            decisions,
        ),
    )


def _wanted(pairs_frame: pl.DataFrame, items_frame: pl.DataFrame) -> list[_Wanted]:
    scripts: Mapping[str, Script] = {script.script_id: script for script in scripts_of(pairs_frame)}
    return [
        _Wanted(item, window, case_of(scripts[item_id], window.labels["utterance_id"]))
        for item_id, item in sorted(items_of(items_frame).items())
        if item_id in scripts
        for window in item.reference.windows
        if window.labels["turn_type"] in DECIDED_TYPES
    ]


def wanted_cases(pairs_frame: pl.DataFrame, items_frame: pl.DataFrame) -> list[Case]:
    """What is decided in every run, in order of items; cases with the same words are one request."""
    return [one.case for one in _wanted(pairs_frame, items_frame)]


def _decider(workspace: Workspace, wanted: list[_Wanted], until_done: ExitStack) -> tuple[Decider, Executor | None]:
    settings, calls = workspace.profile.multiparty.reference, workspace.profile.text_calls
    if settings.engine != "model" or settings.model is None:
        return RuleDecider(), None
    model = until_done.enter_context(
        TextModel(settings.model, workspace.store, calls=calls, role="transcript reference")
    )
    decider = ModelDecider(model)
    if any(decider.needs_call(one.case, run) for run in range(settings.runs) for one in wanted):
        # A missing key ends the stage here, not once for every utterance.
        model.check_key()
    return decider, until_done.enter_context(ThreadPoolExecutor(calls.concurrency))


def _is_decided(payload: str) -> bool:
    return from_json(Decided, payload).reason == ""


def _run(
    workspace: Workspace,
    decider: Decider,
    executor: Executor | None,
    run: int,
    wanted: list[_Wanted],
    counts: dict[str, int | float | str],
    notes: list[str],
) -> list[dict[str, object]]:
    def decide(case: Case) -> str:
        return to_json(decider.decide(case, run))

    keys = [decider.key(one.case, run) for one in wanted]
    tasks = [Task(key, one.item.item_id, one.case) for key, one in zip(keys, wanted, strict=True)]
    ledger = workspace.ledger(f"multiparty/{workspace.profile.multiparty.reference.system}/run-{run}")
    done = resume(ledger, f"transcript reference, run {run + 1}", tasks, decide, executor=executor, final=_is_decided)
    for name, value in done.counts().items():
        counts[name] = int(counts.get(name, 0)) + int(value)
    notes += sorted(set(done.failed.values()))
    rows: list[dict[str, object]] = []
    for key, one in zip(keys, wanted, strict=True):
        found = (
            from_json(Decided, done.payloads[key])
            if key in done.payloads
            else Decided(None, "", None, done.failed.get(key, "not decided"))
        )
        rows.append(
            {
                "decider": decider.name,
                "run": run,
                "item_id": one.item.item_id,
                "cluster": one.item.cluster,
                "condition": one.item.condition,
                "window_id": one.window.window_id,
                "utterance_id": one.window.labels["utterance_id"],
                "turn_type": one.window.labels["turn_type"],
                "respond": found.respond,
                "answer": found.answer,
                "addressee": one.window.labels["addressee"],
                "named_addressee": found.addressee,
                "reason": found.reason,
            }
        )
    return rows


def _measured(workspace: Workspace, wanted: list[_Wanted], decisions: pl.DataFrame) -> StageResult:
    system = workspace.profile.multiparty.reference.system
    by_item: dict[str, dict[str, Decided]] = {}
    for row in decisions.filter(pl.col("run") == 0).iter_rows(named=True):
        found = Decided(row["respond"], row["answer"], row["named_addressee"], row["reason"])
        by_item.setdefault(row["item_id"], {})[row["utterance_id"]] = found
    items = {one.item.item_id: one.item for one in wanted}
    asked = [
        judges.Asked(item_id, system, question)
        for item_id, item in items.items()
        for question in reference_questions(item, by_item[item_id])
    ]
    verdicts = judges.judged(workspace, "multiparty", system, asked)
    by_rollout = scoring.verdicts_by_rollout(verdicts.frame).get(system, {})
    rows = [
        measurement_row(system, "", item, measurement)
        for item_id, item in items.items()
        for measurement in score_reference(item, by_item[item_id], by_rollout)
    ]
    frame = frame_of(rows, tables.MEASUREMENTS)
    n_scored = frame.height - frame["value"].null_count()
    counts = {"scores": n_scored, "reasons": frame.height - n_scored, "verdicts": verdicts.counts["verdicts"]}
    return StageResult(frame, counts, preview=frame.drop("details"), note=verdicts.note)


def shares_of(decisions: pl.DataFrame) -> pl.DataFrame:
    """Shares by run and condition, then agreement of the first two runs over all cases."""
    rows: list[dict[str, object]] = []
    for run in sorted(set(decisions["run"])):
        for condition in sorted(set(decisions["condition"])):
            part = decisions.filter((pl.col("run") == run) & (pl.col("condition") == condition))
            rows += [
                _share(part, run, condition, "response to T", pl.col("turn_type") == "T", pl.col("respond")),
                _share(
                    part, run, condition, "silence after N1 to N3", pl.col("turn_type").is_in(["N1", "N2", "N3"]),
                    ~pl.col("respond"),
                ),
                _share(part, run, condition, "response to N4Q", pl.col("turn_type") == "N4Q", pl.col("respond")),
                _share(
                    part, run, condition, "addressee named", pl.lit(True),
                    pl.col("named_addressee") == pl.col("addressee"),
                ),
            ]  # fmt: skip
    if {0, 1} <= set(decisions["run"]):
        first, second = (_by_case(decisions, run) for run in (0, 1))
        found = agreement(first, second)
        rows.append(
            {
                "decider": decisions["decider"][0], "run": "1 and 2", "condition": "all",
                "measure": "decisions that agree", "share": found.share if found.n_both else None,
                "kappa": found.kappa if found.kappa == found.kappa else None, "n": found.n_both,
                "n_expected": len(first),
            }
        )  # fmt: skip
    return pl.DataFrame(rows, schema=RUNS)


def _share(
    part: pl.DataFrame, run: int, condition: str, measure: str, which: pl.Expr, good: pl.Expr
) -> dict[str, object]:
    asked = part.filter(which)
    passed = asked.select(good.alias("passed"))["passed"]
    n = asked.height - passed.null_count()
    return {
        "decider": part["decider"][0] if part.height else "", "run": str(run + 1), "condition": condition,
        "measure": measure, "share": float(passed.sum()) / n if n else None, "kappa": None, "n": n,
        "n_expected": asked.height,
    }  # fmt: skip


def _by_case(decisions: pl.DataFrame, run: int) -> dict[str, str | None]:
    part = decisions.filter(pl.col("run") == run)
    words = {True: "respond", False: "silent", None: None}
    return {f"{row['item_id']}:{row['utterance_id']}": words[row["respond"]] for row in part.iter_rows(named=True)}


def _headline(shares: pl.DataFrame) -> dict[str, int | float | str]:
    told: dict[str, int | float | str] = {}
    first = shares.filter(pl.col("run") == "1")
    for row in first.filter(pl.col("measure") == "response to T").iter_rows(named=True):
        if row["share"] is not None:
            told[f"{row['condition']}_response"] = round(row["share"], 4)
    for row in shares.filter(pl.col("measure") == "decisions that agree").iter_rows(named=True):
        if row["share"] is not None:
            told["run_agreement"] = round(row["share"], 4)
    return told
