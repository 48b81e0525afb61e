"""The text-model ceilings of recall: the same question, answered by a model that reads the history (P2 4.3, App. E)."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import polars as pl

from duplex_bench.conversation.cards import RECALL_METRICS, card
from duplex_bench.conversation.recall_scoring import RUBRIC
from duplex_bench.conversation.recall_writing import answer_from_text, recall_prompt
from duplex_bench.judging.strict import matches
from duplex_bench.records.items import Item
from duplex_bench.records.score import Measurement, Question, Score
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.reporting.tables.conversation_recall import by_history
from duplex_bench.stages import judges
from duplex_bench.stages.heard_histories import heard_histories
from duplex_bench.stages.work import Task, WorkDone, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value, stimulus_digest
from duplex_bench.storage.frames import read_frame
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.settings import ModelSettings

TEXT_CEILING = "text_ceiling"
HEARD_CEILING = "text_ceiling_heard"
CEILINGS: Final = (TEXT_CEILING, HEARD_CEILING)
CEILING_VERSION = 1
Counts = dict[str, int | float | str]


def text_ceilings(workspace: Workspace, items: list[Item]) -> tuple[dict[str, list[Measurement]], Counts]:
    """Recall measurements of the profile's text model on every recall item, by ceiling; none without model or probes.

    The ceiling of the paper reads the words of the labels; ours beside it reads what the recogniser of the systems
    hears of the same turns (``conversation.recall.heard_ceiling``), so that their difference is the recogniser's part.
    """
    settings = workspace.profile.conversation.recall
    asked = [item for item in items if item.stimulus.protocol == "recall"]
    if settings.model is None or not asked:
        return {}, {}
    read = {TEXT_CEILING: {item.item_id: item for item in asked}}
    counts: Counts = {}
    if settings.heard_ceiling:
        heard = heard_histories(workspace, asked)
        read[HEARD_CEILING] = heard.items
        counts |= heard.counts
    found: dict[str, list[Measurement]] = {}
    for name, readable in read.items():
        done = _answered(workspace, settings.model, list(readable.values()))
        counts |= {f"{name}_{outcome}": number for outcome, number in done.counts().items()}
        keys = {item_id: _key(settings.model, item) for item_id, item in readable.items()}
        answers = {item_id: done.payloads[key] for item_id, key in keys.items() if key in done.payloads}
        unread = {item.item_id for item in asked} - readable.keys()
        found[name] = _measured(workspace, name, asked, answers, unread)
    return found, counts


def _key(model: ModelSettings, item: Item) -> str:
    prompt = recall_prompt("answer_from_text").sha256
    question = str(item.reference.attributes["question"])
    return digest_value("text ceiling", CEILING_VERSION, model, prompt, stimulus_digest(item.stimulus), question)


def _answered(workspace: Workspace, settings: ModelSettings, items: Sequence[Item]) -> WorkDone:
    """The model's answer to every item, by key; histories that read the same are asked about once."""
    calls = workspace.profile.text_calls
    tasks = [Task(_key(settings, item), item.item_id, item) for item in items]
    ledger = workspace.ledger("conversation/text_ceiling")
    with TextModel(settings, workspace.store, calls=calls, role="text ceiling") as model:
        if {task.key for task in tasks} - ledger.finished().keys():
            model.check_key()

        def answer(item: Item) -> str:
            return answer_from_text(model, item)

        with ThreadPoolExecutor(calls.concurrency) as threads:
            return resume(ledger, "text ceiling", tasks, answer, executor=threads, final=lambda _: True)


def _measured(
    workspace: Workspace, name: str, asked: Sequence[Item], answers: Mapping[str, str], unread: Collection[str]
) -> list[Measurement]:
    """Every recall metric of every item, scored as a system's answer is; ``unread`` had no readable history."""
    min_share = workspace.profile.conversation.recall.min_share
    questions = [
        judges.Asked(
            item.item_id, f"{name}:{item.item_id}", _question(item, answers[item.item_id], min_share[item.condition])
        )
        for item in asked
        if answers.get(item.item_id)
    ]
    judged = judges.judged(workspace, "conversation", name, questions).frame
    verdicts = {row["item_id"]: row["verdict"] for row in judged.iter_rows(named=True)}
    found: list[Measurement] = []
    for item in asked:
        answer = answers.get(item.item_id)
        scores = _scores(item, answer, verdicts, min_share[item.condition])
        if item.item_id in unread:
            scores = dict.fromkeys(RECALL_METRICS, Score(None, "a turn of the history could not be recognised"))
        window = item.reference.windows[0]
        details: dict[str, float | int | str | bool | None] = {
            "bound": name, "answer": answer, "gold": item.reference.gold_answer,
            "request": str(item.reference.attributes["question"]),
            "history_target_s": float(item.reference.attributes["history_target_s"]),
        }  # fmt: skip
        found += [
            Measurement(item.item_id, window.window_id, metric, card(metric).version, scores[metric], window.start_s,
                        dict(details))
            for metric in RECALL_METRICS
        ]  # fmt: skip
    return found


def _question(item: Item, answer: str, min_share: float) -> Question:
    window_id = item.reference.windows[0].window_id
    fields = {"request": str(item.reference.attributes["question"]), "gold": item.reference.gold_answer or "",
              "answer": answer, "min_share": f"{min_share:g}"}  # fmt: skip
    return Question(f"{item.item_id}:{window_id}:{RUBRIC}", window_id, RUBRIC, fields)


def _scores(item: Item, answer: str | None, verdicts: dict[str, str | None], min_share: float) -> dict[str, Score]:
    if answer is None:
        return dict.fromkeys(RECALL_METRICS, Score(None, "the text model could not be asked"))
    verdict = verdicts.get(item.item_id)
    judged = Score(0.0) if not answer else Score(None, "no verdict")
    if verdict is not None:
        judged = Score(float(verdict == "correct"))
    strict = bool(answer) and matches(item.reference.gold_answer or "", answer, min_share)
    return {"recall_answered": Score(float(bool(answer))), "recall_strict": Score(float(strict)),
            "recall_correct": judged}  # fmt: skip


def ceiling_by_history(workspace: Workspace, track: TrackTables) -> Table | None:
    """Both ceilings' accuracy at every history length (P2 App. E), from the stored bounds; None without a ceiling."""
    key = workspace.table_key(("conversation", "bounds"), None)
    if track.track != "conversation" or not workspace.store.exists(key):
        return None
    stored = read_frame(workspace.store, key)
    mine = stored.filter(pl.col("system").is_in(CEILINGS) & pl.col("metric").is_in(list(RECALL_METRICS)))
    if not mine.height:
        return None
    made = by_history(replace(track, measurements=mine.select(track.measurements.columns)))
    return replace(
        made,
        id="conversation-text-ceiling",
        title="Conversation: text-model ceiling by history length",
        caption="The recall questions answered by a text model that reads the same history: what can be known from it. "
        f"{TEXT_CEILING} reads the words of the labels, {HEARD_CEILING} (ours) what the recogniser heard of the same "
        "turns. Scored as the systems in the table of recall by history length are.",
    )
