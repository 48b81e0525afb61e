"""Where a command works: the checkout, or the current folder."""

from pathlib import Path


def data_folder(data: Path) -> Path:
    """The folder ``data`` of this place.

    Raises:
        ValueError: It is a file.
    """
    folder = root() / data
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--data {data} is a file: name a folder for run outputs")
    return folder


def root() -> Path:
    """The checkout (or the current folder, for an installed package): where dagster.yaml lies or will lie."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "dagster.yaml").is_file():
            return folder
    return here
