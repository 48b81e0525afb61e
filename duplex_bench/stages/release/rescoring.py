"""Scores made anew from a bundle alone, held against those it gives; what cannot be made here says why."""

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.records.items import Item, Track
from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.reporting.run_tables import Run, load_run
from duplex_bench.reporting.withholding import public_reason
from duplex_bench.stages import scoring
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.stages.measured import Measured, measured
from duplex_bench.stages.profile import Profile, parse_profile
from duplex_bench.stages.release.archive import opened
from duplex_bench.stages.release.check import problems
from duplex_bench.stages.release.contents import ReleaseError, same_comparisons, same_estimates
from duplex_bench.stages.release.layout import PROFILE
from duplex_bench.stages.summary import aggregate
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import from_pcm16

SCHEMA: Final = {
    "track": pl.String, "system": pl.String, "what": pl.String, "equal": pl.Int64, "other": pl.Int64,
    "not_made": pl.Int64, "reason": pl.String,
}  # fmt: skip
# Metrics that need words of the reference, which a bundle withholds where they are not ours.
_NEED_WORDS: Final[Mapping[str, str]] = {
    "token_f1": "the person's reply", "cosine": "the person's reply", "recall_strict": "the gold answer",
}  # fmt: skip
# Stands for withheld words, so that the other metrics of the item can be made.
_WITHHELD: Final = "withheld"


@dataclass(frozen=True, slots=True)
class RescoredRelease:
    """What came out: ``table`` has a row by track, system and metric (and by track for statistics and intervals).

    ``differing`` are the first scores that came out otherwise: id, metric, given, made.
    """

    table: pl.DataFrame
    differing: tuple[tuple[str, str, str, str], ...]

    @property
    def equal(self) -> bool:
        """Whether everything that could be made anew is as given."""
        return int(self.table["other"].sum()) == 0


def rescore_release(place: Path) -> RescoredRelease:
    """Make the scores of a bundle anew and hold them against those it gives.

    From words, speech intervals, windows and verdicts every score; from the scores, the statistics; from the audio,
    the intervals of the energy gate. The verdicts themselves are taken as given: a judge is not asked again.

    Raises:
        ReleaseError: no bundle, one that is not whole, or metrics of other versions than this code's.
    """
    with opened(place) as folder:
        wrong = next(problems(folder), None)
        if wrong is not None:
            raise ReleaseError(f"{place}: {wrong.file} {wrong.message}: {wrong.remedy}; nothing was scored")
        run = load_run(folder)
        if run.kind != "bundle" or run.settings is None:
            raise ReleaseError(f"{place} is no release bundle with a {PROFILE}: name the folder that was released")
        profile = parse_profile(dict(run.settings), f"{place}/{PROFILE}")
        rows: list[dict[str, object]] = []
        differing: list[tuple[str, str, str, str]] = []
        for track in run.tracks:
            _check_versions(run, track)
            rows += _scores(run, track, profile, differing)
            rows += _statistics(run, track, profile)
            rows.append(_gate(run, track, profile.gate, folder))
        return RescoredRelease(pl.DataFrame(rows, schema=SCHEMA), tuple(differing[:20]))


def _check_versions(run: Run, track: Track) -> None:
    now = scoring.versions(track)
    given = dict(run[f"{track}-measurements"].select("metric", "metric_version").unique().iter_rows())
    other = {metric: version for metric, version in given.items() if now.get(metric) != version}
    if other:
        metric, version = min(other.items())
        raise ReleaseError(
            f"{metric} of the bundle is version {version}, this code's is {now.get(metric, 'none')}: score it with "
            f"duplex_bench {run.facts.get('version', '')} at commit {run.facts.get('commit', '')}"
        )


def _scores(
    run: Run, track: Track, profile: Profile, differing: list[tuple[str, str, str, str]]
) -> Iterator[dict[str, object]]:
    items = run[f"{track}-items"]
    closed = set(items.filter("withheld")["item_id"])
    for system in run.systems(track):
        parts = [
            run[f"{track}-{name}"].filter(pl.col("system") == system) for name in ("rollouts", "activity", "words")
        ]
        verdicts = scoring.verdicts_by_rollout(run[f"{track}-judgements"].filter(pl.col("system") == system))
        made: dict[object, dict[str, object]] = {}
        for one in measured(items, *parts):
            known = verdicts.get(one.rollout_key, {})
            for measurement in scoring.score(track, _scorable(one, closed), known, profile):
                row = measurement_row(system, one.rollout_key, one.item, measurement)
                made[row["measurement_id"]] = row
        given = run[f"{track}-measurements"].filter(pl.col("system") == system)
        counts: dict[str, list[int]] = {}
        for row in given.select(*MEASUREMENTS).iter_rows(named=True):
            count = counts.setdefault(str(row["metric"]), [0, 0, 0])
            if row["item_id"] in closed and row["metric"] in _NEED_WORDS:
                count[2] += 1
                continue
            again = made.get(row["measurement_id"])
            same = again is not None and _same(row, again, closed=row["item_id"] in closed)
            count[0 if same else 1] += 1
            if not same:
                differing.append((str(row["measurement_id"]), str(row["metric"]), _told(row), _told(again)))
        for metric, (equal, other, not_made) in counts.items():
            why = f"{_NEED_WORDS[metric]} is withheld" if not_made else None
            yield {"track": track, "system": system, "what": metric, "equal": equal, "other": other,
                   "not_made": not_made, "reason": why}  # fmt: skip


def _scorable(one: Measured, closed: set[str]) -> Measured:
    """A rollout whose item has placeholders where its words are withheld; what hangs on them is not compared."""
    item: Item = one.item
    if item.item_id not in closed or item.stimulus.protocol != "recall":
        return one
    told = item.reference
    reference = dataclasses.replace(told, gold_answer=_WITHHELD, attributes={"question": _WITHHELD, **told.attributes})
    return dataclasses.replace(one, item=dataclasses.replace(item, reference=reference))


def _same(given: Mapping[str, object], made: Mapping[str, object], *, closed: bool) -> bool:
    reason = made["reason"]
    if closed and (reason is None or isinstance(reason, str)):
        reason = public_reason(reason)
    return (given["value"], given["reason"], given["at_s"]) == (made["value"], reason, made["at_s"])


def _told(row: Mapping[str, object] | None) -> str:
    if row is None:
        return "no score"
    return str(row["reason"]) if row["value"] is None else f"{row['value']!r} at {row['at_s']} s"


def _statistics(run: Run, track: Track, profile: Profile) -> Iterator[dict[str, object]]:
    """Estimates with intervals, and pairs of systems with their tests, from the scores as given."""
    scores = run[f"{track}-measurements"].select(*MEASUREMENTS)
    by_system = {str(names[0]): rows for names, rows in scores.group_by(["system"], maintain_order=True)}
    bounds = run[f"{track}-bounds"].select(*MEASUREMENTS)
    # Only its profile is used: nothing is read or written.
    here = Workspace(run.path, profile)
    estimates, comparisons = aggregate(here, track, by_system, bounds if bounds.height else None)
    for what, made, alike in (
        ("statistics", estimates.frame, same_estimates),
        ("comparisons", comparisons.frame, same_comparisons),
    ):
        given = run[f"{track}-{what}"]
        same = alike(given, made)
        yield {"track": track, "system": "all", "what": what, "equal": given.height if same else 0,
               "other": 0 if same else max(given.height, 1), "not_made": 0, "reason": None}  # fmt: skip


def _gate(run: Run, track: Track, gate: GateSettings, folder: Path) -> dict[str, object]:
    """Intervals of the energy gate, from the audio as released."""
    import soundfile

    places = dict(run[f"{track}-rollouts"].select("rollout_key", "audio").drop_nulls().iter_rows())
    equal = other = not_made = 0
    for key, intervals in run[f"{track}-activity"].select("rollout_key", "gate_s").iter_rows():
        if key not in places:
            not_made += 1
            continue
        file = folder / places[key]
        if not file.is_file():
            raise ReleaseError(f"{places[key]} is missing in the bundle: fetch it again")
        samples, rate = soundfile.read(io.BytesIO(file.read_bytes()), dtype="int16", always_2d=True)
        found = intervals_s(from_pcm16(samples[:, 0]), int(rate), gate)
        same = np.array_equal(found, np.asarray(intervals, dtype=np.float64).reshape(-1, 2))
        equal, other = equal + same, other + (not same)
    why = "no recording: nothing was heard of the rollout" if not_made else None
    return {"track": track, "system": "all", "what": "gate intervals", "equal": equal, "other": other,
            "not_made": not_made, "reason": why}  # fmt: skip


def as_text(found: RescoredRelease) -> str:
    """The result as JSON, for scripts."""
    return json.dumps({"equal": found.equal, "rows": found.table.to_dicts(), "differing": found.differing}, indent=1)
