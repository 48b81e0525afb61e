"""Where a command works: the checkout, or the current folder."""

from pathlib import Path


def root() -> Path:
    """The checkout (or the current folder, for an installed package): where dagster.yaml lies or will lie."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "dagster.yaml").is_file():
            return folder
    return here
