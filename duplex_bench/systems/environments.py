"""Opens the system that a card describes: in this process, or in a worker under another interpreter.

A foreign environment needs numpy alone: ``duplex_bench/__init__.py`` and ``duplex_bench/contract`` are put into a zip
file, and that file on the worker's import path.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from duplex_bench.contract.archive import sources_archive
from duplex_bench.contract.client import Timeouts
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.returned import checked_system
from duplex_bench.contract.types import SYSTEM_ERRORS, System
from duplex_bench.contract.worker import load_factory
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.interpreters import fault_of
from duplex_bench.systems.virtual_environments import made_interpreter
from duplex_bench.systems.workers import Launch, SystemStartError, WorkerCommand, WorkerSystem, plain_launch

INSIDE_VARIABLE: Final = "DUPLEX_BENCH_INSIDE_IMAGE"
"""The image that this process itself runs in: a system of that image is started here, not by a container tool."""
CACHE_FOLDER: Final = Path(".cache/duplex_bench")
_KEYS: Final = {"none": "kind", "python": "interpreter", "command": "command", "image": "container_tool"}
_DOCS: Final = "docs/session-contract.md"
_OWN: Final = "duplex_bench."


def contract_archive(cache_folder: Path = CACHE_FOLDER) -> Path:
    """The zip of the contract's sources, named by its content; written once, whole or not at all."""
    return sources_archive(cache_folder)


def not_set_up(card: SystemCard, cache_folder: Path) -> str | None:
    """What has to be done before the system of ``card`` can be opened, or None."""
    if card.environment.is_made_here and made_interpreter(card, cache_folder) is None:
        return f"its environment is not there: duplex-bench systems setup {card.name}"
    return None


def worker_command(card: SystemCard, cache_folder: Path = CACHE_FOLDER) -> WorkerCommand:
    """How the worker of ``card`` is started.

    Raises:
        SystemStartError: Its environment is not set up.
    """
    environment = card.environment
    missing = not_set_up(card, cache_folder)
    if missing is not None:
        raise SystemStartError(missing)
    absent = [entry for entry in environment.python_path if not Path(entry).exists()]
    if absent:
        raise SystemStartError(f"environment.python_path: {absent[0]} is not there: a path is seen from the card")
    archives = [str(contract_archive(cache_folder))]
    module = card.adapter.partition(":")[0]
    if module.startswith(_OWN):
        # Adapters of ours that run in a model's environment lie in folders that import the contract alone.
        folder = "/".join(module.split(".")[1:-1])
        archives = [str(sources_archive(cache_folder, ("contract", folder)))]
    limit_gb = environment.memory_limit_gb
    return WorkerCommand(
        command=_command(card, cache_folder),
        python_path=(*archives, *environment.python_path),
        adapter=card.adapter,
        settings=json.dumps(card.settings),
        memory_limit_bytes=None if limit_gb is None else int(limit_gb * 1e9),
        title=f"image {environment.image}" if environment.kind == "image" else "",
        key=f"environment.{_KEYS[environment.kind]}",
    )


def _command(card: SystemCard, cache_folder: Path) -> tuple[str, ...]:
    environment = card.environment
    if environment.kind == "command":
        return environment.command
    if environment.kind == "image" and os.environ.get(INSIDE_VARIABLE) == environment.image:
        return ("python3",)
    if environment.kind == "image":
        # The socket and our sources are seen under the paths they have here; ending of standard input ends it.
        return (
            *environment.container_tool, "run", "--rm", "--interactive",
            "--volume", "{socket_folder}:{socket_folder}", "{mounts}", "--env", "PYTHONPATH={python_path}",
            "--entrypoint", "python3", str(environment.image),
        )  # fmt: skip
    return (environment.interpreter or str(made_interpreter(card, cache_folder)),)


@contextlib.contextmanager
def open_system(
    card: SystemCard,
    *,
    store: ObjectStore | None = None,
    cache_folder: Path = CACHE_FOLDER,
    timeouts: Timeouts | None = None,
    launch: Launch = plain_launch,
) -> Iterator[System | PushSystem]:
    """The system of ``card``, ready for sessions; a worker ends with the ``with`` block.

    Args:
        card: With its paths resolved (``card.resolved``).
        store: Cache of engines, for cards that use one.
        cache_folder: Where the contract's archive is kept.
        timeouts: Of a worker's answers; the card's by default.
        launch: Around a worker's life: Dagster Pipes inside a run.

    Raises:
        SystemStartError: The system could not be made; names the card and says why.
    """
    if card.environment.kind == "none":
        try:
            factory = load_factory(card.adapter)
            settings = dict(card.settings)
            made = factory(settings, store=store) if card.uses_cache else factory(settings)
            # By the card, as the driver of a run is chosen by it.
            system = checked_system(made, "new_push_session" if card.driver == "realtime" else "new_session")
        except SYSTEM_ERRORS as error:
            remedy = ""
            if (
                isinstance(error, ModuleNotFoundError)
                and error.name == card.adapter.partition(":")[0].partition(".")[0]
            ):
                remedy = ": a card without [environment] names a module of this Python; one beside the card needs "
                remedy += 'kind = "python", an interpreter and python_path = ["."]'
            told = f"{card.adapter}: {type(error).__name__}: {error}{remedy}"
            raise SystemStartError(f"system {card.name}: {told}") from error
        yield system
        return
    environment = card.environment
    timeouts = timeouts or Timeouts(open_s=environment.open_timeout_s, step_s=environment.step_timeout_s)
    # A container does not see the files that a launch speaks through.
    inside = os.environ.get(INSIDE_VARIABLE) == environment.image
    launch = plain_launch if environment.kind == "image" and not inside else launch
    try:
        worker = WorkerSystem(worker_command(card, cache_folder), timeouts, environment.start_timeout_s, launch)
    except SystemStartError as error:
        raise SystemStartError(f"system {card.name}: {_plainer(card, error)}") from error
    with worker:
        yield worker


def _plainer(card: SystemCard, error: SystemStartError) -> str:
    """What ``error`` says, or what lies below it if that can be told."""
    environment = card.environment
    if environment.kind == "python" and environment.interpreter is not None:
        fault = fault_of(environment.interpreter)
        return str(error) if fault is None else f"environment.interpreter: {fault}"
    if environment.kind == "command":
        return f"{error} (a command is handed --settings JSON and --socket PATH and serves there: {_DOCS})"
    return str(error)
