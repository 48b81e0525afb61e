"""Where conversations come from: a generated corpus, a Seamless folder, or two-channel files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from duplex_bench.conversation import seamless_archives as archives
from duplex_bench.conversation.generator import CORPUS_FOLDER, PlantedSession, read_truth
from duplex_bench.conversation.label_types import SPEAKERS, Speaker
from duplex_bench.conversation.rights import FILE as RIGHTS_FILE
from duplex_bench.conversation.seamless import SeamlessRules, load_seamless
from duplex_bench.conversation.sessions import LoadedSessions, Session
from duplex_bench.conversation.two_channel import load_two_channel, load_two_channel_folder
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import Item
from duplex_bench.speech import engines
from duplex_bench.stages.corpus_writing import write_corpus
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.profile import CorpusSettings
from duplex_bench.stages.session_audio import StoredAudio, audio_key
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.digests import digest_file, digest_value
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import from_json, to_json

# Raise when the generator writes other sessions for the same settings.
GENERATOR_VERSION = 1
GAP_FILL_VERSION = 1
_DONE = "complete.json"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The sessions found, and what the corpus is by content."""

    digest: str
    loaded: LoadedSessions


def digest(workspace: Workspace) -> str:
    """What the corpus is, by content, without reading its sessions."""
    settings = workspace.profile.conversation.corpus
    if settings.kind == "synthetic":
        return f"synthetic {_synthetic_folder(workspace).name}"
    root = Path(settings.path)
    if not settings.path or not root.exists():
        return "missing"
    listed = Path(settings.file_list)
    chosen = digest_file(listed) if settings.file_list and listed.is_file() else ""
    return digest_value(_folder_digest(root), chosen) if chosen else _folder_digest(root)


def load(workspace: Workspace) -> Corpus:
    """The corpus that the profile names; a synthetic one is generated first if it is not there.

    Raises:
        ValueError: the folder does not exist or holds nothing that could be a session.
    """
    settings = workspace.profile.conversation.corpus
    if settings.kind == "synthetic":
        folder = _synthetic(workspace)
        rules = SeamlessRules(splits=("dev",), min_duration_s=0.0)
        return Corpus(digest(workspace), load_seamless(folder / CORPUS_FOLDER, rules))
    root = Path(settings.path)
    if not settings.path or not root.exists():
        raise ValueError(f"conversation.corpus.path {settings.path!r} does not exist: name the folder of the corpus")
    if settings.kind == "seamless":
        loaded = _seamless(root, settings, workspace.profile.seed)
    else:
        loaded = _two_channel(workspace, root)
    return Corpus(digest(workspace), loaded)


def _seamless(root: Path, settings: CorpusSettings, seed: int) -> LoadedSessions:
    """A Seamless folder: archives unpacked, the bucket's layout brought into it, chosen by list and part."""
    rules = SeamlessRules(min_duration_s=settings.min_duration_s)
    only = archives.read_selection(Path(settings.file_list)) if settings.file_list else None
    refused = archives.unpack_archives(root, rules.label)
    refused += archives.from_bucket_layout(root, root, rules.label, only)
    found = load_seamless(root, replace(rules, only=only))
    loaded = LoadedSessions(found.sessions, (*refused, *found.rejections))
    if not settings.part:
        return loaded
    if settings.part not in dict(settings.parts):
        raise ValueError(
            f"conversation.corpus.part {settings.part!r} is no part: there are {', '.join(dict(settings.parts))}"
        )
    parts = archives.speaker_disjoint_split(loaded.sessions, settings.parts, seed)
    return archives.selected(loaded, {name for name, part in parts.items() if part == settings.part})


def _folder_digest(root: Path) -> str:
    # Names, sizes and times of change: hashing terabytes of audio on every look is not affordable.
    files = [path for path in sorted(root.rglob("*")) if path.is_file()] if root.is_dir() else [root]
    return digest_value("corpus", [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files])


def _synthetic_folder(workspace: Workspace) -> Path:
    generator = workspace.profile.conversation.generator
    speech = workspace.profile.speech.text_to_speech
    engine_id = engines.text_to_speech(speech).engine_id
    name = digest_value("synthetic corpus", GENERATOR_VERSION, generator, engine_id)[:16]
    return workspace.corpora_folder / f"synthetic-{name}"


def _synthetic(workspace: Workspace) -> Path:
    generator = workspace.profile.conversation.generator
    folder = _synthetic_folder(workspace)
    marker = FolderStore(folder)
    if not marker.exists(_DONE):
        write_corpus(workspace, folder)
        marker.put(_DONE, json.dumps({"sessions": generator.n_sessions}).encode())
    return folder


def planted_sessions(workspace: Workspace) -> list[PlantedSession]:
    """The truth of the synthetic corpus: voices, labels and facts of every session."""
    return read_truth(_synthetic(workspace))


def _two_channel(workspace: Workspace, root: Path) -> LoadedSessions:
    speech = workspace.profile.speech
    licence = workspace.profile.conversation.corpus.licence
    if not licence and not (root / RIGHTS_FILE).is_file():
        raise ValueError(
            "conversation.corpus.licence is empty: say under which licence the recordings may be used, or give each "
            f"its own in {RIGHTS_FILE} beside them"
        )
    vad = engines.voice_activity(speech.voice_activity)
    recogniser = engines.recogniser(speech.recogniser, workspace.store)
    if root.is_dir():
        return load_two_channel_folder(root, licence=licence, vad=vad, recogniser=recogniser)
    found = load_two_channel(root, licence=licence, vad=vad, recogniser=recogniser)
    return LoadedSessions((found,), ()) if isinstance(found, Session) else LoadedSessions((), (found,))


@dataclass(frozen=True, slots=True)
class GapTask:
    """Voiced stretches of one side without words, in samples [start, stop) of the stored recording."""

    source: str
    channel: int
    gaps: tuple[tuple[int, int], ...]


def transcribe_gaps(data: str, recogniser: str, task: GapTask) -> str:
    """Words of each stretch, with times on the session's clock, as JSON rows (text, start, end)."""
    store = open_store(data)
    samples, rate = BlobStore(store).read_audio(task.source)
    engine = engines.recogniser(recogniser, store)
    rows: list[list[object]] = []
    for start, stop in task.gaps:
        rows += [
            [word.text, start / rate + word.start_s, start / rate + word.end_s]
            for word in engine.words(from_pcm16(samples[start:stop, task.channel]), rate)
            if word.start_s is not None and word.end_s is not None
        ]
    return json.dumps(rows)


def filled_gaps(
    workspace: Workspace, kept: Sequence[tuple[Session, StoredAudio]]
) -> tuple[list[dict[str, object]], dict[str, int | float | str]]:
    """Rows of words found in voiced stretches that had none, and counts."""
    profile = workspace.profile
    rate = profile.conversation.sample_rate_hz
    least_s = profile.conversation.gap_fill_min_s
    listener = profile.speech.gap_fill or profile.speech.recogniser
    engine_id = engines.recogniser(listener).engine_id
    tasks: list[Task] = []
    owners: list[tuple[str, Speaker]] = []
    n_gaps, gap_s = 0, 0.0
    for session, audio in kept:
        for channel, speaker in enumerate(SPEAKERS):
            gaps = wordless_stretches(session, speaker, least_s)
            if not gaps:
                continue
            n_gaps += len(gaps)
            gap_s += sum(stop - start for start, stop in gaps)
            spans = tuple((int(start * rate), int(stop * rate)) for start, stop in gaps)
            key = digest_value("gap_fill", GAP_FILL_VERSION, engine_id, audio_key(workspace, session), channel, spans)
            tasks.append(Task(key, session.session_id, GapTask(audio.source, channel, spans)))
            owners.append((session.session_id, speaker))
    done = resume(
        workspace.ledger("conversation/gap_fill"),
        "gap fill",
        tasks,
        transcribe_gaps,
        executor=engine_pool(listener, profile.processes),
        common=(str(workspace.data), listener),
    )
    rows: list[dict[str, object]] = []
    for task, (session_id, speaker) in zip(tasks, owners, strict=True):
        for text, start_s, end_s in json.loads(done.payloads.get(task.key, "[]")):
            rows.append(
                {"session_id": session_id, "speaker": speaker, "text": text, "start_s": start_s, "end_s": end_s}
            )
    return rows, {**done.counts(), "gaps": n_gaps, "gap_s": round(gap_s, 2), "words": len(rows)}


def wordless_stretches(session: Session, speaker: Speaker, least_s: float) -> list[tuple[float, float]]:
    """Stretches of a side's speech of at least ``least_s`` seconds that no word touches (P2 3.2)."""
    side = session.side(speaker)
    words = np.array([(word.start_s, word.end_s) for word in side.words], dtype=np.float64).reshape(-1, 2)
    found: list[tuple[float, float]] = []
    for start_s, end_s in side.speech:
        at_s = start_s
        inside = words[(words[:, 0] < end_s) & (words[:, 1] > start_s)]
        for word_start_s, word_end_s in inside[np.argsort(inside[:, 0])]:
            if word_start_s - at_s >= least_s:
                found.append((at_s, float(word_start_s)))
            at_s = max(at_s, float(word_end_s))
        if end_s - at_s >= least_s:
            found.append((at_s, end_s))
    return found


@dataclass(frozen=True, slots=True)
class ReplyTask:
    """One human reply to recognise."""

    audio: AudioSlice


def transcribe_reply(data: str, recogniser: str, task: ReplyTask) -> str:
    """Words of a human reply as a recogniser hears them, as JSON."""
    store = open_store(data)
    samples = from_pcm16(BlobStore(store).read_slice(task.audio))
    return to_json(engines.recogniser(recogniser, store).words(samples, task.audio.sample_rate_hz))


def human_replies(
    workspace: Workspace, items: Sequence[Item]
) -> tuple[dict[str, list[TimedWord]], dict[str, int | float | str]]:
    """Each turn-end item's human reply through the recogniser that systems are scored through, by item id."""
    profile = workspace.profile
    engine_id = engines.recogniser(profile.speech.recogniser).engine_id
    tasks = [
        Task(
            digest_value("reply", engine_id, reply.audio.content, reply.audio.sample_rate_hz),
            item.item_id,
            ReplyTask(reply.audio),
        )
        for item in items
        if (reply := item.reference.human_reply) is not None and reply.audio is not None
    ]
    done = resume(
        workspace.ledger("conversation/human_replies"),
        "human replies",
        tasks,
        transcribe_reply,
        executor=engine_pool(profile.speech.recogniser, profile.processes),
        common=(str(workspace.data), profile.speech.recogniser),
    )
    heard = {
        task.item_id: from_json(list[TimedWord], done.payloads[task.key]) for task in tasks if task.key in done.payloads
    }
    return heard, done.counts()
