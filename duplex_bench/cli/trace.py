"""``duplex-bench trace``: a score's way back to audio, label, prompt and code."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from duplex_bench.cli.console import console
from duplex_bench.reporting.formats import interval, number
from duplex_bench.stages.trace import Lineage, Section, trace
from duplex_bench.stages.workspace import open_workspace

_WORDS_SHOWN = 60


def show_trace(
    data: Path,
    profile: str,
    measurement_id: str,
    system: str | None,
    rescored: str | None,
    as_json: bool,
    limit: int | None = None,
) -> None:
    """Print the lineage of a score, as a tree or as JSON."""
    workspace = open_workspace(profile, data, limit)
    if rescored is not None:
        workspace = replace(workspace, profile=replace(workspace.profile, name=rescored))
    found = trace(workspace, measurement_id, system)
    if as_json:
        # Plain print of rich would wrap long lines, which breaks strings.
        console.file.write(json.dumps(found.as_dict(), indent=1, ensure_ascii=False, default=str) + "\n")
        return
    console.print(_tree(found))
    # On a line of its own, unbroken, so that a terminal can open it.
    told = found.report["address"] or f"{found.report['link']} ({found.report['reason']})"
    console.print(f"[bold]report[/] {escape(told)}", highlight=False, soft_wrap=True)


def _tree(found: Lineage) -> Tree:
    score, metric = found.measurement, found.metric
    value = number(score["value"]) if score["value"] is not None else f"no value: {score['reason']}"
    title = f"[bold]{escape(metric.get('title', metric['id']))}[/] {escape(value)}"
    tree = Tree(f"{title}  [dim]{score['measurement_id']} of {escape(score['system'])}[/]")
    _add(
        tree, "metric", metric,
        ("id", "version", "scored_by_version", "direction", "window", "denominator", "excluded", "source"),
    )  # fmt: skip
    _add(tree, "score", score, ("track", "condition", "cluster", "at_s", "details"))
    _add(tree, "window", found.window)
    _add(tree, "item", found.item)
    _add(tree, "stimulus", found.stimulus)
    _add(tree, "rollout", found.rollout)
    _add(tree, "activity", found.activity)
    _words(tree, found.words)
    for verdict in found.judgements:
        _add(tree, verdict["role"], verdict)
    if not found.judgements:
        tree.add("[bold]judgement[/] none: no judge was asked about this window")
    _statistics(tree, found.statistics)
    _add(tree, "card", found.card)
    _add(tree, "code", found.provenance)
    _add(tree, "Dagster UI (duplex-bench ui)", found.dagster)
    return tree


def _add(tree: Tree, name: str, section: Section, keys: Iterable[str] = ()) -> None:
    shown = {key: section[key] for key in keys if key in section} if keys else dict(section)
    if "reason" in section and not section["reason"]:
        shown.pop("reason", None)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in shown.items():
        grid.add_row(key.replace("_", " "), escape(_text(key, value)))
    branch = tree.add(f"[bold]{escape(name)}[/]")
    branch.add(grid)


def _text(key: str, value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if key in {"gate_s", "vad_s"}:
        return " ".join(f"{start:.2f}-{stop:.2f}" for start, stop in value) or "nothing heard"
    if isinstance(value, Mapping):
        if set(value) == {"digest", "key", "stored"}:
            return "none" if value["key"] is None else f"{value['key']}{'' if value['stored'] else ' (NOT STORED)'}"
        return ", ".join(f"{name} {_text(name, inner)}" for name, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_text("", inner) for inner in value) or "-"
    return str(value)


def _words(tree: Tree, words: Section) -> None:
    if "words" not in words:
        _add(tree, "words", words)
        return
    said = [f"{word['start_s']:.2f} {word['text']}{'' if word['aligned'] else '?'}" for word in words["words"]]
    more = f" ... {len(said) - _WORDS_SHOWN} more (--json has all)" if len(said) > _WORDS_SHOWN else ""
    told = "  ".join(said[:_WORDS_SHOWN]) + more
    _add(tree, "words", {"engine": words["engine"], "n": words["n_words"], "second and word": told or "none heard"})


def _statistics(tree: Tree, rows: Iterable[Section]) -> None:
    branch = tree.add("[bold]statistics it enters[/]")
    for row in rows:
        bounds = interval(row["low"], row["high"])
        tied = "" if row["tie_group"] is None else f", tie group {row['tie_group']}"
        estimate = number(row["estimate"]) if row["estimate"] is not None else row["reason"]
        branch.add(
            f"{escape(row['condition'])}: {row['statistic']} {estimate} {escape(bounds)}, {row['n_scored']} of "
            f"{row['n_expected']} windows in {row['n_clusters']} clusters{tied} [dim]{escape(row['method'] or '')}[/]"
        )
