"""Resources of the code location: the workspace and the table store, chosen by environment."""

import os

from duplex_bench.defs.partitions import DATA_FOLDER
from duplex_bench.lib.io_manager import TableIOManager
from duplex_bench.lib.resources import WorkspaceResource

workspace = WorkspaceResource(
    profile=os.environ.get("DUPLEX_BENCH_PROFILE", "demo"),
    data=DATA_FOLDER,
    limit=int(os.environ.get("DUPLEX_BENCH_LIMIT", "0")),
)

RESOURCES = {"workspace": workspace, "io_manager": TableIOManager(workspace=workspace)}
