"""A folder that is replaced whole: an interrupted build leaves the old one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duplex_bench.reporting.inputs import ReportInputError

MARKER = "report.json"


@contextmanager
def replaced_folder(out: Path) -> Iterator[Path]:
    """A temporary sibling of ``out`` to fill; on success it takes the place of ``out``, else it is removed.

    The only moment at which neither name exists lies between two renames; a later build then finds the old folder
    under its ``.previous`` name and puts it back first.

    Raises:
        ReportInputError: ``out`` exists and is not a report (no ``report.json``), so it is not overwritten.
    """
    out = _absolute(out)
    previous = out.with_name(f".{out.name}.previous")
    if previous.exists() and not out.exists():
        previous.rename(out)
    require_replaceable(out)
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


def require_replaceable(out: Path) -> None:
    """Refuse a folder that a report may not take the place of, before anything is computed for it.

    Raises:
        ReportInputError: ``out`` exists and is neither a report nor empty.
    """
    out = _absolute(out)
    if out.exists() and not _replaceable(out):
        raise ReportInputError(f"{out} is not a report folder and is not empty: name another folder, or empty this one")


def _absolute(out: Path) -> Path:
    return Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow a link that is meant to stay one


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir()))
