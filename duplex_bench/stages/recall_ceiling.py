"""The text-model ceiling of recall: the same question, answered by a model that reads the history (P2 4.3, App. E)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

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
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value, stimulus_digest
from duplex_bench.storage.frames import read_frame
from duplex_bench.textmodels.model import TextModel

TEXT_CEILING = "text_ceiling"
CEILING_VERSION = 1


def text_ceiling(workspace: Workspace, items: list[Item]) -> tuple[list[Measurement], dict[str, int | float | str]]:
    """Recall measurements of the profile's text model on every recall item; none without a model or probes."""
    settings = workspace.profile.conversation.recall
    asked = [item for item in items if item.stimulus.protocol == "recall"]
    if settings.model is None or not asked:
        return [], {}
    prompt = recall_prompt("answer_from_text").sha256
    calls = workspace.profile.text_calls
    tasks = [
        Task(
            digest_value("text ceiling", CEILING_VERSION, settings.model, prompt, stimulus_digest(item.stimulus),
                         str(item.reference.attributes["question"])),
            item.item_id,
            item,
        )
        for item in asked
    ]  # fmt: skip
    ledger = workspace.ledger("conversation/text_ceiling")
    with TextModel(settings.model, workspace.store, calls=calls, role="text ceiling") as model:
        if {task.key for task in tasks} - ledger.finished().keys():
            model.check_key()

        def answer(item: Item) -> str:
            return answer_from_text(model, item)

        with ThreadPoolExecutor(calls.concurrency) as threads:
            done = resume(ledger, "text ceiling", tasks, answer, executor=threads, final=lambda _: True)
    answers = {task.item_id: done.payloads[task.key] for task in tasks if task.key in done.payloads}
    questions = [
        judges.Asked(item.item_id, f"{TEXT_CEILING}:{item.item_id}", _question(item, answers[item.item_id],
                                                                            settings.min_share[item.condition]))
        for item in asked
        if answers.get(item.item_id)
    ]  # fmt: skip
    judged = judges.judged(workspace, "conversation", TEXT_CEILING, questions).frame
    verdicts = {row["item_id"]: row["verdict"] for row in judged.iter_rows(named=True)}
    found: list[Measurement] = []
    for item in asked:
        scores = _scores(item, answers.get(item.item_id), verdicts, settings.min_share[item.condition])
        window = item.reference.windows[0]
        details: dict[str, float | int | str | bool | None] = {
            "bound": TEXT_CEILING, "answer": answers.get(item.item_id), "gold": item.reference.gold_answer,
            "request": str(item.reference.attributes["question"]),
            "history_target_s": float(item.reference.attributes["history_target_s"]),
        }  # fmt: skip
        found += [
            Measurement(item.item_id, window.window_id, metric, card(metric).version, scores[metric], window.start_s,
                        dict(details))
            for metric in RECALL_METRICS
        ]  # fmt: skip
    return found, {f"text_ceiling_{name}": value for name, value in done.counts().items()}


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
    """The ceiling's accuracy at every history length (P2 App. E), from the stored bounds; None without a ceiling."""
    key = workspace.table_key(("conversation", "bounds"), None)
    if track.track != "conversation" or not workspace.store.exists(key):
        return None
    stored = read_frame(workspace.store, key)
    mine = stored.filter((pl.col("system") == TEXT_CEILING) & pl.col("metric").is_in(list(RECALL_METRICS)))
    if not mine.height:
        return None
    made = by_history(replace(track, measurements=mine.select(track.measurements.columns)))
    return replace(
        made,
        id="conversation-text-ceiling",
        title="Conversation: text-model ceiling by history length",
        caption="The recall questions answered by a text model that reads the same history: what can be known from it. "
        "Scored as the systems in the table of recall by history length are.",
    )
