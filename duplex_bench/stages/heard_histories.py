"""Histories of recall items as a recogniser hears them: for the text ceiling that reads no label words (ours)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from duplex_bench.audio.time import to_samples
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import HistoryTurn, Item
from duplex_bench.speech import engines
from duplex_bench.stages.corpus import ReplyTask, transcribe_reply
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.serial import from_json
from duplex_bench.text.error_rate import WordErrors, word_errors

LEDGER: Final = "conversation/history_words"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class HeardHistories:
    """Items whose history holds recognised words, by item id; what is missing could not be recognised."""

    items: dict[str, Item]
    counts: dict[str, int | float | str]


def heard_histories(workspace: Workspace, items: Sequence[Item]) -> HeardHistories:
    """Recall items with each turn of their history as the recogniser of the systems hears it.

    Turns begin and end where the labels say, each on its speaker's own channel, so that only words differ from what
    the label ceiling reads. A turn in which no word was recognised is left out. A turn is heard once, however many
    histories hold it: its words are kept by its samples.
    """
    turns = _turns_of(workspace, items)
    tasks = {task.key: task for parts in turns.values() for _, task in parts}
    name = workspace.profile.speech.recogniser
    done = resume(
        workspace.ledger(LEDGER),
        "words of recall histories",
        list(tasks.values()),
        transcribe_reply,
        executor=engine_pool(name, workspace.profile.processes),
        common=(str(workspace.data), name),
    )
    found: dict[str, Item] = {}
    errors = WordErrors()
    for item in items:
        parts = turns[item.item_id]
        if any(task.key not in done.payloads for _, task in parts):
            continue
        heard = [(turn, _text(done.payloads[task.key])) for turn, task in parts]
        found[item.item_id] = with_history(item, tuple(replace(turn, text=text) for turn, text in heard if text))
        for turn, text in heard:
            errors += word_errors(turn.text, text)
    counts: dict[str, int | float | str] = {f"history_turns_{name}": n for name, n in done.counts().items()}
    if errors.n_reference:
        counts["history_word_error_rate"] = round(errors.rate, 4)
    return HeardHistories(found, counts)


def all_heard(workspace: Workspace, items: Sequence[Item]) -> bool:
    """Whether every turn has been recognised already, so that hearing the histories computes nothing."""
    finished = workspace.ledger(LEDGER).finished()
    return all(task.key in finished for parts in _turns_of(workspace, items).values() for _, task in parts)


def with_history(item: Item, history: tuple[HistoryTurn, ...]) -> Item:
    """The item with another text for its history; sound and reference stay."""
    return replace(item, stimulus=replace(item.stimulus, history=history))


def _turns_of(workspace: Workspace, items: Sequence[Item]) -> dict[str, list[tuple[HistoryTurn, Task]]]:
    """Each item's turns with the work of recognising them; every recording is read once."""
    engine_id = engines.recogniser(workspace.profile.speech.recogniser).engine_id
    by_source: dict[str, list[Item]] = {}
    for item in items:
        side = item.stimulus.history_user
        by_source.setdefault("" if side is None else side.source, []).append(item)
    found: dict[str, list[tuple[HistoryTurn, Task]]] = {}
    for source, mine in by_source.items():
        samples = workspace.blobs.read_audio(source)[0] if source else None
        slices: dict[tuple[int, int, int], AudioSlice] = {}
        for item in mine:
            parts = found.setdefault(item.item_id, [])
            for turn in item.stimulus.history:
                side = item.stimulus.history_user if turn.role == "user" else item.stimulus.history_assistant
                if side is None or samples is None:
                    raise ValueError(f"item {item.item_id}: its history has text but no sound; make the items anew")
                rate = side.sample_rate_hz
                start, stop = (side.start_sample + to_samples(at_s, rate) for at_s in (turn.start_s, turn.end_s))
                place = (side.channel, start, min(stop, side.stop_sample))
                if place[2] <= start:
                    continue
                if place not in slices:
                    slices[place] = workspace.blobs.slice_of(source, samples, rate, *place[1:], channel=side.channel)
                part = slices[place]
                key = digest_value("history turn", VERSION, engine_id, part.content, rate)
                parts.append((turn, Task(key, item.cluster, ReplyTask(part))))
    return found


def _text(payload: str) -> str:
    return " ".join(word.text for word in from_json(list[TimedWord], payload)).strip()
