"""Scores anew from stored rollouts: another gate, detector, recogniser, judge or metric setting; no system is run.

Everything from activity to statistics is computed under the changed profile and stored under a name of its own, so
that the run's own tables stay. Ledgers are shared: what the change does not touch is found finished.
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.records.items import Item, Track
from duplex_bench.stages import conversation, evaluation, multiparty, scoring, summary, transcript_reference
from duplex_bench.stages.items import items_frame, items_of
from duplex_bench.stages.rescore_moves import changed_rankings, moved_estimates, moved_windows, one_sided, only_moved
from duplex_bench.stages.rescore_scope import Change, RescoreRefusedError, changed_profile, held_fixed
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.run_record import note_run
from duplex_bench.stages.stored_run import BESIDE, required, stored, systems_with, tracks_run
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import from_pcm16
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import to_parquet, write_frame

_SCENE_COLUMNS = ("item_id", "script_id", "acoustics", "scene")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Rescored:
    """A rescoring beside the run it was made from.

    Attributes:
        name: under which its tables are stored.
        folder: where the tables of what moved are written.
        changes: settings that differ.
        held: what those settings also decide, but was left as in the run.
        moves: every estimate before and after (``rescore_moves.moved_estimates``).
        windows: scores that are another than before (``rescore_moves.moved_windows``).
        rankings: pairs of systems that stand otherwise (``rescore_moves.changed_rankings``).
        notice: whether the two may be compared, for people.
        counts: by stage, over all systems.
    """

    name: str
    folder: Path
    changes: tuple[Change, ...]
    held: tuple[str, ...]
    moves: pl.DataFrame
    windows: pl.DataFrame
    rankings: pl.DataFrame
    notice: str
    counts: Mapping[str, Mapping[str, int | float | str]]


@dataclass(slots=True)
class _Parts:
    moves: list[pl.DataFrame] = field(default_factory=list)
    windows: list[pl.DataFrame] = field(default_factory=list)
    rankings: list[pl.DataFrame] = field(default_factory=list)
    counts: dict[str, dict[str, int | float | str]] = field(default_factory=dict)

    def count(self, track: Track, stage: str, result: StageResult) -> None:
        """Add up what a stage did for one more system."""
        told = self.counts.setdefault(f"{track} {stage}", {})
        for name in ("planned", "computed", "reused", "failed"):
            told[name] = int(told.get(name, 0)) + int(result.counts.get(name, 0))


def rescore(
    run: Workspace, overlay: Mapping[str, Any], label: str = "", tracks: Sequence[Track] | None = None
) -> Rescored:
    """Score the stored rollouts of a run under changed settings; nothing is run, and the run's tables stay.

    Args:
        run: the workspace of the run.
        overlay: settings to change, nested as in a profile (``rescore_scope.overlay_of``); empty scores with the
            code and metrics of now.
        label: part of the name of the result; empty takes the overlay's name, else a digest of the changes.
        tracks: which to score; None takes those that were run.

    Raises:
        RescoreRefusedError: the change would alter stimuli or rollouts, or the code or corpus since has.
        ValueError: the run is not there or incomplete, a setting is unknown, or a rollout's audio is missing.
    """
    profile, changes = changed_profile(run.profile, overlay)
    name = f"{run.profile.name}-rescored-{_label(label, overlay, changes)}"
    there = tracks_run(run, "rollouts")
    chosen = there if tracks is None else tuple(tracks)
    for track in chosen:
        if track not in there:
            required(run, track, "items")
            raise ValueError(f"no system has rollouts of {track} here: run duplex-bench run --track {track} first")
    changed = Workspace(run.data, dataclasses.replace(profile, name=name))
    # Both are checked whole before anything is computed or stored.
    items = {track: _items_under(run, changed, track) for track in chosen}
    for track in chosen:
        _check_rollouts(run, track, items[track])
    parts = _Parts()
    for track in chosen:
        _score(run, changed, track, items[track], parts)
    note_run(changed)
    moves, windows, rankings = (pl.concat(found) for found in (parts.moves, parts.windows, parts.rankings))
    found = Rescored(
        name=name,
        folder=run.data / "rescored" / name,
        changes=changes,
        held=held_fixed(changes) if "conversation" in chosen else (),
        moves=moves,
        windows=windows,
        rankings=rankings,
        notice=_notice(run.profile.name, changes, moves, windows, rankings),
        counts=parts.counts,
    )
    _write(found)
    return found


def _label(label: str, overlay: Mapping[str, Any], changes: Sequence[Change]) -> str:
    told = label or str(overlay.get("name", ""))
    if not told:
        told = digest_value("rescore", [dataclasses.asdict(change) for change in changes])[:8] if changes else "now"
    if not _LABEL.fullmatch(told):
        raise ValueError(f"{told!r} is no name for a rescoring: use letters, digits, . _ and -, at most 64")
    return told


def _items_under(run: Workspace, changed: Workspace, track: Track) -> pl.DataFrame:
    """The items of the run with references as the changed settings have them; their stimuli must be the same."""
    before = required(run, track, "items")
    if track == "multiparty":
        if changed.profile.multiparty.scoring == run.profile.multiparty.scoring:
            return before
        scenes = required(run, track, "scenes")
        if not set(_SCENE_COLUMNS) <= set(scenes.columns):
            raise RescoreRefusedError(
                "the scenes of this run were stored by other code, from which its windows cannot be cut anew: run "
                f"duplex-bench run --profile {run.profile.name} --track {track} first"
            )
        after = multiparty.items(changed, required(run, track, "pairs"), scenes).frame
    else:
        if changed.profile.gate == run.profile.gate:
            return before
        after = items_frame(_with_reply_under(run, item, changed.profile.gate) for item in items_of(before).values())
    was = dict(before.select("item_id", "stimulus_digest").iter_rows())
    now = dict(after.select("item_id", "stimulus_digest").iter_rows())
    if was != now:
        other = sorted(item for item in was.keys() | now.keys() if was.get(item) != now.get(item))
        raise RescoreRefusedError(
            f"{len(other)} {track} items would be heard otherwise than in the run (first: {other[0]}): its rollouts "
            f"say nothing about them. Run duplex-bench run --profile {run.profile.name} --track {track} instead"
        )
    return after


def _with_reply_under(run: Workspace, item: Item, gate: GateSettings) -> Item:
    """The person's reply measured by the gate that measures systems (design 15.3)."""
    reply = item.reference.human_reply
    if reply is None or reply.audio is None:
        return item
    try:
        samples = from_pcm16(run.blobs.read_slice(reply.audio))
    except KeyError as error:
        raise ValueError(
            f"the recording of item {item.item_id} is not stored here ({error}): "
            f"run duplex-bench run --profile {run.profile.name} --track conversation again"
        ) from error
    found = intervals_s(samples, reply.audio.sample_rate_hz, gate)
    duration_s = float(found[-1, 1] - found[0, 0]) if len(found) else 0.0
    reference = dataclasses.replace(item.reference, human_reply=dataclasses.replace(reply, duration_s=duration_s))
    return dataclasses.replace(item, reference=reference)


def _check_rollouts(run: Workspace, track: Track, items: pl.DataFrame) -> None:
    known = dict(items.select("item_id", "stimulus_digest").iter_rows())
    for system in systems_with(run, track, "rollouts"):
        table = required(run, track, "rollouts", system)
        required(run, track, "measurements", system)
        pairs = table.select("item_id", "stimulus_digest").unique()
        stale = sum(known.get(item) != digest for item, digest in pairs.iter_rows())
        if stale:
            raise RescoreRefusedError(
                f"{stale} {track} rollouts of {system} are of stimuli that the items no longer have: run "
                f"duplex-bench run --profile {run.profile.name} --track {track} --system {system} first"
            )
        audio = table["listener_audio"].drop_nulls().unique().to_list()
        lost = [digest for digest in audio if not run.store.exists(run.blobs.key(digest, "flac"))]
        if lost:
            raise ValueError(
                f"the audio of {len(lost)} {track} rollouts of {system} is not stored here (first: "
                f"{run.blobs.key(lost[0], 'flac')}): copy the whole store, or name its folder with --data"
            )


def _score(run: Workspace, changed: Workspace, track: Track, items: pl.DataFrame, parts: _Parts) -> None:
    _keep(changed, track, "items", items)
    before: dict[str, pl.DataFrame] = {}
    after: dict[str, pl.DataFrame] = {}
    for system in systems_with(run, track, "rollouts"):
        rolled = required(run, track, "rollouts", system)
        before[system] = required(run, track, "measurements", system)
        heard = evaluation.activity(changed, track, rolled, system)
        said = evaluation.words(changed, track, rolled, system)
        given = (items, rolled, heard.frame, said.frame)
        judged = evaluation.judgements(changed, track, *given, system)
        scored = evaluation.measurements(changed, track, *given, judged.frame, system)
        _keep(changed, track, "rollouts", rolled, system)
        for stage, result in (("activity", heard), ("words", said), ("judgements", judged), ("measurements", scored)):
            _keep(changed, track, stage, result.frame, system)
            parts.count(track, stage, result)
        key = run.table_key(("systems", "cards"), system)
        if run.store.exists(key):
            run.store.put(changed.table_key(("systems", "cards"), system), run.store.get(key))
        after[system] = scored.frame
    beside_before = stored(run, track, BESIDE[track])
    beside = None if beside_before is None else _beside(run, changed, track, items)
    if beside is not None:
        _keep(changed, track, BESIDE[track], beside)
    estimates, comparisons = summary.aggregate(changed, track, after, beside)
    _keep(changed, track, "statistics", estimates.frame)
    _keep(changed, track, "comparisons", comparisons.frame)
    was = required(run, track, "statistics")
    rows = [pl.concat([*found.values(), *([] if more is None else [more])])
            for found, more in ((before, beside_before), (after, beside))]  # fmt: skip
    windows = moved_windows(rows[0], rows[1], track)
    parts.windows.append(windows)
    parts.moves.append(moved_estimates(was, estimates.frame, windows))
    parts.rankings.append(changed_rankings(was, estimates.frame, scoring.metric_cards(track)))


def _beside(run: Workspace, changed: Workspace, track: Track, items: pl.DataFrame) -> pl.DataFrame:
    """Bounds, or the readers of the transcript: their decisions are stored and no part of what may change."""
    if track == "conversation":
        return conversation.bounds(changed, items).frame
    return transcript_reference.transcript_reference(changed, required(run, track, "pairs"), items).measurements.frame


def _keep(workspace: Workspace, track: Track, name: str, frame: pl.DataFrame, system: str | None = None) -> None:
    write_frame(workspace.store, workspace.table_key((track, name), system), frame)


def _notice(
    run: str, changes: Sequence[Change], moves: pl.DataFrame, windows: pl.DataFrame, rankings: pl.DataFrame
) -> str:
    moved = only_moved(moves).height
    versions = sorted(set(windows.filter(pl.col("metric_version_before") != pl.col("metric_version_after"))["metric"]))
    why = [f"{change.setting} {change.before} -> {change.after}" for change in changes]
    why += [f"metric {metric} has another version" for metric in versions]
    told = "; ".join(why) or "no setting changed"
    if not moved and not windows.height:
        return f"Comparable with {run}: {told}; no score, estimate or interval is another than before."
    order = (
        f"{rankings.height} pairs of systems stand otherwise to one another"
        if rankings.height
        else "every pair of systems stands as before"
    )
    both = windows.drop_nulls(["metric_version_before", "metric_version_after"]).height
    alone = one_sided(moves)
    apart = f" Estimates that only one side has are of {', '.join(alone)}." if alone else ""
    return (
        f"Not comparable with {run} number by number: {told}. {both} scores and {moved} of {moves.height} "
        f"estimates are others than before; {order}.{apart}"
    )


def _write(found: Rescored) -> None:
    found.folder.mkdir(parents=True, exist_ok=True)
    for name, frame in (("estimates", found.moves), ("windows", found.windows), ("rankings", found.rankings)):
        frame.write_csv(found.folder / f"{name}.csv")
        (found.folder / f"{name}.parquet").write_bytes(to_parquet(frame))
    told = {
        "name": found.name,
        "notice": found.notice,
        "changes": [dataclasses.asdict(change) for change in found.changes],
        "held": list(found.held),
        "counts": {stage: dict(counts) for stage, counts in found.counts.items()},
    }
    (found.folder / "rescore.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
