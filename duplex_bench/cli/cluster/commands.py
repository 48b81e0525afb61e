"""The ``duplex-bench cluster`` commands."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Postgres, an S3 object store, Redis and Celery workers on this machine, or those the environment names.",
)

ProfileOption = Annotated[str, typer.Option("--profile", "-p", help="The profile that the cluster runs.")]
OrAsBefore = Annotated[
    str | None, typer.Option("--profile", "-p", help="The profile. Default: as the cluster was told before, or demo.")
]
FolderOption = Annotated[Path, typer.Option("--folder", help="Where the cluster's files lie.")]


@app.command()
def up(
    folder: FolderOption = Path("cluster"),
    profile: OrAsBefore = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Celery workers, one run at a time each.")] = 2,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", help="Queues of the workers; repeat. Default: dagster, gpu."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Run at most this many items a track.")] = None,
) -> None:
    """Start what is not running, and return; what the environment names is used instead of started."""
    from duplex_bench.cli.cluster.control import bring_up
    from duplex_bench.cli.cluster.settings import wanted_runs

    root = Path.cwd() / folder
    bring_up(root, wanted_runs(root, profile, limit), workers, queue or ["dagster", "gpu"])


@app.command()
def down(folder: FolderOption = Path("cluster")) -> None:
    """End every process that ``up`` started; what they stored stays."""
    from duplex_bench.cli.cluster.control import bring_down

    bring_down(Path.cwd() / folder)


@app.command()
def status(folder: FolderOption = Path("cluster")) -> None:
    """Which processes run, which runs are under way, and how far their items are."""
    from duplex_bench.cli.cluster.control import show

    show(Path.cwd() / folder)


@app.command("exec", context_settings={"ignore_unknown_options": True})
def execute(
    command: Annotated[list[str], typer.Argument(help="For example: duplex-bench health --port 8790")],
    folder: FolderOption = Path("cluster"),
) -> None:
    """Run a command in the cluster's folder with its addresses and credentials in the environment."""
    from duplex_bench.cli.cluster.control import run_inside

    raise typer.Exit(run_inside(Path.cwd() / folder, command))


@app.command()
def backfill(
    folder: FolderOption = Path("cluster"),
    profile: OrAsBefore = None,
    system: Annotated[
        list[str] | None, typer.Option("--system", "-s", help="A system card by name; repeat. Default: all.")
    ] = None,
    only: Annotated[
        str, typer.Option("--only", help="all, failed (items that failed or were lost) or stale (what changed).")
    ] = "all",
    wait: Annotated[bool, typer.Option("--wait", help="Stay until it has ended; the exit code says how.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="As given to up, where it was given.")] = None,
) -> None:
    """Hand the graph to the workers as one Dagster backfill: all systems, some, only failed or only stale ones."""
    from duplex_bench.cli.cluster.backfills import launch
    from duplex_bench.cli.cluster.settings import wanted_runs

    root = Path.cwd() / folder
    raise typer.Exit(launch(root, wanted_runs(root, profile, limit), system or [], only, wait))


@app.command()
def prove(
    folder: FolderOption = Path("cluster"),
    profile: ProfileOption = "demo",
    system: Annotated[
        list[str] | None, typer.Option("--system", "-s", help="A system card by name; repeat. Default: all.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Run at most this many items a track.")] = None,
) -> None:
    """Run a profile plainly and on a cluster that is killed and goes on, and compare every table."""
    from duplex_bench.cli.cluster.proof import prove as prove_it

    raise typer.Exit(prove_it(Path.cwd() / folder, profile, system or [], limit))
