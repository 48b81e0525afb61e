"""``duplex-bench review``: serve the label review page."""

import os
from pathlib import Path

from duplex_bench.cli.console import console
from duplex_bench.review import exports
from duplex_bench.review.access import ReviewSettings
from duplex_bench.stages.review_source import open_review
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.storage.object_store import FolderStore

TOKEN, ADMINISTRATOR_TOKEN = "DUPLEX_BENCH_REVIEW_TOKEN", "DUPLEX_BENCH_REVIEW_ADMIN_TOKEN"


def export_review(data: Path, profile: str, database: str | None, folder: Path) -> int:
    """Write every agreement table as ``folder/<name>.csv``; returns the exit code.

    Raises:
        ValueError: nothing to review, or no usable database.
        OSError: the database does not answer, or the folder cannot be written.
    """
    desk = open_review(open_workspace(profile, data), ReviewSettings(), database)
    store = FolderStore(folder)
    for name in exports.NAMES:
        rows = exports.table(desk, name)
        store.put(f"{name}.csv", exports.csv(rows).encode())
        console.print(f"{folder / name}.csv: {len(rows)} rows", highlight=False, soft_wrap=True)
    return 0


def serve_review(
    data: Path,
    profile: str,
    host: str,
    port: int,
    administrators: list[str],
    blind: bool,
    database: str | None,
    names: list[str],
) -> int:
    """Serve until interrupted; returns the exit code.

    Tokens come from the environment, so that they stand in no process list.

    Raises:
        ValueError: nothing to review, another host than loopback without tokens, or no usable database.
        OSError: the database does not answer.
        SystemExit: the port is taken.
    """
    import uvicorn

    from duplex_bench.review.access import LOOPBACK
    from duplex_bench.review.app import create_app

    settings = ReviewSettings(
        administrators=frozenset(administrators),
        blind=blind,
        token=os.environ.get(TOKEN) or None,
        administrator_token=os.environ.get(ADMINISTRATOR_TOKEN) or None,
    )
    settings.check_host(host)
    desk = open_review(open_workspace(profile, data), settings, database)
    app = create_app(desk, (*LOOPBACK, host, *names) if host not in {"0.0.0.0", "::"} else (*LOOPBACK, *names))
    shown = host if host not in {"0.0.0.0", "::"} else (names[0] if names else "127.0.0.1")
    console.print(f"[bold]review:[/] http://{shown}:{port}", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]{len(desk.material.sessions())} sessions. Administrators: {', '.join(sorted(administrators))}. "
        "Ctrl-C ends it; every edit is stored when it is made.[/]",
        highlight=False,
        soft_wrap=True,
    )
    uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)
    return 0
