"""What a run tells about itself beside its tables: the settings and the code it was made with."""

import dataclasses
import json

from duplex_bench.reporting.places import RECORDS
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.provenance import provenance


def note_run(workspace: Workspace) -> None:
    """Store settings and provenance of now beside the tables of the profile, so that two runs can be set apart."""
    profile = workspace.profile
    told = {
        "profile": profile.name,
        "settings": dataclasses.asdict(profile),
        "facts": dataclasses.asdict(provenance(profile.name, profile.digest)),
    }
    workspace.store.put(f"{RECORDS}/{profile.name}.json", json.dumps(told, indent=1, sort_keys=True).encode())
