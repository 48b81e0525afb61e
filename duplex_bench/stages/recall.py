"""The recall probes as stages: identity prompts, facts, questions, their speech, and items (P2 3.3, design 8)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import polars as pl

from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, Word, other
from duplex_bench.conversation.recall import (
    IdentityPrompt,
    RecallFact,
    RecallQuestion,
    dropped_by,
    general_question,
    prefix_end,
    question_of,
    template_identity,
)
from duplex_bench.conversation.recall_items import recall_item
from duplex_bench.conversation.recall_writing import (
    PROMPTS,
    guess_without_conversation,
    recall_prompt,
    written_facts,
    written_identity,
)
from duplex_bench.conversation.sessions import Session
from duplex_bench.conversation.stimuli import SessionAudio, StimulusSettings
from duplex_bench.judging.strict import matches
from duplex_bench.records.items import Item
from duplex_bench.stages import conversation, corpus
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.work import Task, WorkDone, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value, draw_order
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.textmodels.model import TextModel

IDENTITY_SCHEMA = {"session_id": pl.String, "speaker": pl.String, "text": pl.String, "source": pl.String}
FACTS_SCHEMA = {
    "session_id": pl.String, "asker": pl.String, "question": pl.String, "answer": pl.String, "evidence": pl.String,
    "start_s": pl.Float64, "end_s": pl.Float64, "source": pl.String,
}  # fmt: skip
QUESTIONS_SCHEMA = {
    "question_id": pl.String, "session_id": pl.String, "kind": pl.String, "asker": pl.String, "question": pl.String,
    "answer": pl.String, "source": pl.String, "dropped": pl.String,
}  # fmt: skip
OFF = "conversation.recall.enabled is off in this profile: there are no probes."
# Raise when the same prompts and answers would give other facts or identities.
WRITING_VERSION = 1


@dataclass(frozen=True, slots=True)
class Talk:
    """A kept session with what the probes read of it."""

    session: Session
    labels: list[Label]
    words: dict[Speaker, list[Word]]


def talks(sessions: pl.DataFrame, filled: pl.DataFrame, labels: pl.DataFrame) -> Iterator[Talk]:
    """Every kept session, in order of its id."""
    for session, _ in conversation.kept(sessions):
        yield Talk(
            session,
            conversation.labels_in(labels, session.session_id),
            conversation.session_words(session, filled),
        )


def identity_prompts(
    workspace: Workspace, sessions: pl.DataFrame, filled: pl.DataFrame, labels: pl.DataFrame
) -> StageResult:
    """One prompt a speaker: written by the profile's text model, else a template (said in ``source``)."""
    settings = workspace.profile.conversation.recall
    if not settings.enabled:
        return StageResult(pl.DataFrame(schema=IDENTITY_SCHEMA), {"prompts": 0}, note=OFF)
    known = list(talks(sessions, filled, labels))
    prompts = {
        (talk.session.session_id, speaker): template_identity(talk.session.session_id, speaker, talk.words)
        for talk in known
        for speaker in SPEAKERS
    }
    failed: dict[str, str] = {}
    if settings.model is not None:

        def write(model: TextModel, talk: Talk) -> str:
            name = talk.session.session_id
            found = [written_identity(model, name, speaker, talk.labels, talk.words) for speaker in SPEAKERS]
            return to_json([one for one in found if one is not None])

        done = _written(workspace, "identity prompts", known, write)
        failed = done.failed
        for text in done.payloads.values():
            for one in from_json(list[IdentityPrompt], text):
                prompts[one.session_id, one.speaker] = one
    frame = pl.DataFrame([asdict(one) for one in prompts.values()], schema=IDENTITY_SCHEMA)
    counts: dict[str, int | float | str] = {"prompts": frame.height, "failed": len(failed)}
    counts |= {f"by_{source}": n for source, n in frame["source"].value_counts(sort=True).iter_rows()}
    return StageResult(frame, counts, note="\n".join(f"- {error}" for error in sorted(set(failed.values()))))


def _written(
    workspace: Workspace, stage: str, known: Sequence[Talk], write: Callable[[TextModel, Talk], str]
) -> WorkDone:
    """Work of the profile's text model, session by session; what was written before is not asked again."""
    settings = workspace.profile.conversation.recall
    if settings.model is None:
        raise ValueError("conversation.recall.model is not set: name a text model (vendor, model)")
    calls = workspace.profile.text_calls
    prompts = {name: recall_prompt(name).sha256 for name in PROMPTS}
    with TextModel(settings.model, workspace.store, calls=calls, role="recall probes") as model:
        tasks = [
            Task(
                digest_value(
                    stage, WRITING_VERSION, settings.model, settings.lengths_s, prompts, talk.labels, talk.words
                ),
                talk.session.session_id,
                talk,
            )
            for talk in known
        ]
        ledger = workspace.ledger(f"conversation/{stage.replace(' ', '_')}")
        if {task.key for task in tasks} - ledger.finished().keys():
            # A missing key ends the stage here, not once for every session.
            model.check_key()

        def write_one(talk: Talk) -> str:
            return write(model, talk)

        with ThreadPoolExecutor(calls.concurrency) as threads:
            return resume(ledger, stage, tasks, write_one, executor=threads)


def recall_facts(
    workspace: Workspace, sessions: pl.DataFrame, filled: pl.DataFrame, labels: pl.DataFrame
) -> StageResult:
    """Facts stated early: found by the text model and checked for specificity, else those planted in synthetic talk."""
    settings = workspace.profile.conversation.recall
    if not settings.enabled:
        return StageResult(pl.DataFrame(schema=FACTS_SCHEMA), {"facts": 0}, note=OFF)
    known = list(talks(sessions, filled, labels))
    note, failed = "", 0
    facts: list[RecallFact] = []
    if settings.model is not None:

        def write(model: TextModel, talk: Talk) -> str:
            name, length_s = talk.session.session_id, talk.session.duration_s
            return to_json(written_facts(model, name, talk.labels, talk.words, length_s, settings))

        done = _written(workspace, "recall facts", known, write)
        failed = len(done.failed)
        note = "\n".join(f"- {error}" for error in sorted(set(done.failed.values())))
        facts = [fact for text in done.payloads.values() for fact in from_json(list[RecallFact], text)]
    elif workspace.profile.conversation.corpus.kind == "synthetic":
        facts = _planted(workspace, {talk.session.session_id for talk in known})
        note = "Facts planted in synthetic sessions stand in for those that a text model finds."
    else:
        note = (
            "No facts: a real corpus needs a text model to find them. Set conversation.recall.model and its key; fact "
            "recall, the general questions, needs none."
        )
    facts.sort(key=lambda fact: (fact.session_id, fact.asker))
    frame = pl.DataFrame([asdict(fact) for fact in facts], schema=FACTS_SCHEMA)
    counts: dict[str, int | float | str] = {
        "facts": frame.height, "sessions": frame["session_id"].n_unique(), "failed": failed,
    }  # fmt: skip
    return StageResult(frame, counts, note=note)


def _planted(workspace: Workspace, wanted: set[str]) -> list[RecallFact]:
    return [
        RecallFact(
            session.session_id, fact.speaker, fact.question, fact.answer, fact.statement, fact.start_s, fact.end_s,
            "planted",
        )
        for session in corpus.planted_sessions(workspace)
        if session.session_id in wanted
        for fact in session.plan.facts
    ]  # fmt: skip


def recall_questions(
    workspace: Workspace, sessions: pl.DataFrame, labels: pl.DataFrame, facts: pl.DataFrame, identities: pl.DataFrame
) -> StageResult:
    """Every question with the rule that dropped it, or none; and one general question a conversation."""
    settings = workspace.profile.conversation.recall
    if not settings.enabled:
        return StageResult(pl.DataFrame(schema=QUESTIONS_SCHEMA), {"questions": 0}, note=OFF)
    known = {session.session_id: session for session, _ in conversation.kept(sessions)}
    told = identity_of(identities)
    found: list[RecallQuestion] = []
    for row in facts.iter_rows(named=True):
        fact = RecallFact(**row)
        session = known[fact.session_id]
        identity = told.get((fact.session_id, other(fact.asker)), "")
        rule = dropped_by(
            fact, conversation.labels_in(labels, fact.session_id), session.duration_s, settings, identity,
            lambda gold, text: matches(gold, text, settings.min_share["conversation_recall"]),
        )  # fmt: skip
        if not rule and settings.model is not None and _guessed(workspace, fact, identity):
            rule = "model_answers_without_the_conversation"
        found.append(question_of(fact, rule))
    found += [general_question(session_id, settings) for session_id in sorted(known)]
    frame = pl.DataFrame([asdict(one) for one in found], schema=QUESTIONS_SCHEMA)
    counts: dict[str, int | float | str] = {
        f"asked_{kind}": n
        for kind, n in frame.filter(pl.col("dropped") == "")["kind"].value_counts(sort=True).iter_rows()
    }
    counts |= {
        f"dropped_{rule}": n
        for rule, n in frame.filter(pl.col("dropped") != "")["dropped"].value_counts(sort=True).iter_rows()
    }
    return StageResult(frame, counts)


def identity_of(identities: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Prompt of each speaker by session and speaker."""
    return {(row["session_id"], row["speaker"]): row["text"] for row in identities.iter_rows(named=True)}


def _guessed(workspace: Workspace, fact: RecallFact, identity: str) -> bool:
    settings = workspace.profile.conversation.recall
    if settings.model is None:
        return False
    calls = workspace.profile.text_calls
    with TextModel(settings.model, workspace.store, calls=calls, role="recall probes") as model:
        guess = guess_without_conversation(model, fact.session_id, identity, fact.question)
    return matches(fact.answer, guess, settings.min_share["conversation_recall"])


def recall_items(
    workspace: Workspace,
    sessions: pl.DataFrame,
    filled: pl.DataFrame,
    labels: pl.DataFrame,
    identities: pl.DataFrame,
    questions: pl.DataFrame,
    speech: pl.DataFrame,
) -> list[Item]:
    """The drawn recall items: every question at every history length that its conversation has."""
    profile = workspace.profile
    settings = profile.conversation.recall
    told = identity_of(identities)
    spoken = {row["question_id"]: row for row in speech.iter_rows(named=True)}
    found: dict[str, list[Item]] = {}
    for session, stored in conversation.kept(sessions):
        asked = questions.filter((pl.col("session_id") == session.session_id) & (pl.col("dropped") == ""))
        if not asked.height:
            continue
        samples, rate = workspace.blobs.read_audio(stored.source)
        audio = SessionAudio(stored.source, samples, rate, workspace.blobs)
        mine = conversation.labels_in(labels, session.session_id)
        words = conversation.session_words(session, filled)
        for row in asked.iter_rows(named=True):
            if row["question_id"] not in spoken:
                continue
            question = RecallQuestion(**row)
            clip = spoken[question.question_id]
            clip_samples, clip_rate = workspace.blobs.read_audio(clip["source"])
            live = workspace.blobs.slice_of(clip["source"], clip_samples, clip_rate, 0, len(clip_samples))
            chosen = StimulusSettings(
                history_s=profile.conversation.history_s,
                identity_prompt=told.get((session.session_id, other(question.asker))),
                sample_rate_hz=profile.conversation.sample_rate_hz,
                gate=profile.gate,
            )
            for target_s in settings.lengths_s:
                cut_s = prefix_end(mine, target_s, session.duration_s)
                if cut_s is not None:
                    item = recall_item(question, target_s, cut_s, live, session, mine, words, audio, chosen)
                    found.setdefault(question.kind, []).append(item)
    drawn: list[Item] = []
    for kind, most in (
        ("conversation_recall", settings.n_conversation_recall),
        ("fact_recall", settings.n_fact_recall),
    ):
        items = found.get(kind, [])
        kept = set(draw_order(settings.seed, [item.item_id for item in items])[:most])
        drawn += [item for item in items if item.item_id in kept]
    return drawn
