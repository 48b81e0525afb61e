"""``duplex-bench systems talk``: serve the page on loopback until interrupted."""

import os
import socket
from pathlib import Path

from duplex_bench.cli.console import console
from duplex_bench.stages.cards import card_named
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.systems.card import missing_env
from duplex_bench.systems.environments import open_system

HOST = "127.0.0.1"


def serve_talk(data: Path, name: str, port: int, profile: str) -> int:
    """Open the system once and serve the page; returns the exit code.

    Raises:
        ValueError: No such system, it lacks a key, or it could not be made.
        OSError: The port is taken.
    """
    import uvicorn

    from duplex_bench.stages.talk import playable_items, player
    from duplex_bench.systems.talking.app import create_app

    card = card_named(data / "systems", name)
    missing = missing_env(card, os.environ)
    if missing:
        raise ValueError(f"system {name} cannot run here: set {' and '.join(missing)} in the environment")
    workspace = open_workspace(profile, data)
    items = playable_items(workspace)
    with (
        socket.create_server((HOST, port)) as listener,
        open_system(card, store=workspace.store, cache_folder=data / "cache") as system,
    ):
        app = create_app(system, card.title, items, player(workspace, system.spec))
        console.print(f"[bold]talk:[/] http://{HOST}:{listener.getsockname()[1]}", highlight=False, soft_wrap=True)
        paid = f" {card.provider} is paid for what is said." if card.provider else ""
        none = f"No items of profile {profile}: a run without --limit makes them."
        told = f"{len(items)} items of profile {profile} can be played to it." if items else none
        console.print(f"[dim]{told}{paid} Ctrl-C ends it.[/]", highlight=False, soft_wrap=True)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False))
        server.run(sockets=[listener])
    return 0
