"""``duplex-bench ui``: the Dagster UI of a data folder."""

import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from duplex_bench.cli.console import console
from duplex_bench.cli.dagster_home import dagster_home
from duplex_bench.cli.run import environment, initialise

HOST = "127.0.0.1"


def serve_ui(root: Path, data: Path, port: int, profile: str, limit: int | None) -> NoReturn:
    """The Dagster UI on loopback until it is interrupted or terminated.

    This process becomes ``dagster dev``, so that whoever ends it ends the web server, daemon and code server too.

    Raises:
        ValueError: the port is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ValueError(f"port {port} is in use: give another with --port, or end what holds it") from error
    initialise(root, data)
    with environment(root, data, profile, limit):
        size = f" with --limit {limit}" if limit else ""
        console.print(
            f"[bold]Dagster UI[/] of {data}, profile {profile}{size}: http://{HOST}:{port} (Ctrl-C ends it)",
            highlight=False,
        )
        sys.stdout.flush()
        os.environ["DAGSTER_HOME"] = str(dagster_home(root, data))
        os.chdir(root)
        command = ["-m", "dagster", "dev", "-h", HOST, "-p", str(port), "-w", "workspace.yaml"]
        os.execv(sys.executable, [sys.executable, *command])
