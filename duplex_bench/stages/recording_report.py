"""A scored recording as tables, statistics and a page."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from duplex_bench.conversation.cards import INTERRUPTION_CARDS, POINT_CARDS
from duplex_bench.conversation.interruptions import Interruption
from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.conversation.recordings import RECORDING_METRICS
from duplex_bench.records import tables
from duplex_bench.records.outcome import Outcome
from duplex_bench.reporting.aggregate import statistics_table
from duplex_bench.reporting.inputs import ReportInputs, SystemInfo, Table, TrackTables
from duplex_bench.reporting.site.recording import Section, build_recording_page, summary_frame
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.stages.items import items_frame
from duplex_bench.stages.recording_empty import why_nothing_scored
from duplex_bench.stages.recording_scores import USER, ScoreAudioSettings, Scored
from duplex_bench.stages.stand_ins import STAND_INS
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.provenance import provenance

SYSTEM: Final = "recorded-system"
_STILL_GOING: Final = "floor_taken_while_going"
_BY_ID: Final = {card.id: card for card in (*POINT_CARDS, *INTERRUPTION_CARDS)}
_PAUSE: Final = tuple(metric for metric in RECORDING_METRICS if _BY_ID[metric].window.startswith("the labelled pause"))
_TURN_END: Final = tuple(metric for metric in RECORDING_METRICS if metric not in _PAUSE)
_INTERRUPTION: Final = tuple(card.id for card in INTERRUPTION_CARDS if card.id != _STILL_GOING)
_SECTION_OF: Final = {
    **dict.fromkeys(_PAUSE, "pause"),
    **dict.fromkeys(_TURN_END, "turn_end"),
    **dict.fromkeys(_INTERRUPTION, "interruption"),
    _STILL_GOING: "still_going",
}
SECTIONS: Final = (
    Section(
        "still_going",
        "While the user was still going",
        "In a recording the person reacts. Where the system takes a pause and keeps it, the labels call the pause a "
        "turn end, so the pause shares below understate takeovers. This share counts both: pauses that were taken, and "
        "turn ends after which the user spoke again within 5 s, not as a backchannel, while the system was speaking. A "
        "user who had finished and then interrupts the reply looks the same and is counted too: listen.",
        (_STILL_GOING,),
    ),
    Section(
        "pause",
        "At the user's pauses",
        "Pauses of at least 0.6 s inside a turn of the user that has lasted at least 1 s. They are not comparable with "
        "shares of rollouts, in which the person's side is fixed.",
        _PAUSE,
    ),
    Section(
        "turn_end",
        "At the user's turn ends",
        "Ends of turns of at least 1 s, up to the user's next turn. They hold the turn ends after which the user went "
        "on (above).",
        _TURN_END,
    ),
    Section(
        "interruption",
        "Where one speaks over the other",
        "Every start of one while the other is speaking, gaps up to 0.25 s joined.",
        _INTERRUPTION,
    ),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """What was made of a recording.

    Attributes:
        index: the page.
        title: name of the recording.
        duration_s: its length.
        sections: headings and metrics, in order.
        summary: one row per metric: section, metric, title, unit, direction, statistic, estimate, q1, q3, n_scored,
            n_windows, reason.
        notes: what a reader must know about the audio and where speech and words come from.
        empty: why nothing could be scored; None where something was.
    """

    index: Path
    title: str
    duration_s: float
    sections: tuple[Section, ...]
    summary: pl.DataFrame
    notes: tuple[str, ...]
    empty: str | None = None


def write_report(scored: Scored, out: Path, store: FolderStore, settings: ScoreAudioSettings) -> Summary:
    """Tables, statistics and the page of a scored recording."""
    empty = why_nothing_scored(scored)
    if empty is not None:
        scored = dataclasses.replace(scored, notes=(f"{empty[:1].upper()}{empty[1:]}.", *scored.notes))
    track = track_tables(scored, settings)
    summary = summary_frame(track, SYSTEM, SECTIONS)
    told = provenance("score-audio", digest_value(settings))
    facts = {
        field.name: str(getattr(told, field.name)) or "none"
        for field in dataclasses.fields(told)
        if field.name != "packages"
    }
    heard = any("by_engine" in one.rule for one in scored.session.corrections)
    inputs = ReportInputs(
        title=f"Scores of {scored.session.session_id}",
        run_id=digest_value("score-audio", scored.recording.source, track.measurements.write_json())[:12],
        profile="score-audio",
        tracks=(track,),
        systems=(SystemInfo(SYSTEM, "The system", "recording", summary="Recorded elsewhere; nothing was run."),),
        blobs=BlobStore(store),
        provenance={**facts, **{f"package {name}": version for name, version in told.packages.items()}},
        stand_ins=tuple(one for one in STAND_INS if heard and one.role in {"words of systems", "voice activity"}),
        extra_tables=_details(scored),
        notes=scored.notes,
    )
    index = build_recording_page(inputs, SYSTEM, SECTIONS, summary, out)
    return Summary(
        index, scored.session.session_id, scored.recording.duration_s, SECTIONS, summary, scored.notes, empty
    )  # fmt: skip


def track_tables(scored: Scored, settings: ScoreAudioSettings) -> TrackTables:
    """The recording in the schemas of the main job: one item, one rollout that was not run."""
    key = digest_value("recording", scored.recording.source)
    items = items_frame([scored.item])
    rows = []
    for one in scored.measurements:
        row = measurement_row(SYSTEM, key, scored.item, one)
        rows.append({**row, "condition": _SECTION_OF[one.metric]})
    measurements = frame_of(rows, tables.MEASUREMENTS)
    cards = tuple(_BY_ID[metric] for section in SECTIONS for metric in section.metrics)
    found = statistics_table(measurements, cards, track="conversation", settings=settings.statistics)
    return TrackTables(
        track="conversation",
        items=items,
        rollouts=frame_of([_rollout(scored, key, items["stimulus_digest"][0])], tables.ROLLOUTS),
        activity=frame_of([_activity(scored, key, settings)], tables.ACTIVITY),
        words=frame_of([_words(scored, key)], tables.WORDS),
        judgements=frame_of([], tables.JUDGEMENTS),
        measurements=measurements,
        statistics=found.statistics,
        comparisons=found.comparisons,
        cards=cards,
    )


def _rollout(scored: Scored, key: str, digest: str) -> dict[str, object]:
    recording = scored.recording
    return {
        "rollout_key": key, "item_id": scored.item.item_id, "system": SYSTEM, "stimulus_digest": digest, "repeat": 0,
        "outcome": Outcome.COMPLETED.value, "reason": "", "listener_audio": recording.source,
        "sample_rate_hz": recording.sample_rate_hz, "timeline_s": recording.duration_s,
        "input_s": recording.duration_s, "events": None, "compute_s": 0.0, "wall_s": 0.0, "attempts": 1,
    }  # fmt: skip


def _activity(scored: Scored, key: str, settings: ScoreAudioSettings) -> dict[str, object]:
    gate = settings.gate
    return {
        "rollout_key": key, "system": SYSTEM, "gate_s": scored.recording.gate_s("system").tolist(),
        "vad_s": [list(span) for span in scored.session.right.speech], "gate_threshold": gate.threshold,
        "gate_release_ratio": gate.release_ratio, "gate_min_duration_s": gate.min_duration_s,
        "vad_engine": _engine(scored, "speech") or "labels",
    }  # fmt: skip


def _words(scored: Scored, key: str) -> dict[str, object]:
    said = scored.session.right.words
    return {
        "rollout_key": key, "system": SYSTEM, "text": " ".join(word.text for word in said), "n_words": len(said),
        "words": [{"text": word.text, "start_s": word.start_s, "end_s": word.end_s, "aligned": True} for word in said],
        "engine": scored.no_words or _engine(scored, "words") or "labels",
    }  # fmt: skip


def _engine(scored: Scored, what: str) -> str | None:
    """Which engine found the system's speech or words; None where labels told them."""
    rule, lead = f"{what}_by_engine", f"{what} by "
    told = (one.message for one in scored.session.corrections if one.rule == rule and one.where == "system")
    return next((message.removeprefix(lead) for message in told), None)


def _details(scored: Scored) -> tuple[Table, ...]:
    words = {"user": scored.session.left.words, "system": scored.session.right.words}
    return (
        Table("labels", "Labels", "Turns, pauses, backchannels, overlaps and failed takes of both.",
              labels_frame(scored.labels)),
        Table("interruptions", "Starts over the other", "Every start while the other speaks, backchannels too.",
              interruptions_frame(scored.interruptions)),
        Table("recording-words", "Words", "Timed words of both.", words_frame(words)),
        Table("notes", "Notes", "What was done to the audio and the labels.",
              pl.DataFrame({"note": list(scored.notes)}, schema={"note": pl.String})),
    )  # fmt: skip


def labels_frame(labels: Sequence[Label]) -> pl.DataFrame:
    """Labels as a table, speakers named user and system."""
    rows = [{**dataclasses.asdict(label), "speaker": "user" if label.speaker == USER else "system"} for label in labels]
    schema = {
        "speaker": pl.String, "kind": pl.String, "start_s": pl.Float64, "end_s": pl.Float64, "rule": pl.String,
        "confidence": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def interruptions_frame(found: Sequence[Interruption]) -> pl.DataFrame:
    """Starts of one over the other as a table."""
    schema = {
        "by": pl.String, "kind": pl.String, "at_s": pl.Float64, "until_s": pl.Float64, "stopped": pl.Boolean,
        "stop_latency_s": pl.Float64, "overlap_s": pl.Float64, "resumed": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame([dataclasses.asdict(one) for one in found], schema=schema)


def words_frame(words: dict[str, tuple[Word, ...]]) -> pl.DataFrame:
    """Timed words of both as a table, in order of time."""
    rows = [
        {"speaker": party, "text": word.text, "start_s": word.start_s, "end_s": word.end_s}
        for party, said in words.items()
        for word in said
    ]
    schema = {"speaker": pl.String, "text": pl.String, "start_s": pl.Float64, "end_s": pl.Float64}
    return pl.DataFrame(rows, schema=schema).sort("start_s", "speaker")
