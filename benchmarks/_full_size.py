"""Stored tables of a run of the papers' size, without audio: 12 systems, both tracks, two repeats.

What systems say is drawn: each has an onset delay and odds of answering, of speaking where silence is due and of
stopping. The measurements are those of the product's own scorers on that speech. Of the 2,000 multiparty scenarios
every tenth is drawn and scored; the others repeat its speech under names of their own.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from duplex_bench.conversation.recall_scoring import RUBRIC as RECALL_RUBRIC
from duplex_bench.conversation.recall_scoring import score_recall
from duplex_bench.conversation.scoring import ScoringSettings
from duplex_bench.conversation.scoring import score_item as score_point
from duplex_bench.judging.strict import matches
from duplex_bench.multiparty.scoring import ACKNOWLEDGEMENT_RUBRIC, ANSWER_RUBRIC
from duplex_bench.multiparty.scoring import questions as multiparty_questions
from duplex_bench.multiparty.scoring import score_item as score_scene
from duplex_bench.records import tables as schemas
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import HistoryTurn, HumanReply, Item, Reference, Stimulus, Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.score import Judgement
from duplex_bench.stages import later_scores
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.storage.digests import digest_value, generator_from, stimulus_digest
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.serial import to_json

N_SYSTEMS, N_REPEATS = 12, 2
N_SCENARIOS, COPIES = 2_000, 10
N_CONVERSATIONS = 176
POINTS = {"pause": 300, "turn_end": 300, "conversation_recall": 184, "fact_recall": 300}
HISTORIES_S = (30.0, 60.0, 90.0, 120.0)
TURNS = ("N2", "N1", "N2", "T", "N3", "N2", "N4Q", "N4R", "N1")
TEXTS = (
    "I count three leashes in the laundry and another two at the front desk.",
    "Well, please brush the rabbits before we go on with the rest of it.",
    "That makes fifteen altogether.",
    "I see, so what happened then?",
    "Okay.",
    "I would rather work four long days than five short ones any week.",
)
PER_SYSTEM = ("rollouts", "activity", "words", "judgements", "measurements")
LATER = "later_measurements"


@dataclass(frozen=True, slots=True)
class Manner:
    """How one drawn system speaks."""

    name: str
    delay_s: float
    answers: float
    intrudes: float
    right: float


def manners() -> list[Manner]:
    """The systems, from quiet and late to eager and early; some nearly alike, so that ties and pairs both occur."""
    return [
        Manner(f"system-{n:02d}", 0.3 + 0.1 * (n % 5), 0.75 + 0.02 * n, 0.02 * (n + 1), 0.5 + 0.04 * n)
        for n in range(N_SYSTEMS)
    ]


@dataclass(frozen=True, slots=True)
class StoredTrack:
    """Tables of one track: ``items``, and the ``PER_SYSTEM`` tables by name and system."""

    items: pl.DataFrame
    tables: dict[str, dict[str, pl.DataFrame]]


def multiparty() -> StoredTrack:
    """4,000 scenes of 2,000 scenarios."""
    drawn = [scene(number, form) for number in range(N_SCENARIOS // COPIES) for form in ("explicit", "implicit")]
    track = _stored(drawn)
    return StoredTrack(
        _copied(track.items), {name: {who: _copied(part) for who, part in by_system.items()}
                               for name, by_system in track.tables.items()}
    )  # fmt: skip


def conversation() -> StoredTrack:
    """1,084 points of 176 conversations; a recall point is one item for each length of history."""
    return _stored(list(points()))


def _copied(frame: pl.DataFrame) -> pl.DataFrame:
    """``COPIES`` of every row, with identities of their own."""
    names = [name for name in ("item_id", "cluster", "rollout_key", "measurement_id", "judgement_id", "stimulus_digest")
             if name in frame.columns]  # fmt: skip
    parts = [frame.with_columns(pl.concat_str(pl.lit(f"{copy:02d}-"), name).alias(name) for name in names)
             for copy in range(COPIES)]  # fmt: skip
    return pl.concat(parts, rechunk=True)


def _audio(name: str, length_s: float) -> AudioSlice:
    return AudioSlice("no audio", 0, round(24_000 * length_s), 24_000, digest_value("full size", name))


def scene(number: int, form: str) -> Item:
    """One scene with a request, six windows that ask for silence and a question that a person resolves."""
    rng = generator_from("full size", "scene", number)
    at_s, turns = 13.0, []
    for place, kind in enumerate(TURNS):
        length_s = float(rng.uniform(1.8, 4.0))
        turns.append((kind, "ABC"[place % 3], TEXTS[place % 2], at_s, at_s + length_s))
        at_s += length_s + (5.0 if kind == "T" else 3.0 if kind == "N4Q" else 0.4)
    request = next(turn for turn in turns if turn[0] == "T")
    t_marks = {"t_start_s": request[3], "t_end_s": request[4]}
    windows = []
    for place, (kind, speaker, text, start_s, end_s) in enumerate(turns):
        to = "assistant" if kind in {"T", "N4Q"} else "group" if kind == "N2" else "C"
        labels = {"addressee": to, "speaker": speaker, "text": text, "turn_type": kind, "utterance_id": f"u{place:02d}"}
        following_s = turns[place + 1][3] if place + 1 < len(turns) else end_s + 5.0
        if kind == "T":
            windows.append(Window(f"u{place:02d}-request", "request", end_s, end_s + 5.0, t_marks, labels))
        elif kind == "N4Q":
            after_s = turns[place + 2][3]
            marks = {"question_end_s": end_s, "resolution_start_s": following_s, "next_onset_s": after_s}
            windows.append(Window(f"u{place:02d}-yield", "yield", end_s, after_s, marks, labels))
        elif kind != "N4R":
            windows.append(Window(f"u{place:02d}-silence", "silence", start_s, following_s, t_marks, labels))
    attributes: dict[str, str | float | int | bool] = {
        "domain": f"domain-{number % 24}", "n_humans": 3, "n_turns": len(turns), "preamble_end_s": 12.0,
        "request_third": ("earlier", "middle", "later")[number % 3], "request_time_s": request[4],
        "scene_s": at_s + 5.0, "speakers": " ".join(turn[1] for turn in turns),
        "turn_types": " ".join(turn[0] for turn in turns),
    }  # fmt: skip
    spoken = tuple(HistoryTurn("user", text, start_s, end_s) for _, _, text, start_s, end_s in turns)
    name = f"scenario-{number:04d}"
    stimulus = Stimulus("multiparty", _audio(f"{name}-{form}", at_s + 5.0))
    return Item(f"{name}-{form}", "multiparty", name, form, stimulus,
                Reference(tuple(windows), "fifteen", None, spoken, attributes), "drawn")  # fmt: skip


def points() -> Iterator[Item]:
    """Every point of the papers' draw; one of recall as an item for each length of history."""
    for kind, n_points in POINTS.items():
        for number in range(n_points):
            rng = generator_from("full size", kind, number)
            conversation = f"conversation-{int(rng.integers(N_CONVERSATIONS)):03d}"
            start_s = float(rng.uniform(4.0, 12.0))
            pause_s = float(rng.uniform(0.6, 2.6))
            attributes: dict[str, str | float | int | bool] = {"ranking": float(rng.random()), "speaker": "left"}
            if kind == "pause":
                window = Window("pause", "pause", start_s, start_s + pause_s, {"resume_end_s": start_s + pause_s + 2.0},
                                {"speaker": "left"})  # fmt: skip
                reference = Reference((window,), attributes={**attributes, "pause_s": pause_s})
                yield _point(f"{kind}-{number:03d}", conversation, kind, "pause", start_s + pause_s + 5.0, reference)
                continue
            window = Window("turn_end", "turn_end", start_s, start_s, {}, {"speaker": "left"})
            if kind == "turn_end":
                reply = HumanReply(TEXTS[number % len(TEXTS)], float(rng.uniform(1.0, 9.0)), 14)
                yield _point(f"{kind}-{number:03d}", conversation, kind, "turn_end", start_s + 12.0,
                             Reference((window,), None, reply, (), attributes))  # fmt: skip
                continue
            for history_s in HISTORIES_S:
                told = {**attributes, "question": "How many leashes are there?", "history_target_s": history_s}
                yield _point(f"{kind}-{number:03d}-{history_s:.0f}", conversation, kind, "recall", start_s + 12.0,
                             Reference((window,), "fifteen", None, (), told))  # fmt: skip


def _point(name: str, conversation: str, kind: str, protocol, live_s: float, reference: Reference) -> Item:
    return Item(name, "conversation", conversation, kind, Stimulus(protocol, _audio(name, live_s)), reference, "drawn")


def _stored(items: list[Item]) -> StoredTrack:
    rows: dict[str, dict[str, list[dict[str, object]]]] = {
        name: {manner.name: [] for manner in manners()} for name in (*PER_SYSTEM, LATER)
    }
    for item in items:
        for manner in manners():
            for repeat in range(N_REPEATS):
                _run({name: rows[name][manner.name] for name in rows}, item, manner, repeat)
    about = [
        {"item_id": item.item_id, "track": item.track, "cluster": item.cluster, "condition": item.condition,
         "protocol": item.stimulus.protocol, "stimulus_digest": stimulus_digest(item.stimulus),
         "stimulus": to_json(item.stimulus), "reference": to_json(item.reference), "licence": item.licence,
         "language": item.language, "live_s": item.stimulus.live.n_samples / 24_000}
        for item in items
    ]  # fmt: skip
    kinds = {"rollouts": schemas.ROLLOUTS, "activity": schemas.ACTIVITY, "words": schemas.WORDS,
             "judgements": schemas.JUDGEMENTS, "measurements": schemas.MEASUREMENTS,
             LATER: {name: schemas.MEASUREMENTS[name] for name in later_scores.COLUMNS}}  # fmt: skip
    return StoredTrack(
        frame_of(about, schemas.ITEMS),
        {name: {who: frame_of(part, kinds[name]) for who, part in by_system.items()}
         for name, by_system in rows.items()},
    )  # fmt: skip


def _spans(item: Item, manner: Manner, rng: np.random.Generator) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    for window in item.reference.windows:
        due = window.kind in {"request", "yield", "turn_end"}
        if rng.random() < (manner.answers if due else manner.intrudes * (5 if window.kind == "pause" else 1)):
            onset_s = window.start_s + manner.delay_s + float(rng.gamma(2.0, 0.2))
            spans.append((onset_s, onset_s + float(rng.uniform(0.5, 6.0 if due else 2.5))))
    joined: list[tuple[float, float]] = []
    for start_s, stop_s in spans:
        if joined and start_s <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop_s, joined[-1][1]))
        else:
            joined.append((start_s, stop_s))
    return joined


def _run(rows: dict[str, list[dict[str, object]]], item: Item, manner: Manner, repeat: int) -> None:
    rng = generator_from("full size", item.item_id, manner.name, repeat)
    key = digest_value("full size rollout", item.item_id, manner.name, repeat)
    length_s = item.stimulus.live.n_samples / 24_000
    lost = rng.random() < 0.005
    outcome = Outcome.TRANSPORT_ERROR if lost else Outcome.COMPLETED
    rows["rollouts"].append(
        {"rollout_key": key, "item_id": item.item_id, "system": manner.name,
         "stimulus_digest": stimulus_digest(item.stimulus), "repeat": repeat, "outcome": outcome.value,
         "reason": "connection closed" if lost else "", "listener_audio": None, "sample_rate_hz": 24_000,
         "timeline_s": length_s, "input_s": length_s, "events": None, "compute_s": 0.4, "wall_s": length_s,
         "attempts": 3 if lost else 1}
    )  # fmt: skip
    if lost:
        return
    spans = _spans(item, manner, rng)
    words = [
        TimedWord(text, start_s + 0.05 + 0.25 * n, start_s + 0.28 + 0.25 * n)
        for start_s, stop_s in spans
        for n, text in enumerate(TEXTS[int(rng.integers(len(TEXTS)))].split())
        if start_s + 0.3 + 0.25 * n < stop_s
    ]
    rows["activity"].append(
        {"rollout_key": key, "system": manner.name, "gate_s": [list(span) for span in spans],
         "vad_s": [[start_s + 0.02, stop_s + 0.06] for start_s, stop_s in spans], "gate_threshold": 0.01,
         "gate_release_ratio": 0.5, "gate_min_duration_s": 0.08, "vad_engine": "drawn"}
    )  # fmt: skip
    rows["words"].append(
        {"rollout_key": key, "system": manner.name, "text": " ".join(word.text for word in words),
         "n_words": len(words), "engine": "drawn",
         "words": [{"text": w.text, "start_s": w.start_s, "end_s": w.end_s, "aligned": True} for w in words]}
    )  # fmt: skip
    verdicts = _verdicts(item, manner, spans, words, rng)
    rows["judgements"] += [] if repeat else [
        {"judgement_id": digest_value(key, question), "rollout_key": key, "item_id": item.item_id,
         "window_id": question.split(":")[1], "system": manner.name, "rubric": verdict.rubric, "rubric_version": 1,
         "judge": "drawn", "verdict": verdict.verdict, "reason": verdict.reason, "raw": verdict.raw}
        for question, verdict in verdicts.items()
    ]  # fmt: skip
    intervals = np.asarray(spans, dtype=np.float64).reshape(-1, 2)
    if item.track == "multiparty":
        found = score_scene(item, intervals, words, verdicts)
    elif item.stimulus.protocol == "recall":
        found = score_recall(item, intervals, words, verdicts, outcome=outcome, matches=matches, min_share=1.0,
                             settings=ScoringSettings())  # fmt: skip
    else:
        found = score_point(item, intervals, words, outcome=outcome, timeline_s=length_s, vectors=None)
    scores = [measurement_row(manner.name, key, item, one) for one in found]
    if repeat:
        rows[LATER] += [{name: score[name] for name in later_scores.COLUMNS} for score in scores]
    else:
        rows["measurements"] += scores


def _verdicts(item: Item, manner: Manner, spans, words: list[TimedWord], rng) -> dict[str, Judgement]:
    right = "correct" if rng.random() < manner.right else "incorrect"
    allowed = "acknowledgement" if rng.random() < 0.3 else "intrusion"
    raw = json.dumps({"response": "x" * 200, "input_tokens": 300, "output_tokens": 40})
    if item.track == "multiparty":
        asked = multiparty_questions(item, np.asarray(spans, dtype=np.float64).reshape(-1, 2), words)
        given = {ANSWER_RUBRIC: right, ACKNOWLEDGEMENT_RUBRIC: allowed}
        return {
            one.question_id: Judgement(one.question_id, one.rubric, 1, "drawn", given[one.rubric], "drawn", raw)
            for one in asked
        }
    if item.stimulus.protocol != "recall" or not words:
        return {}
    name = f"{item.item_id}:turn_end:{RECALL_RUBRIC}"
    return {name: Judgement(name, RECALL_RUBRIC, 1, "drawn", right, "drawn", raw)}
