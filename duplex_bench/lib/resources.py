"""The workspace as a Dagster resource: which profile, and where run outputs lie."""

import dagster as dg
from pydantic import PrivateAttr

from duplex_bench.stages.workspace import Workspace, open_workspace


class WorkspaceResource(dg.ConfigurableResource[Workspace]):
    """Profile (a shipped name or a path to a TOML file) and data folder, both from the environment by default."""

    profile: str
    data: str
    limit: int = 0
    _opened: Workspace | None = PrivateAttr(default=None)

    def open(self) -> Workspace:
        """The workspace; a bad profile is a ValueError that names file, key and remedy."""
        if self._opened is None:
            self._opened = open_workspace(self.profile, self.data, self.limit or None)
        return self._opened
