"""One simulated run of a stated size through the product's own parts, in a folder of its own.

``python -m benchmarks._simulated_run FOLDER SYSTEMS PAIRS POINTS REPEATS`` runs what ``duplex-bench run`` runs from
items to report, part by part, against a Dagster instance in FOLDER, and writes FOLDER/told.json. Not run: what makes
the items, and the tables of voices and recogniser, whose work does not grow with a run.
"""

import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import _full_size
from benchmarks._process_tree import cpu_s, watched
from benchmarks._simulated_audio import RATE_HZ, replace_audio_steps
from duplex_bench.cli import graph
from duplex_bench.cli.run import environment, initialise
from duplex_bench.records import tables as schemas
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item, Track
from duplex_bench.stages import progress
from duplex_bench.stages.items import items_frame
from duplex_bench.stages.workspace import Workspace, open_workspace
from duplex_bench.storage.frames import write_frame

TRACKS: tuple[Track, ...] = ("multiparty", "conversation")
PROFILE = """
name = "size"
seed = 1
[multiparty.grammar]
n_pairs = {pairs}
[conversation.generator]
n_sessions = 1
[conversation.calibration]
rollouts = 0
[rollout]
repeats = {repeats}
"""
CARD = """
name = "{name}"
title = "{name}"
family = "policy"
adapter = "duplex_bench.systems.adapters.never_speak:create"
licence = "benchmark"
[settings]
eagerness = {eagerness}
"""
LONGEST_S = 300.0
NOT_RUN = frozenset({"voice_quality", "recogniser_quality"})


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: each pair is two scenes; a point is one item."""

    systems: int
    pairs: int
    points: int
    repeats: int

    @property
    def items(self) -> int:
        """Items of both tracks."""
        return 2 * self.pairs + self.points

    @property
    def rollouts(self) -> int:
        """Rollouts of all systems."""
        return self.systems * self.items * self.repeats


@dataclass(frozen=True, slots=True)
class PartTold:
    """What one part (one Dagster run) took; ``steps_s`` by asset."""

    label: str
    run_id: str
    wall_s: float
    cpu_s: float
    peak_bytes: int
    steps_s: dict[str, float]


def prepare(folder: Path, size: Size) -> None:
    """The profile, the cards, the Dagster files and the items of a run."""
    systems = folder / "data" / "systems"
    systems.mkdir(parents=True)
    (folder / "size.toml").write_text(PROFILE.format(pairs=size.pairs, repeats=size.repeats))
    for number in range(size.systems):
        name = f"simulated-{number:03d}"
        card = CARD.format(name=name, eagerness=round(0.2 + 0.6 * number / max(size.systems, 2), 3))
        (systems / f"{name}.toml").write_text(card)
    initialise(folder, Path("data"))
    workspace = open_workspace(str(folder / "size.toml"), folder / "data")
    silence = workspace.blobs.put_audio(np.zeros((round(LONGEST_S * RATE_HZ), 1), np.int16), RATE_HZ)
    scenes = [_full_size.scene(number, form) for number in range(size.pairs) for form in ("explicit", "implicit")]
    # The shortest history of a recall point stands for it: an item each.
    points = [item for item in _full_size.points() if item.reference.attributes.get("history_target_s", 30.0) == 30.0]
    # Spread over the kinds, so that a small draw has all of them.
    drawn = points[:: max(1, len(points) // size.points)][: size.points]
    for track, items in (("multiparty", scenes), ("conversation", drawn)):
        _write(workspace, (track, "items"), items_frame([_heard(item, silence) for item in items]))
    nothing = pl.DataFrame(schema=dict(schemas.MEASUREMENTS))
    _write(workspace, ("conversation", "bounds"), nothing)
    _write(workspace, ("multiparty", "transcript_reference"), nothing)
    _write(workspace, ("results", "voice_quality"), pl.DataFrame({"voice": ["none"], "word_error_rate": [0.0]}))


def _heard(item: Item, source: str) -> Item:
    live = item.stimulus.live
    n_samples = round(live.n_samples / live.sample_rate_hz * RATE_HZ)
    part = AudioSlice(source, 0, n_samples, RATE_HZ, live.content)
    return replace(item, stimulus=replace(item.stimulus, live=part))


def _write(workspace: Workspace, asset: tuple[str, str], frame: pl.DataFrame) -> None:
    write_frame(workspace.store, workspace.table_key(asset, None), frame)


def run(folder: Path, size: Size) -> dict[str, object]:
    """Run every part; what each took, with the share of time that was spent on items."""
    began_s = time.perf_counter()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    replace_audio_steps()
    told: list[PartTold] = []
    # Set before the code location is loaded: it reads cards and profile from there.
    with environment(folder, Path("data"), str(folder / "size.toml")), watched(os.getpid()) as peak:
        prepare(folder, size)
        from duplex_bench.cli import local_run
        from duplex_bench.definitions import defs

        names = [path.stem for path in sorted((folder / "data" / "systems").iterdir())]
        parts = [graph.system_part(name, TRACKS) for name in names]
        whole = graph.summary_part(TRACKS, names)
        parts.append(replace(whole, keys=tuple(key for key in whole.keys if key.path[-1] not in NOT_RUN)))
        with local_run.instance_of(folder) as instance:
            for part in parts:
                part_began_s, cpu_began_s = time.perf_counter(), cpu_s(os.getpid())
                peak.lap()
                outcome = local_run.execute(defs, instance, folder, part.keys, partition=part.system, label=part.label)
                if not outcome.success:
                    raise RuntimeError(f"{part.label}: {outcome.error}")
                steps = {
                    step.step_key: round((step.end_time or 0.0) - (step.start_time or 0.0), 3)
                    for step in instance.get_run_step_stats(outcome.run_id)
                }
                told.append(
                    PartTold(part.label, outcome.run_id, time.perf_counter() - part_began_s,
                             cpu_s(os.getpid()) - cpu_began_s, peak.lap(), steps)
                )  # fmt: skip
    return {
        "size": asdict(size),
        "rollouts": size.rollouts,
        "wall_s": time.perf_counter() - began_s,
        "work_s": progress.engine_clock.spent_s,
        "peak_bytes": peak.bytes,
        "load": os.getloadavg()[0],
        "parts": [asdict(part) for part in told],
    }


def main() -> int:
    """Run the size that the command line names."""
    folder = Path(sys.argv[1]).resolve()
    size = Size(*(int(number) for number in sys.argv[2:6]))
    folder.mkdir(parents=True)
    (folder / "told.json").write_text(json.dumps(run(folder, size), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
