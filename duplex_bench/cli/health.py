"""``duplex-bench health``: look once, or serve the health page and the metrics of all runs."""

import os
from contextlib import chdir
from pathlib import Path

import dagster as dg

from duplex_bench.cli.console import console
from duplex_bench.cli.dagster_home import dagster_home
from duplex_bench.lib.health.app import create_app
from duplex_bench.lib.health.checks import StuckRuns, all_looks, look
from duplex_bench.stages.telemetry.exposition import LOOPBACK, check_address, registry
from duplex_bench.stages.telemetry.observed import StoredCounts
from duplex_bench.storage.places import open_store

TOKEN_VARIABLE = "DUPLEX_BENCH_HEALTH_TOKEN"
_COLOURS = {"ok": "green", "warning": "yellow", "failing": "red"}


def show_health(root: Path, data: Path, host: str, port: int | None) -> int:
    """Print each finding (exit code 1 if anything is failing), or with ``port`` serve until interrupted.

    Raises:
        ValueError: another host than loopback without a token.
        SystemExit: the port is taken.
    """
    # A container's home is named; a checkout's is where its dagster.yaml lies.
    home = os.environ.get("DAGSTER_HOME") or str(dagster_home(root, data))
    with chdir(home), dg.DagsterInstance.from_config(home) as instance:
        store, stuck = open_store(data), StuckRuns()
        looks = all_looks(instance, store, data, stuck, _count_assets)
        if port is None:
            findings = list(look(looks))
            for one in findings:
                colour = _COLOURS[one.state]
                console.print(f"[{colour}]{one.state:8}[/]", f"{one.name}: {one.told}", highlight=False)
            return 1 if any(one.state == "failing" for one in findings) else 0
        token = os.environ.get(TOKEN_VARIABLE) or None
        check_address(host, token, "the health page", TOKEN_VARIABLE)
        import uvicorn

        hosts = ["*"] if host not in LOOPBACK else list(LOOPBACK)
        app = create_app(lambda: list(look(looks)), registry(StoredCounts(store)), token, hosts)
        console.print(f"[bold]health:[/] http://{host}:{port} (metrics at /metrics)", highlight=False, soft_wrap=True)
        uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)
    return 0


def _count_assets() -> int:
    from duplex_bench.definitions import defs

    return len(list(defs.resolve_all_asset_specs()))
