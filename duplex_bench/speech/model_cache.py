"""Files derived from packaged models (joined parts, edited graphs), kept outside the checkout between runs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duplex_bench.storage.digests import digest_bytes, digest_file
from duplex_bench.storage.object_store import FolderStore

CACHE_VARIABLE = "DUPLEX_BENCH_CACHE"


def model_cache_folder() -> Path:
    """``$DUPLEX_BENCH_CACHE``, else ``$XDG_CACHE_HOME/duplex-bench``, else ``~/.cache/duplex-bench``."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named) / "models"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "duplex-bench" / "models"


def joined_file(parts: list[Path], sha256: str, key: str) -> Path:
    """The concatenation of ``parts`` as file ``key`` of the cache folder, made again unless its hash is right.

    Raises:
        ValueError: the parts do not join to a file of hash ``sha256``.
    """
    store = FolderStore(model_cache_folder())
    target = store.root / key
    if target.is_file() and digest_file(target) == sha256:
        return target
    data = b"".join(part.read_bytes() for part in parts)
    found = digest_bytes(data)
    if found != sha256:
        raise ValueError(f"{', '.join(map(str, parts))} join to sha256 {found}, expected {sha256}: run `make setup`")
    store.put(key, data)
    return target


def edited_graph(source: Path, source_sha256: str, edit_name: str, edit: Callable[[Any], None]) -> Path:
    """An ONNX model after ``edit(model)``, cached by the source's hash and the edit's name (raise it on a change).

    The cached file carries its own digest beside it, so that a damaged one is made again.
    """
    store = FolderStore(model_cache_folder())
    key = f"graphs/{edit_name}-{source_sha256[:16]}.onnx"
    target = store.root / key
    try:
        known = store.get(f"{key}.sha256").decode()
    except KeyError:
        known = ""
    if target.is_file() and digest_file(target) == known:
        return target
    import onnx

    model = onnx.load(str(source))
    edit(model)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    store.put(key, data)
    store.put(f"{key}.sha256", digest_bytes(data).encode())
    return target
