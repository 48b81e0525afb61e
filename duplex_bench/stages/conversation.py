"""The conversation track from recordings to items: one function per asset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from duplex_bench.conversation import bounds as bounds_of_points
from duplex_bench.conversation import curation, liveliness
from duplex_bench.conversation.candidates import LabelledSession
from duplex_bench.conversation.curation import Curation, SessionCuration
from duplex_bench.conversation.flags import flags_of
from duplex_bench.conversation.inventory import KINDS, take_inventory
from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, SpeakerTrack, Word, other
from duplex_bench.conversation.labels import label_conversation
from duplex_bench.conversation.point_judge import ModelPointJudge, judge_id
from duplex_bench.conversation.points import Point
from duplex_bench.conversation.sessions import Session
from duplex_bench.conversation.stimuli import SessionAudio, StimulusSettings, item_of
from duplex_bench.records import tables
from duplex_bench.records.items import Item
from duplex_bench.stages import corpus, projection, rejected_windows, reviews, scoring
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.stages.items import items_frame, items_of, limited
from duplex_bench.stages.profile import CorpusSettings
from duplex_bench.stages.recall_ceiling import text_ceilings
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.session_audio import StoredAudio, audio_key, store_sessions
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.textmodels.model import TextModel

TRACK = "conversation"
PERSON, FLOOR, CEILING = "person", "floor", "ceiling"

SESSIONS_SCHEMA = {
    "session_id": pl.String, "selected": pl.Boolean, "liveliness": pl.Float64, "duration_s": pl.Float64,
    "licence": pl.String, "language": pl.String, **dict.fromkeys(liveliness.TRAITS, pl.Float64),
    "session": pl.String, "audio": pl.String,
}  # fmt: skip
WORDS_SCHEMA = {
    "session_id": pl.String, "speaker": pl.String, "text": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
}  # fmt: skip
LABELS_SCHEMA = {
    "session_id": pl.String, "speaker": pl.String, "kind": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
    "rule": pl.String, "confidence": pl.Float64, "source": pl.String,
}  # fmt: skip
CANDIDATES_SCHEMA = {"session_id": pl.String, "n_pause": pl.Int64, "n_turn_end": pl.Int64, "curation": pl.String}
POINTS_SCHEMA = {
    "point_id": pl.String, "session_id": pl.String, "kind": pl.String, "speaker": pl.String, "boundary_s": pl.Float64,
    "pause_s": pl.Float64, "ranking": pl.Float64, "context_text": pl.String, "point": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Observed:
    """What an outside source is, by content, with counts for people."""

    digest: str
    counts: Mapping[str, int | float | str]


def observe_sessions(workspace: Workspace) -> Observed:
    """The corpus by content; generates the synthetic one if the profile asks for it and it is not there."""
    found = corpus.load(workspace)
    counts: dict[str, int | float | str] = {"sessions": len(found.loaded.sessions), **found.loaded.rejected_by_rule}
    return Observed(found.digest, counts)


def observe_reviews(workspace: Workspace) -> Observed:
    """Approved reviews and rejected windows by content."""
    digest, counts = reviews.digest(workspace.reviews_folder)
    rejected = rejected_windows.rejected_now(workspace)
    # Why a window was rejected changes no draw.
    seen = digest_value("reviews", digest, sorted(rejected)) if rejected else digest
    return Observed(seen, {**counts, "windows_rejected": len(rejected)})


def lively_sessions(workspace: Workspace) -> StageResult:
    """Every session with its six traits, its score, and whether it is kept; kept recordings are stored and gated."""
    settings = workspace.profile.conversation.corpus
    found = corpus.load(workspace).loaded
    if not found.sessions:
        told = "; ".join(f"{r.where}: {r.message} ({r.remedy})" for r in found.rejections[:3]) or "the folder is empty"
        raise ValueError(f"the corpus has no usable session: {told}")
    traits = np.array([liveliness.traits_of(session) for session in found.sessions])
    scores = liveliness.score(traits)
    kept = _select(scores, settings)
    selected = [session for session, keep in zip(found.sessions, kept, strict=True) if keep]
    stored = store_sessions(workspace, selected)
    rows = [
        {
            "session_id": session.session_id,
            "selected": bool(keep) and audio_key(workspace, session) in stored.payloads,
            "liveliness": float(score),
            "duration_s": session.duration_s,
            "licence": session.licence,
            "language": session.language,
            **{name: float(value) for name, value in zip(liveliness.TRAITS, row, strict=True)},
            "session": to_json(session),
            "audio": stored.payloads.get(audio_key(workspace, session)) if keep else None,
        }
        for session, row, score, keep in zip(found.sessions, traits, scores, kept, strict=True)
    ]
    frame = pl.DataFrame(rows, schema=SESSIONS_SCHEMA)
    counts: dict[str, int | float | str] = {
        "sessions": frame.height,
        "kept": int(frame["selected"].sum()),
        "hours_kept": round(float(frame.filter("selected")["duration_s"].sum()) / 3600, 3),
        **{f"rejected_{rule}": n for rule, n in found.rejected_by_rule.items()},
        **{f"unreadable_{error.split(':')[0]}": 1 for error in stored.failed.values()},
    }
    told = "\n".join(f"- `{r.where}` {r.rule}: {r.message}. {r.remedy}" for r in found.rejections[:20])
    unreadable = "\n".join(f"- {error}" for error in list(stored.failed.values())[:20])
    return StageResult(frame, counts, preview=frame.drop("session", "audio"), note=f"{told}\n{unreadable}".strip())


def _select(scores: np.ndarray, settings: CorpusSettings) -> np.ndarray:
    if settings.liveliness_top_share is not None:
        return liveliness.select(scores, top_share=settings.liveliness_top_share)
    return liveliness.select(scores, cutoff=settings.liveliness_cutoff)


def kept(frame: pl.DataFrame) -> Iterator[tuple[Session, StoredAudio]]:
    """The kept sessions of a sessions table with where their audio lies, in order of their ids."""
    for row in frame.filter("selected").sort("session_id").iter_rows(named=True):
        yield from_json(Session, row["session"]), from_json(StoredAudio, row["audio"])


def gap_fill(workspace: Workspace, sessions: pl.DataFrame) -> StageResult:
    """Words for voiced stretches of at least ``gap_fill_min_s`` that the corpus left empty (P2 3.2)."""
    rows, counts = corpus.filled_gaps(workspace, list(kept(sessions)))
    return StageResult(pl.DataFrame(rows, schema=WORDS_SCHEMA), counts)


def session_words(session: Session, filled: pl.DataFrame) -> dict[Speaker, list[Word]]:
    """Both speakers' words: the corpus's own and those of gap fill."""
    words: dict[Speaker, list[Word]] = {speaker: list(session.side(speaker).words) for speaker in SPEAKERS}
    for row in filled.filter(pl.col("session_id") == session.session_id).iter_rows(named=True):
        words[row["speaker"]].append(Word(row["text"], row["start_s"], row["end_s"], gap_filled=True))
    return words


def engine_labels(workspace: Workspace, sessions: pl.DataFrame, filled: pl.DataFrame) -> StageResult:
    """Labels of every kept session by the rule engine."""
    rules = workspace.profile.conversation.labels
    rows: list[dict[str, object]] = []
    totals: dict[str, int | float | str] = {}
    for session, _ in kept(sessions):
        words = session_words(session, filled)
        left, right = (SpeakerTrack(session.side(speaker).speech, words[speaker]) for speaker in SPEAKERS)
        found = label_conversation(left, right, rules)
        rows += [{"session_id": session.session_id, **asdict(label), "source": "engine"} for label in found]
    frame = pl.DataFrame(rows, schema=LABELS_SCHEMA)
    for kind, count in frame["kind"].value_counts(sort=True).iter_rows():
        totals[str(kind)] = count
    return StageResult(frame, totals, preview=inventory_frame(frame, sessions))


def inventory_frame(labels_frame: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Label inventory over the kept conversations, as Table 5: count, median length, per minute of a conversation."""
    taken = [
        take_inventory(labels_in(labels_frame, session.session_id), session.duration_s) for session, _ in kept(sessions)
    ]
    rows = []
    for kind in KINDS:
        lengths = np.concatenate([one.lengths_s[kind] for one in taken]) if taken else np.zeros(0)
        rows.append(
            {
                "kind": kind,
                "count": len(lengths),
                "median_s": float(np.median(lengths)) if len(lengths) else None,
                "median_per_minute": float(np.median([one.per_minute[kind] for one in taken])) if taken else None,
            }
        )
    return pl.DataFrame(
        rows, schema={"kind": pl.String, "count": pl.Int64, "median_s": pl.Float64, "median_per_minute": pl.Float64}
    )


def labels_in(frame: pl.DataFrame, session_id: str) -> list[Label]:
    """Labels of one session from a labels table."""
    return [
        Label(row["speaker"], row["kind"], row["start_s"], row["end_s"], row["rule"], row["confidence"])
        for row in frame.filter(pl.col("session_id") == session_id).iter_rows(named=True)
    ]


def review_flags(
    workspace: Workspace, labels_frame: pl.DataFrame, filled: pl.DataFrame, sessions: pl.DataFrame
) -> StageResult:
    """Labels that a person should look at first. Projection flags need weights and are absent without them."""
    rules = workspace.profile.conversation.flags
    chosen = list(kept(sessions))
    floors, counts = projection.floors(workspace, [(session.session_id, audio) for session, audio in chosen])
    rows = [
        {"session_id": session.session_id, **asdict(flag)}
        for session, _ in chosen
        for flag in flags_of(
            labels_in(labels_frame, session.session_id),
            session_words(session, filled),
            rules,
            floors.get(session.session_id),
        )
    ]
    schema = {
        "session_id": pl.String, "speaker": pl.String, "kind": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
        "flag": pl.String, "reason": pl.String,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema)
    by_rule = {f"flags_{name}": n for name, n in frame["flag"].value_counts().sort("flag").iter_rows()}
    note = "" if workspace.profile.speech.projection.weights else projection.NO_PROJECTION
    return StageResult(frame, {"flags": frame.height, **by_rule, **counts}, note=note)


def labels(workspace: Workspace, engine: pl.DataFrame) -> StageResult:
    """A person's labels where a session's review is approved, else the engine's.

    A label that a person left as it was keeps the rule and confidence that it was placed with, so that approving a
    session touches only what was changed in it.
    """
    approved = reviews.approved(workspace.reviews_folder)
    known = set(engine["session_id"].unique())
    parts = [engine.filter(~pl.col("session_id").is_in(list(approved)))]
    for session_id, found in sorted(approved.items()):
        if session_id in known:
            before = {_place(label): label for label in labels_in(engine, session_id)}
            rows = [
                {"session_id": session_id, **asdict(before.get(_place(label), label)), "source": "review"}
                for label in found
            ]
            parts.append(pl.DataFrame(rows, schema=LABELS_SCHEMA))
    frame = pl.concat(parts).sort("session_id", "start_s", "end_s", "speaker", "kind")
    reviewed = len(known & set(approved))
    return StageResult(frame, {"labels": frame.height, "sessions": len(known), "sessions_reviewed": reviewed})


def _place(label: Label) -> tuple[Speaker, str, float, float]:
    return label.speaker, label.kind, label.start_s, label.end_s


def candidates(
    workspace: Workspace, sessions: pl.DataFrame, filled: pl.DataFrame, labels_frame: pl.DataFrame
) -> StageResult:
    """Gates, ranking and cap of every session; a session's result depends on that session alone."""
    settings = workspace.profile.conversation
    if settings.point_judge is None:
        return _candidates(workspace, sessions, filled, labels_frame, None)
    calls = workspace.profile.text_calls
    with TextModel(settings.point_judge, workspace.store, calls=calls, role="point judge") as model:
        return _candidates(workspace, sessions, filled, labels_frame, ModelPointJudge(model))


def _candidates(
    workspace: Workspace,
    sessions: pl.DataFrame,
    filled: pl.DataFrame,
    labels_frame: pl.DataFrame,
    judge: curation.PointJudge | None,
) -> StageResult:
    settings = workspace.profile.conversation
    rows: list[dict[str, object]] = []
    for session, audio in kept(sessions):
        labelled = LabelledSession(
            session.session_id,
            labels_in(labels_frame, session.session_id),
            session_words(session, filled),
            {"left": _array(audio.left_s), "right": _array(audio.right_s)},
        )
        found = curation.curate_session(labelled, settings.curation, settings.ranking, judge)
        rows.append(
            {
                "session_id": session.session_id,
                "n_pause": found.n_candidates["pause"],
                "n_turn_end": found.n_candidates["turn_end"],
                "curation": to_json(found),
            }
        )
    frame = pl.DataFrame(rows, schema=CANDIDATES_SCHEMA)
    counts: dict[str, int | float | str] = {
        "pause_candidates": int(frame["n_pause"].sum()),
        "turn_end_candidates": int(frame["n_turn_end"].sum()),
    }
    return StageResult(frame, counts, preview=frame.drop("curation"))


def _array(pairs: tuple[tuple[float, float], ...]) -> np.ndarray:
    return np.asarray(pairs, dtype=np.float64).reshape(-1, 2)


def drawn(workspace: Workspace, candidates_frame: pl.DataFrame, rejected: Mapping[str, str] | None = None) -> Curation:
    """The draw over all sessions, with its funnel; without ``rejected`` windows, with those of the stored points."""
    parts = [from_json(SessionCuration, text) for text in candidates_frame["curation"]]
    settings = workspace.profile.conversation
    judge = curation.NO_JUDGE if settings.point_judge is None else judge_id(settings.point_judge.name)
    refused = rejected_windows.kept(workspace) if rejected is None else rejected
    return curation.draw(parts, settings.curation, judge, refused)


def funnel_frame(workspace: Workspace, candidates_frame: pl.DataFrame) -> pl.DataFrame:
    """The funnel as a table: what each named rule turned down and what was left."""
    return pl.DataFrame([asdict(row) for row in drawn(workspace, candidates_frame).funnel])


def points(workspace: Workspace, candidates_frame: pl.DataFrame) -> StageResult:
    """The points of this run, without windows that two people rejected."""
    rejected = rejected_windows.rejected_now(workspace)
    rejected_windows.keep(workspace, rejected)
    found = drawn(workspace, candidates_frame, rejected)
    rows = [
        {
            "point_id": point.point_id,
            "session_id": point.session_id,
            "kind": point.kind,
            "speaker": point.speaker,
            "boundary_s": point.boundary_s,
            "pause_s": None if point.pause_end_s is None else point.pause_end_s - point.boundary_s,
            "ranking": point.ranking,
            "context_text": point.context_text,
            "point": to_json(point),
        }
        for point in found.drawn
    ]
    frame = pl.DataFrame(rows, schema=POINTS_SCHEMA)
    counts: dict[str, int | float | str] = {
        "pause": frame.filter(pl.col("kind") == "pause").height,
        "turn_end": frame.filter(pl.col("kind") == "turn_end").height,
        "judge": found.judge,
        "windows_rejected": sum(rejection.stage == curation.WINDOW_CHECK[0] for rejection in found.rejections),
    }
    return StageResult(frame, counts, preview=funnel_frame(workspace, candidates_frame))


def items(
    workspace: Workspace,
    sessions: pl.DataFrame,
    filled: pl.DataFrame,
    labels_frame: pl.DataFrame,
    points_frame: pl.DataFrame,
    identities: Mapping[tuple[str, str], str] | None = None,
    probes: Sequence[Item] = (),
) -> StageResult:
    """Stimulus and reference of every point, and the recall items in ``probes``.

    ``identities`` are identity prompts by session and speaker: a system is given that of the person it plays.
    """
    profile = workspace.profile
    settings = StimulusSettings(
        history_s=profile.conversation.history_s,
        sample_rate_hz=profile.conversation.sample_rate_hz,
        gate=profile.gate,
        reply_playback=profile.conversation.reply_playback,
    )
    made: list[Item] = []
    for session, stored in kept(sessions):
        mine = points_frame.filter(pl.col("session_id") == session.session_id)
        if not mine.height:
            continue
        samples, rate = workspace.blobs.read_audio(stored.source)
        audio = SessionAudio(stored.source, samples, rate, workspace.blobs)
        found = labels_in(labels_frame, session.session_id)
        words = session_words(session, filled)
        for point in (from_json(Point, text) for text in mine["point"]):
            prompt = (identities or {}).get((session.session_id, other(point.speaker)))
            made.append(item_of(point, session, found, words, audio, replace(settings, identity_prompt=prompt)))
    made += probes
    frame = items_frame(limited(made, profile.limit, profile.seed))
    by_kind = {f"{kind}_items": count for kind, count in frame["condition"].value_counts(sort=True).iter_rows()}
    return StageResult(frame, {"items": frame.height, **by_kind}, preview=frame.drop("stimulus", "reference"))


def bounds(workspace: Workspace, items_frame: pl.DataFrame) -> StageResult:
    """Measurement rows of the person, the floor and the ceiling, on the same items as every system (P2 4.3)."""
    known = list(items_of(items_frame).values())
    heard, counts = corpus.human_replies(workspace, known)
    vectors = scoring.vectors()
    parts = {
        PERSON: bounds_of_points.human_measurements(known),
        FLOOR: bounds_of_points.floor_measurements(known, vectors, workspace.profile.seed),
        CEILING: bounds_of_points.ceiling_measurements(known, heard, vectors),
    }
    of_text, told = text_ceilings(workspace, known)
    parts |= of_text
    by_id = {item.item_id: item for item in known}
    rows = [measurement_row(name, "", by_id[each.item_id], each) for name, found in parts.items() for each in found]
    frame = frame_of(rows, tables.MEASUREMENTS)
    return StageResult(frame, {**counts, **told, "scores": frame.height}, preview=frame.drop("details"))
