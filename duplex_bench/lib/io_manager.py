"""Tables between assets: Parquet in the object store, one object per asset and partition."""

from typing import Any, cast

import dagster as dg
import polars as pl
from pydantic import PrivateAttr

from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.records.items import Track
from duplex_bench.stages.run_record import note_run
from duplex_bench.stages.scored_with import note_scored
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import DamagedTableError, read_frame, write_frame

# Input metadata: a table that was never made arrives as None instead of ending the run.
OPTIONAL = "optional"
# Input metadata: of several partitions, those whose table is damaged are left out as if never made. For who only looks
# at what is about to be made again; a stage that counts them must not do without one in silence.
WHOLE_ONLY = "whole_only"
# With these tables a run has scores that others may be compared with: they need to know how they were made.
_SCORES = frozenset({"measurements", "statistics"})


class MissingTableError(ValueError):
    """A table that an asset reads was never made; the message says which asset makes it."""


class TableIOManager(dg.ConfigurableIOManager):
    """Stores the table an asset returns and hands it to the assets below.

    An input over several partitions arrives as ``{partition: table}`` of those that exist: what is missing is for the
    stage to count, since a benchmark with one system still running is no error.
    """

    workspace: dg.ResourceDependency[WorkspaceResource]
    _opened: Workspace | None = PrivateAttr(default=None)

    def _workspace(self) -> Workspace:
        if self._opened is None:
            self._opened = self.workspace.open()
        return self._opened

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        """Write one table."""
        partition = context.partition_key if context.has_partition_key else None
        workspace = self._workspace()
        key = workspace.table_key(tuple(context.asset_key.path), partition)
        write_frame(workspace.store, key, obj)
        group, name = context.asset_key.path[0], context.asset_key.path[-1]
        if name in _SCORES:
            note_run(workspace)
        if name == "measurements" and partition is not None:
            note_scored(workspace, cast(Track, group), partition)
        context.add_output_metadata({"dagster/row_count": obj.height, "table": key})

    def load_input(self, context: dg.InputContext) -> Any:
        """Read one table, or a dict of tables when the input covers several partitions."""
        workspace = self._workspace()
        path = tuple(context.asset_key.path)
        if not context.has_asset_partitions or context.has_partition_key:
            partition = context.partition_key if context.has_asset_partitions else None
            key = workspace.table_key(path, partition)
            if workspace.store.exists(key):
                return read_frame(workspace.store, key)
            if context.definition_metadata.get(OPTIONAL):
                return None
            of = f" of {partition}" if partition else ""
            raise MissingTableError(f"{'/'.join(path)}{of} was never made (no table {key}): materialise it first")
        keys = {partition: workspace.table_key(path, partition) for partition in context.asset_partition_keys}
        there: dict[str, pl.DataFrame] = {}
        for partition, key in sorted(keys.items()):
            if not workspace.store.exists(key):
                continue
            try:
                there[partition] = read_frame(workspace.store, key)
            except DamagedTableError as error:
                if not context.definition_metadata.get(WHOLE_ONLY):
                    raise
                context.log.warning(str(error))
        return there
