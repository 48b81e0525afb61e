"""The workspace as a Dagster resource: which profile, and where run outputs lie."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from duplex_bench.stages.pulse import beating
from duplex_bench.stages.telemetry.observed import observed
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

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Any]:
        """While a run lives, its pulse says so, and how far its stages have come."""
        with ExitStack() as stack:
            store = None
            # A workspace that cannot be opened is for the first stage to report, by name.
            with suppress(ValueError):
                store = self.open().store
            if store is not None and context.run_id is not None and context.log is not None:
                stack.enter_context(observed(store, context.run_id))
                stack.enter_context(beating(store, context.run_id, context.log.info))
            yield self
