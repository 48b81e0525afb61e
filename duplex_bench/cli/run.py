"""``duplex-bench run``: the whole graph, part by part, in this process."""

import logging
import os
import shlex
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

from rich.markup import escape

from duplex_bench.cli import graph
from duplex_bench.cli.console import console, error_console, progress_bars, tell_skipped
from duplex_bench.records.items import Track
from duplex_bench.records.outcome import RETRIED_OUTCOMES
from duplex_bench.stages import conversation, corpus, fingerprints, human_windows, progress
from duplex_bench.stages.cards import readable_cards, unknown_system
from duplex_bench.stages.due import due, known_only
from duplex_bench.stages.workspace import Workspace, open_workspace
from duplex_bench.storage.frames import read_frame
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.environments import not_set_up

# What a shell reports for a command ended by Ctrl-C.
INTERRUPTED = 130

TRACKS: tuple[Track, ...] = ("multiparty", "conversation")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a command was asked to work on."""

    workspace: Workspace
    tracks: tuple[Track, ...]
    cards: dict[str, SystemCard]
    every_card: dict[str, SystemCard]
    profile: str


@dataclass(slots=True)
class Timing:
    """Wall seconds of each part that was run, and the parts that stood already."""

    parts_s: dict[str, float] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)


def opened(root: Path, data: Path, profile: str, limit: int | None = None) -> tuple[Workspace, dict[str, SystemCard]]:
    """The workspace and every card that can be read; what cannot be read is told.

    Raises:
        ValueError: no such profile, or ``data`` is a file.
    """
    if (root / data).exists() and not (root / data).is_dir():
        raise ValueError(f"--data {data} is a file: name a folder for run outputs")
    workspace = open_workspace(profile, root / data, limit)
    cards, errors = readable_cards(workspace.systems_folder)
    tell_skipped(errors)
    return workspace, cards


def by_default(workspace: Workspace, cards: Mapping[str, SystemCard]) -> tuple[str, ...]:
    """Systems that are run when none is named."""
    return workspace.profile.systems or tuple(name for name, card in cards.items() if not card.on_request)


def choose(
    root: Path,
    data: Path,
    profile: str,
    track: str,
    systems: Sequence[str],
    limit: int | None = None,
    *,
    is_plan: bool = False,
) -> Chosen:
    """Profile, tracks and systems by name; for a plan also those that could not run here as it is, if they are named.

    Raises:
        ValueError: a name that is not known; the message lists those that are.
    """
    tracks = tuple(name for name in TRACKS if track in {name, "all"})
    if not tracks:
        raise ValueError(f"no track {track!r}: choose {', '.join(TRACKS)} or all")
    workspace, cards = opened(root, data, profile, limit)
    wanted = tuple(systems) or by_default(workspace, cards)
    unknown = [name for name in wanted if name not in cards]
    if unknown:
        raise ValueError(unknown_system(unknown[0], cards, workspace.systems_folder))
    lacking = {name: missing for name in wanted if (missing := missing_env(cards[name], os.environ))}
    if is_plan and systems:
        for name, missing in lacking.items():
            error_console.print(f"[dim]to run {name}, set {' and '.join(missing)}[/]", highlight=False)
        for name in wanted:
            if why := not_set_up(cards[name], workspace.data / "cache"):
                error_console.print(f"[dim]to run {name}: {why}[/]", highlight=False)
        return Chosen(workspace, tracks, {name: cards[name] for name in wanted}, cards, profile)
    if lacking:
        told = "; ".join(f"{name} needs {' and '.join(missing)}" for name, missing in lacking.items())
        if len(lacking) == len(wanted):
            raise ValueError(f"nothing to run: {told}. Set it in the environment (A|B: either), or name other systems")
        error_console.print(f"[dim]passed over for want of a key or an address: {told}[/]", highlight=False)
    able = {name: cards[name] for name in wanted if name not in lacking}
    undone = {name: why for name, card in able.items() if (why := not_set_up(card, workspace.data / "cache"))}
    if undone and len(undone) == len(able):
        raise ValueError(f"nothing to run: {'; '.join(f'{name}: {why}' for name, why in undone.items())}")
    for name, why in undone.items():
        error_console.print(f"[dim]passed over: {name}: {why}[/]", highlight=False)
        del able[name]
    return Chosen(workspace, tracks, able, cards, profile)


@contextmanager
def environment(root: Path, data: Path, profile: str, limit: int | None = None) -> Iterator[None]:
    """The environment that the code location reads its profile and data folder from, and quiet logs."""
    told = {
        "DUPLEX_BENCH_PROFILE": profile,
        "DUPLEX_BENCH_DATA": str(root / data),
        "DUPLEX_BENCH_LIMIT": str(limit or 0),
    }
    named = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    logging.getLogger("dagster").setLevel(logging.ERROR)
    try:
        with chdir(root):
            yield
    finally:
        # A later command in this process reads these variables too, and is told nothing by this one.
        for name, value in named.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run_benchmark(
    root: Path,
    data: Path,
    profile: str,
    track: str,
    systems: Sequence[str],
    limit: int | None = None,
    again: bool = False,
    only: str = "all",
) -> int:
    """Materialise everything asked for; returns the exit code.

    ``only`` passes over systems that were never run, and of the others over those without failed items (``failed``)
    or without a change since their last run (``stale``). What stands above and below the systems is run if due.
    """
    started = time.perf_counter()
    known_only(only)
    chosen = choose(root, data, profile, track, systems, limit)
    timing = Timing()
    with environment(root, data, profile, limit):
        from duplex_bench.cli import local_run
        from duplex_bench.definitions import defs

        parts = graph.shared_parts(chosen.tracks)
        parts += [graph.system_part(name, chosen.tracks) for name in chosen.cards]
        parts.append(graph.summary_part(chosen.tracks, sorted(chosen.every_card)))
        failed: list[str] = []
        damaged: list[str] = []
        lost: list[str] = []
        with local_run.instance_of(root, data) as instance, progress_bars():
            local_run.end_runs_of_dead_processes(instance)
            for part in parts:
                if part.system is not None and not _meant(chosen, part.system, only):
                    continue
                began = time.perf_counter()
                mark = _mark(chosen, part)
                if not again and _stands(chosen, part, mark):
                    timing.unchanged.append(part.label)
                    continue
                try:
                    outcome = local_run.execute(
                        defs, instance, root, part.keys, partition=part.system, label=part.label
                    )
                except KeyboardInterrupt:
                    error_console.print(
                        f"[yellow]interrupted at {part.label}.[/] Finished work is kept: run the same again to go on."
                    )
                    return INTERRUPTED
                timing.parts_s[part.label] = time.perf_counter() - began
                if not console.is_terminal:
                    console.print(f"{part.label}: {timing.parts_s[part.label]:.0f} s", highlight=False)
                damaged += outcome.damaged
                if outcome.success and outcome.unfinished:
                    # Not noted as done: what failed or was lost is tried again by the next run.
                    lost.append(f"{part.label}: {outcome.unfinished}{_why_lost(chosen, part)}")
                    continue
                if outcome.success:
                    fingerprints.note(chosen.workspace, part.label, mark, _tables(chosen, part))
                    continue
                failed.append(part.label)
                error_console.print(f"[red]{part.label} failed:[/] {outcome.error}", highlight=False)
                if part.system is None:
                    break
    seconds = time.perf_counter() - started
    index = chosen.workspace.report_folder / "index.html"
    console.print(budget(timing, seconds, progress.engine_clock.spent_s), highlight=False)
    if damaged:
        error_console.print(
            f"[yellow]damaged in the store:[/] {', '.join(damaged)}. That work was done again; they may be deleted.",
            highlight=False,
        )
    if lost:
        told = "; ".join(lost)
        error_console.print(
            f"[yellow]items that failed or were lost:[/] {told}. Run the same again to try them again.", highlight=False
        )
    if failed:
        error_console.print(
            f"[red]failed:[/] {', '.join(failed)}. Finished work is kept: correct the cause, then run the same again."
        )
        return 1
    console.print(f"[bold]Report:[/] {index}", highlight=False, soft_wrap=True)
    told = f"[dim]The same runs in the Dagster UI:[/] {escape(_ui_command(root, data, profile, limit))}"
    console.print(told, highlight=False, soft_wrap=True)
    return 0


def _ui_command(root: Path, data: Path, profile: str = "demo", limit: int | None = None) -> str:
    words = ["--profile", profile] if profile != "demo" else []
    if (root / data).resolve() != (root / "data").resolve():
        words += ["--data", str(data)]
    words += ["--limit", str(limit)] if limit else []
    return shlex.join(["duplex-bench", "ui", *words]) if words else "make ui"


def _meant(chosen: Chosen, system: str, only: str) -> bool:
    """Whether ``--only`` means a system. What is stale shows when its part is compared with its last run."""
    workspace = chosen.workspace
    if only == "stale":
        return any(workspace.store.exists(workspace.table_key((track, "rollouts"), system)) for track in chosen.tracks)
    return bool(due(workspace, chosen.tracks, {system: chosen.cards[system]}, only))


def _why_lost(chosen: Chosen, part: graph.Part) -> str:
    """The reason of the first rollout that was lost, if it was one."""
    for track in chosen.tracks:
        key = chosen.workspace.table_key((track, "rollouts"), part.system)
        if part.system is not None and chosen.workspace.store.exists(key):
            table = read_frame(chosen.workspace.store, key)
            for outcome, reason in table.select("outcome", "reason").iter_rows():
                if outcome in RETRIED_OUTCOMES and reason:
                    return f" (the first: {reason})"
    return ""


def _tables(chosen: Chosen, part: graph.Part) -> list[str]:
    return [chosen.workspace.table_key(tuple(key.path), part.system) for key in part.writes]


def _mark(chosen: Chosen, part: graph.Part) -> str:
    """Fingerprint of a part: its code, profile, input tables, and card or outside sources."""
    workspace = chosen.workspace
    outside: dict[str, object] = {}
    if part.system is not None:
        outside["card"] = chosen.cards[part.system].model_dump(mode="json")
    elif part.label.startswith("report"):
        outside["cards"] = [card.model_dump(mode="json") for _, card in sorted(chosen.every_card.items())]
        outside["windows"] = human_windows.state(workspace)
    elif part.label.startswith("conversation"):
        outside["corpus"] = corpus.digest(workspace)
        outside["reviews"] = conversation.observe_reviews(workspace).digest
    reads = [workspace.table_key(tuple(key.path), system) for key, system in part.reads]
    return fingerprints.fingerprint(workspace, part.label, reads, outside)


def _stands(chosen: Chosen, part: graph.Part, mark: str) -> bool:
    report = [chosen.workspace.report_folder / "index.html"] if set(graph.REPORT) & set(part.keys) else []
    return fingerprints.is_current(chosen.workspace, part.label, mark, _tables(chosen, part), report)


def budget(timing: Timing, total_s: float, engines_s: float) -> str:
    """One line that says where the time went."""
    share = 100 * (1 - engines_s / total_s) if total_s else 0.0
    parts = [f"{label} {seconds:.0f} s" for label, seconds in timing.parts_s.items()]
    if timing.unchanged:
        parts.append(f"{len(timing.unchanged)} parts unchanged since their last run")
    told = f"{total_s:.0f} s in all: {', '.join(parts)}"
    return told if engines_s == 0 else f"{told}; engines {engines_s:.0f} s, orchestration {share:.0f} %"


def initialise(root: Path, data: Path) -> None:
    """Write the Dagster files if they are missing, and open the run database once, alone.

    Several processes that open a fresh SQLite home at once can leave it unusable (measured), so the first to do so
    is this one.
    """
    for name in ("dagster.yaml", "workspace.yaml"):
        target = root / name
        if not target.exists():
            target.write_text((files("duplex_bench.cli.templates") / name).read_text("utf-8"), "utf-8")
            console.print(f"wrote {target}", highlight=False)
    (root / data).mkdir(parents=True, exist_ok=True)
    from duplex_bench.cli import local_run

    with local_run.instance_of(root, data) as instance:
        console.print(f"run database ready, {instance.get_runs_count()} runs", highlight=False)


def _has_measurements(chosen: Chosen, track: Track) -> bool:
    store, table_key = chosen.workspace.store, chosen.workspace.table_key
    return any(store.exists(table_key((track, "measurements"), system)) for system in chosen.every_card)


def build_report(
    root: Path, data: Path, profile: str, open_it: bool, limit: int | None = None, public: bool = False
) -> int:
    """Statistics, figures and the report again, from stored measurements; ``public`` adds the build to publish."""
    # Of systems that cannot be run here, too: what they did before needs no key.
    workspace, cards = opened(root, data, profile, limit)
    chosen = Chosen(workspace, TRACKS, {}, cards, profile)
    made = [track for track in TRACKS if _has_measurements(chosen, track)]
    if not made:
        size = f" with --limit {limit}" if limit else ""
        names = sorted({key.split("/")[1] for key in chosen.workspace.store.keys("tables/")})
        there = f"; there are results of {', '.join(names)}" if names else ""
        raise ValueError(
            f"no results of profile {profile}{size} in {chosen.workspace.data}{there}: `duplex-bench run` makes them"
        )
    chosen = replace(chosen, tracks=tuple(made))
    with environment(root, data, profile, limit):
        from duplex_bench.cli import local_run
        from duplex_bench.definitions import defs

        with local_run.instance_of(root, data) as instance, progress_bars():
            part = graph.summary_part(chosen.tracks, sorted(chosen.every_card))
            outcome = local_run.execute(defs, instance, root, part.keys, label=part.label)
    if not outcome.success:
        error_console.print(f"[red]the report could not be built:[/] {outcome.error}", highlight=False)
        return 1
    index = chosen.workspace.report_folder / "index.html"
    if public:
        from duplex_bench.stages.public_report import public_folder, public_report

        public_report(chosen.workspace, list(chosen.every_card.values()))
        index = public_folder(chosen.workspace) / "index.html"
    console.print(f"[bold]Report:[/] {index}", highlight=False, soft_wrap=True)
    if open_it:
        webbrowser.open(index.as_uri())
    return 0
