"""Writes the release bundle of a run: tables, what systems said, prompts, cards, hashes, and what describes them."""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import polars as pl

from duplex_bench.reporting.places import RECORDS
from duplex_bench.reporting.site.folder import replaced_folder
from duplex_bench.reporting.withholding import placeless
from duplex_bench.stages import scoring
from duplex_bench.stages.release.archive import pack
from duplex_bench.stages.release.contents import ReleaseError, public_settings, public_tables, text_is_ours
from duplex_bench.stages.release.describe import croissant, dataset_card
from duplex_bench.stages.release.layout import (
    AUDIO,
    CARD,
    CROISSANT,
    FORMAT,
    MANIFEST,
    MARKER,
    METRICS,
    OUTPUT_LICENCE,
    PROFILE,
    PROMPTS,
)
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.stored_run import tracks_run
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_file, digest_value
from duplex_bench.storage.frames import to_parquet
from duplex_bench.storage.provenance import provenance
from duplex_bench.storage.secrets import secret_values

_FENCE: Final = b"+++\n"


def release_folder(workspace: Workspace) -> Path:
    """Where the bundle of a profile lies; the archive lies beside it, as ``<folder>.tar.gz``."""
    return workspace.data / "releases" / workspace.profile.name


def build_release(workspace: Workspace, out: Path | None = None) -> StageResult:
    """Write the bundle and its archive; one row by file with its digest.

    The folder takes the place of an earlier one when it is complete.

    Raises:
        ReleaseError: the run is not in a state to be released, or a key of the environment stands in its text.
        ValueError: nothing was run, ``out`` holds something else, or a blob is missing.
    """
    out = out or release_folder(workspace)
    tables = public_tables(workspace)
    with replaced_folder(out, MARKER) as folder:
        for name, frame in tables.items():
            (folder / f"{name}.parquet").write_bytes(to_parquet(frame))
        audio_s = _write_audio(workspace, tables["rollouts"], folder / AUDIO)
        _write_prompts(folder / PROMPTS)
        _write_json(folder / PROFILE, public_settings(workspace.profile))
        cards = [card for track in tracks_run(workspace) for card in scoring.metric_cards(track)]
        _write_json(folder / METRICS, [dataclasses.asdict(card) for card in cards])
        marker = _marker(workspace, tables, audio_s)
        _write_json(folder / MARKER, marker)
        (folder / CARD).write_text(dataset_card(marker, tables), encoding="utf-8")
        hashes = {name: digest_file(folder / f"{name}.parquet") for name in tables}
        _write_json(folder / CROISSANT, croissant(marker, tables, hashes))
        _refuse_keys(folder, tables)
        manifest = pl.DataFrame(
            list(_listed(folder)), schema={"file": pl.String, "bytes": pl.Int64, "sha256": pl.String}
        )
        listed = {row["file"]: {"bytes": row["bytes"], "sha256": row["sha256"]} for row in manifest.to_dicts()}
        _write_json(folder / MANIFEST, {"files": listed})
    archive = pack(out)
    counts: dict[str, int | float | str] = {
        "release": str(out),
        "archive": str(archive),
        "files": manifest.height,
        "megabytes": round(float(manifest["bytes"].sum()) / 1e6, 1),
        "audio_minutes": round(audio_s / 60, 1),
        **{f"rows_{name}": frame.height for name, frame in tables.items()},
    }
    return StageResult(manifest, counts, preview=manifest.filter(~pl.col("file").str.starts_with(f"{AUDIO}/")))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_audio(workspace: Workspace, rollouts: pl.DataFrame, folder: Path) -> float:
    """What a listener heard of each rollout, marked as machine-generated in the file itself; returns seconds."""
    import soundfile

    folder.mkdir()
    rows = rollouts.drop_nulls("listener_audio").unique("listener_audio", keep="first", maintain_order=True)

    def write(row: tuple[str, str, str]) -> float:
        digest, system, terms = row
        samples, rate = workspace.blobs.read_audio(digest)
        with soundfile.SoundFile(
            folder / f"{digest}.flac", "w", samplerate=rate, channels=samples.shape[1], subtype="PCM_16", format="FLAC"
        ) as stream:
            stream.title = f"machine-generated speech of {system}"
            stream.license = OUTPUT_LICENCE
            stream.comment = f"Machine-generated; not for training. Terms of the model: {terms}"
            stream.write(samples)
        return len(samples) / rate

    # Reading and encoding run outside the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return sum(threads.map(write, rows.select("listener_audio", "system", "model_licence").iter_rows()))


def _write_prompts(folder: Path) -> None:
    """Every prompt and rubric of the package, by its place in it: text files that begin with a head between +++."""
    package = Path(str(files("duplex_bench")))
    for path in sorted(package.rglob("*.md")):
        data = path.read_bytes()
        if data.startswith(_FENCE):
            target = folder / path.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _marker(workspace: Workspace, tables: Mapping[str, pl.DataFrame], audio_s: float) -> dict[str, Any]:
    profile = workspace.profile
    tracks = tracks_run(workspace)
    measured = tables["measurements"].select("measurement_id", "value", "metric_version")
    key = f"{RECORDS}/{profile.name}.json"
    # Code and packages that made the scores; where an older run does not tell, those that release it.
    facts = (
        json.loads(workspace.store.get(key))["facts"]
        if workspace.store.exists(key)
        else dataclasses.asdict(provenance(profile.name, profile.digest))
    )
    return {
        "format": FORMAT,
        "profile": profile.name,
        "profile_digest": profile.digest,
        "run_id": digest_value("release", profile.digest, measured.write_json())[:12],
        "tracks": list(tracks),
        "facts": placeless(facts),
        "released_by": placeless(dataclasses.asdict(provenance(profile.name, profile.digest))),
        "words_withheld": [track for track in tracks if not text_is_ours(profile, track)],
        "licence_of_outputs": OUTPUT_LICENCE,
        "licences_of_sources": sorted(tables["items"]["licence"].unique()),
        "audio_seconds": round(audio_s, 3),
        "rows": {name: frame.height for name, frame in tables.items()},
    }


def _listed(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            yield {"file": name, "bytes": path.stat().st_size, "sha256": digest_file(path)}


def _refuse_keys(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """No value of a variable that holds a key stands in what is given away."""
    for value, name in secret_values().items():
        for table, frame in tables.items():
            for column in frame.columns:
                if frame.schema[column] == pl.String and frame[column].str.contains(value, literal=True).any():
                    raise ReleaseError(_leak(name, f"table {table}, column {column}"))
        for path in folder.rglob("*"):
            if path.suffix in {".json", ".md"} and value in path.read_text("utf-8"):
                raise ReleaseError(_leak(name, path.name))


def _leak(variable: str, where: str) -> str:
    return (
        f"the value of {variable} stands in {where}: nothing was released. Revoke that key, take the text out of the "
        "card, profile or run it comes from, and release again"
    )
