"""A run of the papers' size with systems that cost nothing: time, memory, growth of what is stored, answers of the UI.

``python -m benchmarks.paper_size`` measures growth with systems, items and repeats on small runs, then the papers'
size: 12 systems, 4,000 scenes and 1,084 points, two repeats. ``--quick`` leaves the papers' size out, ``--only`` the
growth; ``--scale 0.1`` takes a tenth of the items; ``--keep FOLDER`` keeps the runs and their figures. Audio is
simulated (``_simulated_audio``); ledger, blobs, tables, scores, Dagster runs and events, statistics, figures and the
report are the product's own. Figures and what they mean: docs/scale.md.

Growth is the slope of log(amount) over log(size): 1 is linear, 2 quadratic, below 1 linear with a fixed part. The limit
is kept where the whole 95 % interval of no slope lies above 1.15.
"""

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks._simulated_run import Size
from benchmarks._ui_latency import latencies_ms, served

ROOT = Path(__file__).resolve().parents[1]
PAPERS = Size(systems=12, pairs=2_000, points=1_084, repeats=2)
SLOPE_LIMIT = 1.15
GROWTH = {
    "items": [Size(2, 60 * n, 60 * n, 1) for n in (1, 3, 9, 18)],
    "repeats": [Size(2, 120, 120, n) for n in (1, 2, 4, 8)],
    "systems": [Size(n, 60, 60, 1) for n in (2, 4, 8, 16)],
}
MEASURED = ("system_cpu_s", "report_cpu_s", "store_bytes", "store_files", "event_bytes", "report_bytes", "peak_bytes")


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its folder, its size, and figures by name."""

    folder: Path
    size: Size
    run_id: str
    figures: dict[str, float]


def simulated(folder: Path, size: Size) -> Run:
    """Run a size in a process of its own; a folder that holds a finished run is read.

    Raises:
        RuntimeError: The run failed; the message has its last lines.
    """
    told = folder / "told.json"
    if not told.exists():
        # Of a run that was interrupted.
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks._simulated_run", str(folder)]
        numbers = [str(number) for number in (size.systems, size.pairs, size.points, size.repeats)]
        done = subprocess.run([*command, *numbers], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the run of {size} failed:\n{done.stderr[-2000:]}")
    return read(folder, size, json.loads(told.read_text()))


def read(folder: Path, size: Size, told: dict[str, Any]) -> Run:
    """Figures of a finished run."""
    data = folder / "data"
    *systems, summary = told["parts"]
    report = data / "reports" / "size"
    store, events = list(_files(data / "store")), list(_files(data / "dagster"))
    figures: dict[str, float] = {
        "wall_s": told["wall_s"],
        "work_s": told["work_s"],
        "load": told["load"],
        "peak_bytes": told["peak_bytes"],
        # The first system starts the workers and loads what they need: it is no measure of the others.
        "system_cpu_s": sum(part["cpu_s"] for part in systems[1:]) / (size.systems - 1) * size.systems,
        "system_wall_s": sum(part["wall_s"] for part in systems),
        "system_peak_bytes": max(part["peak_bytes"] for part in systems),
        "summary_wall_s": summary["wall_s"],
        "report_cpu_s": summary["cpu_s"],
        "report_step_s": summary["steps_s"]["results__report"],
        "store_bytes": sum(path.stat().st_size for path in store),
        "store_files": len(store),
        "event_bytes": sum(path.stat().st_size for path in events),
        "event_rows_a_run": float(np.mean(list(event_rows(data / "dagster")))),
        "report_bytes": _own_bytes(report),
        "report_files": sum(1 for _ in _files(report)),
        "first_page_bytes": page_bytes(report, "index.html"),
        "listen_page_bytes": page_bytes(report, "items.html"),
        "player_page_bytes": page_bytes(report, "play.html"),
    }
    return Run(folder, size, systems[-1]["run_id"], figures)


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())


def _own_bytes(report: Path) -> int:
    """Bytes that the report adds: what is linked from the store is not its own."""
    return sum(found.st_size for path in _files(report) if (found := path.stat()).st_nlink == 1)


def page_bytes(report: Path, name: str) -> int:
    """Bytes that a browser loads to show a page: itself, its styles, its scripts, its pictures."""
    text = (report / name).read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="((?:assets|data|figures)/[^"#?]+)"', text))
    return len(text.encode()) + sum((report / path).stat().st_size for path in named)


def event_rows(folder: Path) -> Iterator[int]:
    """Rows of the event log of each run."""
    for path in sorted((folder / "history" / "runs").glob("*-*.db")):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            yield database.execute("select count(*) from event_logs").fetchone()[0]


@dataclass(frozen=True, slots=True)
class Slope:
    """Of log(amount) over log(size), with its 95 % interval, and what one more costs by a straight line."""

    slope: float
    low: float
    high: float
    fixed: float
    each: float


def fitted(sizes: Sequence[float], amounts: Sequence[float]) -> Slope:
    """Least squares on logarithms, with Student's interval; and on the amounts themselves."""
    found = stats.linregress(np.log(sizes), np.log(amounts))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * found.stderr)
    each, fixed = np.polyfit(sizes, amounts, 1)
    return Slope(float(found.slope), found.slope - half, found.slope + half, float(fixed), float(each))


def grown(runs: Sequence[Run], axis: str) -> dict[str, Slope]:
    """How every measured amount grows along one axis."""
    sizes = [getattr(run.size, axis) for run in runs]
    return {name: fitted(sizes, [run.figures[name] for run in runs]) for name in MEASURED}


def growth(folder: Path) -> dict[str, dict[str, Slope]]:
    """Measure along each axis, and print what was found."""
    found = {}
    for axis, sizes in GROWTH.items():
        runs = [simulated(folder / f"{axis}-{getattr(size, axis)}", size) for size in sizes]
        found[axis] = grown(runs, axis)
        print(f"growth with {axis} ({', '.join(str(getattr(size, axis)) for size in sizes)}), slope and 95 % interval:")
        for name, slope in found[axis].items():
            print(f"  {name:14s} {slope.slope:5.2f} [{slope.low:5.2f}, {slope.high:5.2f}], each {slope.each:.6g}")
    return found


def papers(folder: Path, size: Size) -> None:
    """Run the papers' size, and print its figures and the answers of the UI over it."""
    run = simulated(folder / "papers", size)
    print(f"{size.systems} systems x {size.items} items x {size.repeats}: {size.rollouts} rollouts")
    for name, amount in run.figures.items():
        print(
            f"  {name:18s} {amount / 2**20:12,.1f} MiB" if name.endswith("bytes") else f"  {name:18s} {amount:12,.1f}"
        )
    print(f"  a rollout: {1e3 * run.figures['system_cpu_s'] / size.rollouts:.2f} ms of CPU, "
          f"{run.figures['store_bytes'] / size.rollouts / 1024:.1f} KiB stored")  # fmt: skip
    with served(run.folder) as address:
        for name, (median_ms, p95_ms) in latencies_ms(address, run.run_id, times=20).items():
            print(f"  UI, {name:24s} p50 {median_ms:7.0f} ms, p95 {p95_ms:7.0f} ms")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; 1 if something grows faster than its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="growth on small runs only")
    parser.add_argument("--only", action="store_true", help="the papers' size only")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the papers' items")
    parser.add_argument("--keep", type=Path, help="folder of the runs; those that are finished are not run again")
    chosen = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = {} if chosen.only else growth(folder.resolve())
        if not chosen.quick:
            size = Size(
                PAPERS.systems, round(PAPERS.pairs * chosen.scale), round(PAPERS.points * chosen.scale), PAPERS.repeats
            )
            papers(folder.resolve(), size)
    steep = [f"{name} with {axis}" for axis, by_name in found.items() for name, slope in by_name.items()
             if slope.low > SLOPE_LIMIT]  # fmt: skip
    if steep:
        print(f"faster than linear: {', '.join(steep)}")
    return int(bool(steep))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
