"""All statistics, tables and figures of a run of the papers' size. `python -m benchmarks.full_size_statistics`.

12 systems, both tracks, 4,000 scenes and 1,084 points, two repeats (``_full_size``). The stage functions run in a
process of their own that reads the stored tables, so that its peak memory is theirs. Limits: 60 s and 2 GiB on two
cores. The limit of time is held against CPU time: on an idle machine wall time is less, on a busy one it says nothing.

Beside it, one comparison of two systems on 2,000 clusters by plain scipy: ``permutation_test`` and ``bootstrap``.
"""

import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from benchmarks import _full_size
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.comparisons import pairs_of
from duplex_bench.reporting.estimates import AggregateSettings
from duplex_bench.reporting.inputs import SystemInfo
from duplex_bench.stages import scoring, summary
from duplex_bench.stages.later_scores import LATER_SCORES
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.report import track_tables
from duplex_bench.stages.workspace import Workspace
from duplex_bench.statistics import multiplicities
from duplex_bench.storage.frames import write_frame

LIMIT_S, LIMIT_GIB, FLOOR_X_SCIPY = 60.0, 2.0, 20.0
N_PAIRS = 66


def write(folder: Path) -> None:
    """Make the stored tables of both tracks."""
    for name, made in (("multiparty", _full_size.multiparty), ("conversation", _full_size.conversation)):
        track = made()
        (folder / name).mkdir(parents=True)
        track.items.write_parquet(folder / name / "items.parquet")
        for table, by_system in track.tables.items():
            (folder / name / table).mkdir()
            for system, frame in by_system.items():
                frame.write_parquet(folder / name / table / f"{system}.parquet")


def stages(folder: Path, told: Path) -> None:
    """Run the real stages on the stored tables; write what each took."""
    workspace = Workspace(folder / "data", load_profile("paper"))
    took: dict[str, float] = {}
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    for track in ("conversation", "multiparty"):
        clock_s = time.perf_counter()

        def lap(stage: str, track: str = track) -> None:
            nonlocal clock_s
            now_s = time.perf_counter()
            took[f"{track} {stage}"] = now_s - clock_s
            clock_s = now_s

        stored: dict[str, object] = {
            table: {path.stem: pl.read_parquet(path) for path in sorted((folder / track / table).iterdir())}
            for table in _full_size.PER_SYSTEM
        }
        stored["items"] = pl.read_parquet(folder / track / "items.parquet")
        # Scores of later repeats lie in the store, where the stage of the scores keeps them.
        for path in sorted((folder / track / _full_size.LATER).iterdir()):
            write_frame(workspace.store, workspace.table_key((track, LATER_SCORES), path.stem), pl.read_parquet(path))
        lap("read")
        estimates, comparisons = summary.aggregate(workspace, track, stored["measurements"], None)
        lap("statistics")
        stored |= {"statistics": estimates.frame, "comparisons": comparisons.frame}
        systems = tuple(SystemInfo(manner.name, manner.name) for manner in _full_size.manners())
        joined = track_tables(track, stored, workspace.profile)
        summary.tables(workspace, joined, systems)
        lap("tables")
        summary.figures(workspace, joined, systems)
        lap("figures")
    took |= {"wall": time.perf_counter() - begun_s, "cpu": time.process_time() - cpu_s}
    took["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told.write_text(json.dumps(took))


def measure() -> dict[str, float]:
    """Seconds of every stage, peak memory, and the ratio to plain scipy."""
    # As the product's workers do: threads of the linear algebra that wait for each other only take time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder, told = Path(name) / "tables", Path(name) / "told.json"
        for work, arguments in ((write, (folder,)), (stages, (folder, told))):
            process = context.Process(target=work, args=arguments)
            process.start()
            process.join()
            if process.exitcode:
                raise RuntimeError(f"{work.__name__} ended with {process.exitcode}")
        took: dict[str, float] = json.loads(told.read_text())
    return {**took, **against_scipy()}


def against_scipy() -> dict[str, float]:
    """66 pairs of systems on 2,000 clusters of six windows: ours, and scipy on one pair times 66."""
    rng = np.random.default_rng(1)
    n_clusters, n_windows = 2_000, 6
    names = [manner.name for manner in _full_size.manners()]
    cluster = np.repeat(np.arange(n_clusters), n_windows)
    labels = np.array([f"scenario-{number:04d}" for number in range(n_clusters)])[cluster]
    windows = np.tile([f"w{place}" for place in range(n_windows)], n_clusters)
    values = {name: (rng.random(len(cluster)) < 0.7 + 0.01 * place).astype(float) for place, name in enumerate(names)}
    rows = pl.concat(
        pl.DataFrame({"system": [name] * len(cluster), "item_id": labels, "window_id": windows, "cluster": labels,
                      "value": values[name]})
        for name in names
    )  # fmt: skip
    card = next(card for card in scoring.metric_cards("multiparty") if card.id == "silence_preservation")
    ours_s = _timed(lambda: _ours(rows, names, card))
    one, other = (values[name].reshape(n_clusters, n_windows).sum(axis=1) for name in names[:2])
    scipy_s = N_PAIRS * _timed(lambda: _scipy(one, other))
    return {"pairs": ours_s, "scipy": scipy_s, "times_scipy": scipy_s / ours_s}


def _ours(rows: pl.DataFrame, names: list[str], card: MetricCard) -> None:
    draws = multiplicities(rows["cluster"].unique().sort().to_numpy(), np.random.default_rng(2))
    if len(pairs_of(rows, names, card, draws, AggregateSettings(), ("benchmark", "pairs"))) != 2 * N_PAIRS:
        raise RuntimeError("a pair is missing")


def _scipy(one: np.ndarray, other: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    stats.permutation_test((one, other), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples",
                           vectorized=True, n_resamples=10_000, batch=1_000, rng=rng)  # fmt: skip
    stats.bootstrap((one, other), lambda a, b, axis: np.mean(a - b, axis=axis), paired=True, vectorized=True,
                    n_resamples=2_000, batch=500, method="percentile", rng=rng)  # fmt: skip


def _timed(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    """Print the numbers; 1 if a limit is missed."""
    took = measure()
    for name, figure in took.items():
        if " " in name:
            print(f"  {name}: {figure:.1f} s")
    print(
        f"full-size statistics, tables and figures: {took['cpu']:.0f} s of CPU (limit {LIMIT_S:.0f} s), "
        f"{took['wall']:.0f} s wall, peak {took['gib']:.2f} GiB (limit {LIMIT_GIB:g})"
    )
    print(
        f"{N_PAIRS} pairs on 2,000 clusters: {took['pairs']:.2f} s, {took['times_scipy']:.0f}x plain scipy "
        f"(floor {FLOOR_X_SCIPY:.0f}x)"
    )
    return int(took["cpu"] > LIMIT_S or took["gib"] > LIMIT_GIB or took["times_scipy"] < FLOOR_X_SCIPY)


if __name__ == "__main__":
    raise SystemExit(main())
