"""Hand parts of the graph to the workers as one Dagster backfill, through the web server's GraphQL."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from duplex_bench.cli import graph
from duplex_bench.cli.cluster.control import environment_of_commands
from duplex_bench.cli.cluster.settings import DATA_VARIABLE, WEB_VARIABLE, Runs, runs_of
from duplex_bench.cli.console import console, error_console
from duplex_bench.cli.run import TRACKS, choose
from duplex_bench.stages.due import due, known_only

_LOOK_EVERY_S = 2.0
_ENDED = {"COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED", "COMPLETED"}
_LAUNCH = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  ... on PartitionSetNotFoundError { message } ... on UnauthorizedError { message } } }"""
_LOOK = """query($id: String!) { partitionBackfillOrError(backfillId: $id) { __typename
  ... on PartitionBackfill { status error { message } runs(limit: 500) { id status } }
  ... on PythonError { message } } }"""


def launch(root: Path, runs: Runs, systems: Sequence[str], only: str, wait: bool) -> int:
    """Launch it; with ``wait``, stay until it ends. Returns the exit code.

    Raises:
        ValueError: the workers run something else, or nothing answers at the web server's address, or it refuses; the
            message says what to do.
    """
    known_only(only)
    there = runs_of(root)
    if there is not None and there != runs:
        raise ValueError(f"this cluster runs {there}, not {runs}: leave the options out, or give them to up first")
    names = environment_of_commands(root, runs)
    os.environ.update(names)
    chosen = choose(root, Path(names[DATA_VARIABLE]), runs.profile, "all", systems, runs.limit)
    new = [name for name in chosen.cards if there is not None and name not in there.systems]
    if new:
        raise ValueError(f"the cluster was started before there was a card {new[0]}: `duplex-bench cluster up` again")
    cards = due(chosen.workspace, TRACKS, chosen.cards, only)
    if only != "all" and not cards:
        console.print(f"no system has {only} items", highlight=False)
        return 0
    web = names[WEB_VARIABLE]
    parts = [] if only != "all" else [key for part in graph.shared_parts(TRACKS) for key in part.writes]
    whole = [*parts, *graph.summary_part(TRACKS, sorted(chosen.every_card)).keys]
    partitioned = graph.system_part("any", TRACKS).keys
    params = {
        "title": f"{only} of {', '.join(cards)}"[:200],
        "partitionsByAssets": [
            *({"assetKey": {"path": list(key.path)}} for key in whole),
            *({"assetKey": {"path": list(key.path)}, "partitions": _exactly(cards)} for key in partitioned),
        ],
    }
    answer = _ask(web, _LAUNCH, {"params": params})["launchPartitionBackfill"]
    if answer["__typename"] != "LaunchBackfillSuccess":
        raise ValueError(f"the backfill was refused: {answer.get('message', answer['__typename'])}")
    backfill = answer["backfillId"]
    console.print(
        f"backfill {backfill}: {len(cards)} systems; {web}/runs/b/{backfill}", highlight=False, soft_wrap=True
    )
    return _ended(web, backfill, chosen.workspace.report_folder) if wait else 0


def _exactly(names: Mapping[str, Any]) -> dict[str, Any]:
    return {"ranges": [{"start": name, "end": name} for name in names]}


def _ended(web: str, backfill: str, report: Path) -> int:
    pause, began, since = threading.Event(), time.monotonic(), time.time()
    told = ""
    while True:
        try:
            found = _ask(web, _LOOK, {"id": backfill})["partitionBackfillOrError"]
        except ValueError:
            # The web server may be starting again; the daemon works without it.
            pause.wait(_LOOK_EVERY_S)
            continue
        states: dict[str, int] = {}
        for run in found["runs"]:
            states[run["status"].lower()] = states.get(run["status"].lower(), 0) + 1
        now = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "waiting for the daemon"
        if now != told:
            console.print(f"{time.monotonic() - began:6.0f} s  {now}", highlight=False)
            told = now
        if found["status"] in _ENDED:
            break
        pause.wait(_LOOK_EVERY_S)
    if found["status"] not in {"COMPLETED_SUCCESS", "COMPLETED"}:
        why = (found.get("error") or {}).get("message", "see its runs in the Dagster UI")
        error_console.print(
            f"[red]backfill {found['status'].lower()}:[/] {why}. Finished items are kept: run it again."
        )
        return 1
    page = report / "index.html"
    if page.is_file() and page.stat().st_mtime >= since:
        console.print(f"[bold]Report:[/] {page}", highlight=False, soft_wrap=True)
    else:
        console.print("the report lies with the worker that built it; `duplex-bench report` builds it here, too")
    return 0


def _ask(web: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    try:
        answer = httpx.post(f"{web}/graphql", json={"query": query, "variables": dict(variables)}, timeout=60.0)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise ValueError(f"no Dagster web server at {web} ({error}): duplex-bench cluster up starts it") from error
    told = answer.json()
    if told.get("errors"):
        raise ValueError(f"the web server refused: {told['errors'][0]['message']}")
    data: dict[str, Any] = told["data"]
    return data
