"""Whether a bundle is whole and holds what it may: every finding names the file and what to do."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import polars as pl

from duplex_bench.reporting.public_filter import public_details
from duplex_bench.reporting.withholding import public_reason, public_reference, public_stimulus
from duplex_bench.stages.release.archive import opened
from duplex_bench.stages.release.layout import AUDIO, FORMAT, MANIFEST, MARKER, OUTPUT_LICENCE, TABLES
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.frames import DamagedTableError, from_parquet

_AGAIN: Final = "fetch the bundle again, or build it with duplex-bench release"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: in which file, what, and what to do."""

    file: str
    message: str
    remedy: str = _AGAIN


def check_release(place: Path) -> tuple[Problem, ...]:
    """Every problem of a bundle, as a folder or as ``.tar.gz``; none if it is whole.

    Raises:
        ReleaseError: ``place`` is not there, or an archive that cannot be unpacked safely.
    """
    with opened(place) as folder:
        return tuple(problems(folder))


def problems(folder: Path) -> Iterator[Problem]:
    """The problems of an unpacked bundle, as they are found."""
    marker = _json(folder / MARKER)
    manifest = _json(folder / MANIFEST)
    if isinstance(marker, Problem) or isinstance(manifest, Problem):
        yield from (found for found in (marker, manifest) if isinstance(found, Problem))
        return
    if marker.get("format") != FORMAT:
        yield Problem(
            MARKER, f"is of format {marker.get('format')!r}, this version reads {FORMAT}", "use the version it names"
        )
        return
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        yield Problem(MANIFEST, "lists no files")
        return
    changed = list(_files(folder, listed))
    yield from changed
    # A damaged table can take its reader down: what is not as released is not read.
    unread = {problem.file for problem in changed}
    frames: dict[str, pl.DataFrame] = {}
    for name in TABLES:
        file = f"{name}.parquet"
        if file not in listed:
            yield Problem(file, f"is not listed in {MANIFEST}")
        elif (folder / file).is_file() and file not in unread:
            found = _table(folder, name, marker.get("rows", {}))
            yield from found[1]
            if found[0] is not None:
                frames[name] = found[0]
    if set(frames) == set(TABLES):
        yield from _rows(frames, listed)
        yield from _withheld(frames)
    yield from _marked(folder, listed)


def _json(path: Path) -> dict[str, Any] | Problem:
    if not path.is_file():
        return Problem(path.name, "is missing: this is no release bundle, or not the whole of one")
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        return Problem(path.name, f"is no JSON ({error})")
    return found if isinstance(found, dict) else Problem(path.name, "holds no JSON object")


def _files(folder: Path, listed: Mapping[str, Any]) -> Iterator[Problem]:
    root = folder.resolve()
    inside: set[str] = set()
    for name, told in sorted(listed.items()):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            yield Problem(name, f"{MANIFEST} names a path outside the bundle", "do not use this bundle")
            continue
        inside.add(name)
        file = folder / path
        if file.is_symlink() or not file.resolve().is_relative_to(root):
            yield Problem(name, "is a link, which may lead outside the bundle", "do not use this bundle")
        elif not file.is_file():
            yield Problem(name, "is missing")
        elif not isinstance(told, dict) or digest_file(file) != told.get("sha256"):
            yield Problem(name, f"is not the file that was released: its SHA-256 differs from that in {MANIFEST}")
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if (file.is_file() or file.is_symlink()) and name not in inside and name != MANIFEST:
            yield Problem(name, f"is not listed in {MANIFEST}", "remove it")


def _table(folder: Path, name: str, rows: Mapping[str, Any]) -> tuple[pl.DataFrame | None, list[Problem]]:
    file = f"{name}.parquet"
    try:
        frame = from_parquet((folder / file).read_bytes())
    except (DamagedTableError, OSError) as error:
        return None, [Problem(file, f"is no readable table ({error})")]
    wanted, found = dict(TABLES[name]), dict(frame.schema)
    unknown, missing = sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))
    other = [column for column in wanted if column in found and found[column] != wanted[column]]
    wrong = []
    if unknown:
        wrong.append(Problem(file, f"has unknown columns {', '.join(unknown)}", "remove them, or use their version"))
    if missing:
        wrong.append(Problem(file, f"lacks columns {', '.join(missing)}"))
    if other:
        told = ", ".join(f"{column} is {found[column]}, not {wanted[column]}" for column in other)
        wrong.append(Problem(file, f"has columns of another type: {told}"))
    if frame.height != rows.get(name):
        wrong.append(Problem(file, f"has {frame.height} rows where {MARKER} tells {rows.get(name)}"))
    return (None if missing or other else frame), wrong


def _rows(frames: Mapping[str, pl.DataFrame], listed: Mapping[str, Any]) -> Iterator[Problem]:
    for name, frame in frames.items():
        file = f"{name}.parquet"
        for column in ("licence", "source_licence", "model_licence"):
            if column in frame.columns:
                n = frame.filter(pl.col(column).is_null() | (pl.col(column) == "")).height
                if n:
                    yield Problem(file, f"{n} rows have no {column}", "say under which terms they may be used")
    for name in ("measurements", "bounds"):
        frame = frames[name]
        bad = frame.filter(
            (pl.col("value").is_null() == pl.col("reason").is_null())
            | pl.col("value").is_nan()
            | pl.col("value").is_infinite()
        )
        if bad.height:
            told = ", ".join(bad["measurement_id"].head(_SHOWN))
            yield Problem(f"{name}.parquet", f"{bad.height} rows are neither a value nor a reason (first: {told})")
        strange = set(frame["item_id"].unique()) - set(frames["items"]["item_id"])
        if strange:
            yield Problem(f"{name}.parquet", f"scores items that items.parquet lacks (first: {min(strange)})")
    lost = sorted(set(frames["rollouts"]["audio"].drop_nulls()) - set(listed))
    if lost:
        yield Problem("rollouts.parquet", f"names {len(lost)} recordings that are not in the bundle (first: {lost[0]})")


def _withheld(frames: Mapping[str, pl.DataFrame]) -> Iterator[Problem]:
    """Nothing is given that the rules hold back: what they leave alone is what they would leave."""
    items = frames["items"]
    closed = items.filter("withheld")
    leaks: dict[str, int] = {}

    def count(where: str, changed: bool) -> None:
        leaks[where] = leaks.get(where, 0) + changed

    for text in items["stimulus"]:
        count("items.parquet, column stimulus", json.loads(public_stimulus(text)) != json.loads(text))
    for text in closed["reference"]:
        count("items.parquet, column reference", json.loads(public_reference(text)) != json.loads(text))
    ids = closed["item_id"].implode()
    for name in ("measurements", "bounds"):
        for text, reason in frames[name].filter(pl.col("item_id").is_in(ids)).select("details", "reason").iter_rows():
            kept = public_details(text, of_system=name == "measurements")
            count(f"{name}.parquet, column details", json.loads(kept or "{}") != json.loads(text))
            count(f"{name}.parquet, column reason", public_reason(reason) != reason)
    for reason, raw in frames["judgements"].filter(pl.col("item_id").is_in(ids)).select("reason", "raw").iter_rows():
        count("judgements.parquet, columns reason and raw", bool(reason or raw))
    for where, n in leaks.items():
        if n:
            yield Problem(
                where.partition(",")[0],
                f"{n} rows of{where.partition(',')[2]} hold words that are to be withheld",
                "do not publish it: build it anew with duplex-bench release",
            )


def _marked(folder: Path, listed: Mapping[str, Any]) -> Iterator[Problem]:
    """Every recording says in the file itself that a machine made it."""
    import soundfile

    for name in sorted(listed):
        file = folder / name
        if name.startswith(f"{AUDIO}/") and file.is_file() and not file.is_symlink():
            try:
                with soundfile.SoundFile(file) as stream:
                    licence = stream.license
            except soundfile.LibsndfileError as error:
                yield Problem(name, f"is no readable recording ({error})")
                continue
            if licence != OUTPUT_LICENCE:
                yield Problem(name, f"does not say {OUTPUT_LICENCE!r} in its licence tag")
