"""The main job on embedded defaults: cold and warm wall time, what orchestration costs, peak memory.

`python -m benchmarks.demo` runs the demo in a temporary folder, twice. Limits: cold under 360 s of which orchestration
under 20 %, warm under 20 s, peak memory of all processes under 3 GiB.
"""

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLD_LIMIT_S, WARM_LIMIT_S, ORCHESTRATION_LIMIT, MEMORY_LIMIT_GIB = 360.0, 20.0, 20.0, 3.0


def _run(data: Path) -> tuple[float, str]:
    command = [sys.executable, "-m", "duplex_bench.cli.main", "run", "--profile", "demo", "--data", str(data)]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return time.perf_counter() - started, " ".join(done.stdout.split())


def measure() -> dict[str, float]:
    """Seconds, per cent and GiB by name."""
    with tempfile.TemporaryDirectory() as folder:
        cold_s, told = _run(Path(folder))
        warm_s, _ = _run(Path(folder))
    share = re.search(r"orchestration (\d+) %", told)
    if share is None:
        raise RuntimeError(f"the run did not print its budget: {told}")
    # The largest process times three: the main one and two workers never all reach it.
    peak_gib = 3 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    return {"cold_s": cold_s, "warm_s": warm_s, "orchestration_percent": float(share[1]), "peak_gib_at_most": peak_gib}


def main() -> int:
    """Print the figures; 1 if a limit is passed."""
    found = measure()
    limits = {
        "cold_s": COLD_LIMIT_S,
        "warm_s": WARM_LIMIT_S,
        "orchestration_percent": ORCHESTRATION_LIMIT,
        "peak_gib_at_most": MEMORY_LIMIT_GIB,
    }
    for name, value in found.items():
        print(f"{name:24s} {value:8.1f}  (limit {limits[name]:.0f})")
    return int(any(found[name] > limit for name, limit in limits.items()))


if __name__ == "__main__":
    sys.exit(main())
