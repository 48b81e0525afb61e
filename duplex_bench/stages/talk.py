"""Items of a run as something to be played to a system while somebody listens."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.audio.resample import resample
from duplex_bench.contract.types import Spec
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Stimulus, Track
from duplex_bench.rollout.plan import StreamPlan, plan_for
from duplex_bench.rollout.record import request_for
from duplex_bench.stages.stored_run import TRACKS, stored
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import from_pcm16
from duplex_bench.storage.digests import seed_from, stimulus_digest
from duplex_bench.storage.serial import from_json
from duplex_bench.systems.talking.app import PlayableItem, Played
from duplex_bench.systems.talking.partner import TALK_RATE_HZ


def playable_items(workspace: Workspace) -> list[PlayableItem]:
    """Items of both tracks that a run of this profile made; none if it was never run."""
    return [
        PlayableItem(row["item_id"], track, row["protocol"], row["live_s"])
        for track in TRACKS
        for row in _rows(workspace, track)
    ]


def player(workspace: Workspace, spec: Spec) -> Callable[[str], Played]:
    """What to play of an item by its id; the callable raises KeyError for one that is not there."""

    def played(item_id: str) -> Played:
        for track in TRACKS:
            for row in _rows(workspace, track):
                if row["item_id"] == item_id:
                    return _played(workspace, spec, row["stimulus"], plan_for(row["protocol"], protocols))
        raise KeyError(f"no item {item_id!r}")

    protocols = workspace.profile.rollout.protocols
    return played


def _rows(workspace: Workspace, track: Track) -> list[dict[str, Any]]:
    items = stored(workspace, track, "items")
    return [] if items is None else list(items.sort(pl.col("protocol"), "item_id").iter_rows(named=True))


def _played(workspace: Workspace, spec: Spec, text: str, plan: StreamPlan) -> Played:
    stimulus = from_json(Stimulus, text)
    seed = seed_from("rollout", stimulus_digest(stimulus), 0)
    request, omitted = request_for(stimulus, spec, workspace.blobs, seed)
    live = _heard(workspace, stimulus.live)
    if stimulus.after is not None:
        live = np.concatenate([live, _heard(workspace, stimulus.after)])
    after_s = plan.cap_s or plan.silence_after_s + plan.extra_silence_s
    return Played(request, np.concatenate([live, np.zeros(round(after_s * TALK_RATE_HZ), np.float32)]), omitted)


def _heard(workspace: Workspace, part: AudioSlice) -> npt.NDArray[np.float32]:
    return resample(from_pcm16(workspace.blobs.read_slice(part)), part.sample_rate_hz, TALK_RATE_HZ)
