"""Whether a part of the graph would come out as it already stands, so that asking again costs nothing.

The item ledger already does no work twice; what is left is reading and writing tables and the run database. A part
is left alone only if the code, the profile, the card, and the tables it reads are byte for byte those of its last
run, and every table it wrote is still there unchanged.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_bytes, digest_file, digest_value

_SOURCES = {".py", ".toml", ".md", ".txt", ".csv", ".json", ".html", ".css", ".js", ".mplstyle"}


@cache
def code_digest() -> str:
    """Digest of every source and data file of the package."""
    return tree_digest(Path(str(files("duplex_bench"))))


def tree_digest(root: Path) -> str:
    """Digest of every source and data file below ``root``, by name and content."""
    found = {
        path.relative_to(root).as_posix(): digest_file(path)
        for path in sorted(root.rglob("*"))
        if path.suffix in _SOURCES and "__pycache__" not in path.parts
    }
    return digest_value("code", found)


def table_digests(workspace: Workspace, keys: Iterable[str]) -> dict[str, str | None]:
    """Digest of each stored table; None where there is none."""
    store = workspace.store
    return {key: digest_bytes(store.get(key)) if store.exists(key) else None for key in keys}


def fingerprint(workspace: Workspace, label: str, inputs: Sequence[str], outside: Mapping[str, Any]) -> str:
    """Digest of all that a part's tables depend on. ``outside`` holds what is no table: card, corpus, reviews."""
    return digest_value(
        "part/1", label, code_digest(), workspace.profile.digest, table_digests(workspace, inputs), dict(outside)
    )


def is_current(workspace: Workspace, label: str, mark: str, outputs: Sequence[str], also: Sequence[Path] = ()) -> bool:
    """Whether the part's last run had this fingerprint and everything it wrote still stands."""
    key = _key(workspace, label)
    if not workspace.store.exists(key) or not all(path.exists() for path in also):
        return False
    try:
        last = json.loads(workspace.store.get(key))
    except ValueError:
        return False
    now = table_digests(workspace, outputs)
    return bool(last.get("fingerprint") == mark and last.get("outputs") == now and None not in now.values())


def note(workspace: Workspace, label: str, mark: str, outputs: Sequence[str]) -> None:
    """Remember that the part has just been run to the end."""
    told = {"fingerprint": mark, "outputs": table_digests(workspace, outputs)}
    workspace.store.put(_key(workspace, label), json.dumps(told, sort_keys=True).encode())


def _key(workspace: Workspace, label: str) -> str:
    return f"parts/{workspace.profile.name}/{digest_value(label)[:24]}.json"
