"""A folder that is replaced whole: an interrupted build leaves the old one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.places import REPORT_MARKER

MARKER = REPORT_MARKER


@contextmanager
def replaced_folder(out: Path, marker: str = MARKER) -> Iterator[Path]:
    """A temporary sibling of ``out`` to fill; on success it takes the place of ``out``, else it is removed.

    The only moment at which neither name exists lies between two renames; a later build then finds the old folder
    under its ``.previous`` name and puts it back first.

    Args:
        out: the folder.
        marker: file by which an earlier one of its kind is known.

    Raises:
        ReportInputError: ``out`` exists and is not one of its kind (no ``marker``), so it is not overwritten.
    """
    out = _absolute(out)
    previous = out.with_name(f".{out.name}.previous")
    if previous.exists() and not out.exists():
        previous.rename(out)
    require_replaceable(out, marker)
    building = out.with_name(f".{out.name}.building-{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        yield building
        shutil.rmtree(previous, ignore_errors=True)
        if out.exists():
            out.rename(previous)
        building.rename(out)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    shutil.rmtree(previous, ignore_errors=True)


def require_replaceable(out: Path, marker: str = MARKER) -> None:
    """Refuse a folder that a report may not take the place of, before anything is computed for it.

    Raises:
        ReportInputError: ``out`` exists and is neither a report nor empty.
    """
    out = _absolute(out)
    if out.exists() and not _replaceable(out, marker):
        kind = marker.removesuffix(".json")
        raise ReportInputError(f"{out} is not a {kind} folder and is not empty: name another folder, or empty this one")


def _absolute(out: Path) -> Path:
    return Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow a link that is meant to stay one


def _replaceable(folder: Path, marker: str) -> bool:
    return folder.is_dir() and ((folder / marker).is_file() or not any(folder.iterdir()))
