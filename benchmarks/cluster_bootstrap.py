"""Cluster bootstrap at the size of a paper run, against a plain loop. `python -m benchmarks.cluster_bootstrap`.

12 systems, 10 metrics (6 rates, 1 ratio, 3 medians) on 176 conversations with 1 to 5 points each, 2,000 resamples.
The loop draws clusters, gathers their rows and computes the statistic; it is run on a fiftieth of the resamples.
"""

import time
from collections.abc import Iterator

import numpy as np

from duplex_bench.statistics import multiplicities, percentile_interval, replicates

N_SYSTEMS, N_CLUSTERS, N_RESAMPLES = 12, 176, 2_000
STATISTICS = ("mean",) * 6 + ("ratio",) + ("median",) * 3
LOOP_RESAMPLES = N_RESAMPLES // 50
LIMIT_S, FLOOR_X_LOOP = 2.0, 20.0


def columns(clusters: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """One column of values for each system and metric."""
    rng = np.random.default_rng(2)
    for _ in range(N_SYSTEMS):
        for statistic in STATISTICS:
            if statistic == "mean":
                yield statistic, rng.integers(0, 2, len(clusters)).astype(float)
            elif statistic == "ratio":
                yield statistic, rng.uniform(0.5, 5, (len(clusters), 2))
            else:
                yield statistic, rng.gamma(2.0, 0.5, len(clusters))


def vectorised(data: list[tuple[str, np.ndarray]], clusters: np.ndarray) -> list[tuple[float, float]]:
    """All intervals from one matrix of multiplicities."""
    draws = multiplicities(clusters, np.random.default_rng(3), N_RESAMPLES)
    return [percentile_interval(replicates(values, clusters, statistic, draws)) for statistic, values in data]


def plain_loop(data: list[tuple[str, np.ndarray]], clusters: np.ndarray, n_resamples: int) -> None:
    """As one would first write it."""
    rng = np.random.default_rng(3)
    rows = {label: np.flatnonzero(clusters == label) for label in np.unique(clusters)}
    labels = list(rows)
    for statistic, values in data:
        estimates = []
        for _ in range(n_resamples):
            drawn = rng.integers(0, len(labels), len(labels))
            sample = values[np.concatenate([rows[labels[place]] for place in drawn])]
            if statistic == "ratio":
                estimates.append(sample[:, 0].sum() / sample[:, 1].sum())
            else:
                estimates.append(np.mean(sample) if statistic == "mean" else np.median(sample))
        np.quantile(estimates, [0.025, 0.975])


def measure() -> dict[str, float]:
    """Seconds for all 120 intervals (best of three) and the ratio to the loop, scaled to as many resamples."""
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(N_CLUSTERS), rng.integers(1, 6, N_CLUSTERS))
    data = list(columns(clusters))
    best_s = min(_timed(lambda: vectorised(data, clusters)) for _ in range(3))
    loop_s = _timed(lambda: plain_loop(data, clusters, LOOP_RESAMPLES)) * N_RESAMPLES / LOOP_RESAMPLES
    return {"seconds": best_s, "limit_s": LIMIT_S, "times_loop": loop_s / best_s, "floor": FLOOR_X_LOOP}


def _timed(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    """Print the numbers; 1 if a limit is missed."""
    result = measure()
    print(
        f"cluster bootstrap: {N_SYSTEMS} systems x {len(STATISTICS)} metrics in {result['seconds']:.2f} s "
        f"(limit {LIMIT_S} s), {result['times_loop']:.0f}x a plain loop (floor {FLOOR_X_LOOP:.0f}x)"
    )
    return int(result["seconds"] > LIMIT_S or result["times_loop"] < FLOOR_X_LOOP)


if __name__ == "__main__":
    raise SystemExit(main())
