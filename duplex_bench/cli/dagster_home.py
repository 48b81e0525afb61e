"""Where the Dagster runs of a data folder are kept: beside its results, so that folders never show one another's."""

import os
from pathlib import Path

from duplex_bench.storage.object_store import FolderStore

_FILE = "dagster.yaml"
_LOCAL = "data/dagster"


def dagster_home(root: Path, data: Path) -> Path:
    """The folder whose ``dagster.yaml`` describes the runs of ``data``.

    That is ``root`` for its own ``data`` folder. Any other folder gets a copy of the settings with a database of its
    own, unless the settings keep runs on a server, where all folders share them. Where ``root`` has no settings those
    of DAGSTER_HOME are meant, as for every process of a cluster.

    Raises:
        ValueError: ``root`` has no settings.
    """
    named = os.environ.get("DAGSTER_HOME")
    if named and not (root / _FILE).is_file() and (Path(named) / _FILE).is_file():
        return Path(named)
    folder = (root / data).resolve()
    if folder == (root / "data").resolve():
        return root
    if not (root / _FILE).is_file():
        raise ValueError(f"no {_FILE} in {root}: `duplex-bench init` there makes it")
    settings = (root / _FILE).read_text("utf-8")
    if _LOCAL not in settings:
        return root
    home = folder / "dagster"
    own = settings.replace(_LOCAL, str(home)).encode("utf-8")
    store = FolderStore(home)
    if not store.exists(_FILE) or store.get(_FILE) != own:
        store.put(_FILE, own)
    return home
