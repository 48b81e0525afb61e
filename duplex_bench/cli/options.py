"""Options that several commands have, and the variables of docs/cluster.md that stand in for them."""

import os
from pathlib import Path
from typing import Annotated

import typer

from duplex_bench.cli.cluster.settings import DATA_VARIABLE, LIMIT_VARIABLE, PROFILE_VARIABLE


def limit_of_environment(given: int | None) -> int | None:
    """``given``, else items a track of DUPLEX_BENCH_LIMIT, where 0 means all as in every process of a cluster.

    Raises:
        typer.BadParameter: the variable is no whole number of items.
    """
    named = os.environ.get(LIMIT_VARIABLE)
    if given is not None or not named:
        return given
    if not named.isdecimal():
        raise typer.BadParameter(f"{LIMIT_VARIABLE} is {named!r}: set it to a number of items, 0 for all")
    return int(named) or None


ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        envvar=PROFILE_VARIABLE,
        help="A shipped profile (demo, paper) or a path to your own TOML file.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        callback=limit_of_environment,
        help=f"Run at most this many items of each track, drawn by hash. Default: {LIMIT_VARIABLE}, or all.",
    ),
]
LimitedOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        callback=limit_of_environment,
        help=f"The results of a run that was made with this --limit. Default: {LIMIT_VARIABLE}, or of all items.",
    ),
]
DataOption = Annotated[
    Path, typer.Option("--data", envvar=DATA_VARIABLE, help="Folder for run outputs, caches and your own cards.")
]
