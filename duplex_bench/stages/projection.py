"""The floor that the activity projection foresees in every kept recording: computed once, kept by sound and weights."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from duplex_bench.speech import engines
from duplex_bench.speech.projection.settings import FloorProjection, ProjectionSettings
from duplex_bench.stages.pool import pool
from duplex_bench.stages.session_audio import StoredAudio
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.object_store import FolderStore

NO_PROJECTION = (
    "Without projection flags: no weights of an activity projection are configured (speech.projection.weights), so no "
    "label is doubted because a model expects another floor holder."
)
# The same for people who correct labels.
NOT_LOOKED_AT = "No model of who speaks next has looked for doubtful labels here: there was none to ask."
_BLOB = "npy"


def floors(
    workspace: Workspace, sessions: Sequence[tuple[str, StoredAudio]]
) -> tuple[dict[str, FloorProjection], dict[str, int | float | str]]:
    """The projection of every session by id, and counts; empty without weights.

    Raises:
        ProjectionError: weights are named but not there, or torch is not.
    """
    settings = workspace.profile.speech.projection
    if not settings.weights:
        return {}, {"projection": "none"}
    engine_id = engines.activity_projection(settings).engine_id
    tasks = [Task(digest_value("projection", engine_id, audio.source), name, audio.source) for name, audio in sessions]
    done = resume(
        workspace.ledger("conversation/projection"),
        "activity projection",
        tasks,
        project_session,
        executor=pool(workspace.profile.processes),
        common=(str(workspace.data), settings),
    )
    if done.failed:
        # Sessions without projection would look as if the model doubted nothing in them.
        raise ValueError(f"{len(done.failed)} sessions could not be projected: {next(iter(done.failed.values()))}")
    found = {task.item_id: _read(workspace.blobs, done.payloads[task.key]) for task in tasks}
    return found, {"projection": engine_id, "projected": len(found), "projected_now": len(done.computed)}


def project_session(data: str, settings: ProjectionSettings, source: str) -> str:
    """Project one stored recording; where its frames lie, as JSON."""
    blobs = BlobStore(FolderStore(Path(data) / "store"))
    samples, rate = blobs.read_audio(source)
    floor = engines.activity_projection(settings).project(from_pcm16(samples), rate)
    buffer = io.BytesIO()
    np.save(buffer, np.stack([floor.now, floor.future]), allow_pickle=False)
    return json.dumps({"frame_rate_hz": floor.frame_rate_hz, "frames": blobs.put(buffer.getvalue(), _BLOB)})


def _read(blobs: BlobStore, payload: str) -> FloorProjection:
    told = json.loads(payload)
    now, future = np.load(io.BytesIO(blobs.get(told["frames"], _BLOB)), allow_pickle=False)
    return FloorProjection(told["frame_rate_hz"], now, future)
