"""Session recordings as the rest of the pipeline wants them: two channels, one rate, stored once, gated once."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from duplex_bench.audio import files
from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.audio.resample import resample
from duplex_bench.conversation.sessions import Session, Side
from duplex_bench.stages.pool import pool
from duplex_bench.stages.work import Task, WorkDone, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.places import open_store

# Raise when what is stored for a recording changes.
VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredAudio:
    """A session's recording in the blob store, and each channel's gate intervals in seconds (k, 2)."""

    source: str
    n_samples: int
    left_s: tuple[tuple[float, float], ...]
    right_s: tuple[tuple[float, float], ...]


def _state(side: Side) -> tuple[str, int, int, int]:
    # Hashing a corpus of hours on every run would cost more than the run: size and time of change stand for content.
    found = Path(side.audio_path).stat()
    return str(side.audio_path), side.channel, found.st_size, found.st_mtime_ns


def store_sessions(workspace: Workspace, sessions: list[Session]) -> WorkDone:
    """Store the recordings of ``sessions``; results (``StoredAudio`` JSON) by session id through ``audio_key``."""
    profile = workspace.profile
    rate = profile.conversation.sample_rate_hz
    tasks = [Task(audio_key(workspace, session), session.session_id, session) for session in sessions]
    return resume(
        workspace.ledger("conversation/session_audio"),
        "conversation recordings",
        tasks,
        store_session,
        executor=pool(profile.processes),
        common=(str(workspace.data), profile.gate, rate),
    )


def audio_key(workspace: Workspace, session: Session) -> str:
    """Key of a session's stored recording."""
    settings = (workspace.profile.conversation.sample_rate_hz, workspace.profile.gate)
    return digest_value("session_audio", VERSION, _state(session.left), _state(session.right), *settings)


@cache
def _blobs(data: str) -> BlobStore:
    return BlobStore(open_store(data))


def _channel(side: Side, rate_hz: int) -> np.ndarray:
    samples, found_hz = files.read(Path(side.audio_path), channels=None)
    return to_pcm16(resample(np.ascontiguousarray(samples[:, side.channel]), found_hz, rate_hz))


def store_session(data: str, gate: GateSettings, rate_hz: int, session: Session) -> str:
    """Read both channels, cut them to the shorter, store them as one two-channel recording; StoredAudio as JSON."""
    left, right = _channel(session.left, rate_hz), _channel(session.right, rate_hz)
    length = min(len(left), len(right))
    both = np.stack([left[:length], right[:length]], axis=1)
    source = _blobs(data).put_audio(both, rate_hz)
    gated = [intervals_s(from_pcm16(both[:, channel]), rate_hz, gate).tolist() for channel in (0, 1)]
    return json.dumps({"source": source, "n_samples": length, "left_s": gated[0], "right_s": gated[1]})
