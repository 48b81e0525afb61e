"""What a system's scores were made with: scoring settings and the versions of the stages, noted beside its tables.

Rollouts are told apart by their keys. A score is not: whether it would come out the same today is seen here.
"""

import json

from duplex_bench.records.items import Track
from duplex_bench.stages import code_versions
from duplex_bench.stages.rescore_scope import scoring_settings
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value

_STAGES = ("activity", "words", "judgements", "measurements")


def note_scored(workspace: Workspace, track: Track, system: str) -> None:
    """Note that the scores of a system have just been made with the settings and stages of now."""
    workspace.store.put(
        _key(workspace, track, system), json.dumps({"made_with": _made_with(workspace, track)}).encode()
    )


def scored_otherwise(workspace: Workspace, track: Track, system: str) -> bool:
    """Whether the scores of a system were made with other settings or stages; False where nothing is noted of them."""
    key = _key(workspace, track, system)
    if not workspace.store.exists(key):
        return False
    return bool(json.loads(workspace.store.get(key))["made_with"] != _made_with(workspace, track))


def _made_with(workspace: Workspace, track: Track) -> str:
    versions = {stage: code_versions.of(track, stage) for stage in _STAGES}
    return digest_value("scored/1", scoring_settings(workspace.profile), versions)


def _key(workspace: Workspace, track: Track, system: str) -> str:
    return f"parts/{workspace.profile.name}/scored/{track}/{system}.json"
