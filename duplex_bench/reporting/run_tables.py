"""The stored tables of a run, a release bundle or a report, read the same way: for notebooks, compare and gate."""

import json
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.places import RECORDS, RELEASE_MANIFEST, RELEASE_MARKER, REPORT_MARKER, TABLES_FOLDER
from duplex_bench.storage.archives import Allowance, ArchiveBombError
from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.frames import DamagedTableError, from_parquet

Kind = Literal["run", "bundle", "report"]

TRACKS: Final[tuple[Track, ...]] = ("multiparty", "conversation")
_ARCHIVES: Final = (".tar.gz", ".tgz")
_HINT: Final = (
    "give the data folder of a run (the one with store/), a release bundle (folder or .tar.gz), or a report folder"
)


class Run(Mapping[str, pl.DataFrame]):
    """Every table of one run by its id, ``<track>-<table>``; each is read when it is asked for, and kept.

    Attributes:
        path: where it was read from.
        kind: ``run`` (a data folder), ``bundle`` (a release) or ``report``.
        name: the profile's name.
        settings: the profile it was made under, nested as in its TOML; None where it is not told.
        facts: version, commit and packages of the code that made it; empty where they are not told.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        name: str,
        readers: Mapping[str, Callable[[], pl.DataFrame]],
        settings: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.name = name
        self.settings = settings
        self.facts: Mapping[str, Any] = facts or {}
        self._readers = dict(sorted(readers.items()))
        self._read: dict[str, pl.DataFrame] = {}

    def __getitem__(self, key: str) -> pl.DataFrame:
        if key not in self._read:
            if key not in self._readers:
                raise KeyError(f"{self.path} has no table {key!r}: there are {', '.join(self._readers)}")
            self._read[key] = self._readers[key]()
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        return f"Run({self.kind} {self.name!r} in {self.path}, {len(self)} tables)"

    @property
    def tracks(self) -> tuple[Track, ...]:
        """Tracks that have scores."""
        return tuple(
            track
            for track in TRACKS
            if f"{track}-measurements" in self._readers and self[f"{track}-measurements"].height
        )

    def systems(self, track: Track) -> tuple[str, ...]:
        """Systems with scores on a track, sorted."""
        if f"{track}-measurements" not in self._readers:
            return ()
        return tuple(sorted(self[f"{track}-measurements"]["system"].unique()))

    @property
    def title(self) -> str:
        """Name and, where it is known, the commit: how the run is quoted."""
        commit = str(self.facts.get("commit") or "")[:7]
        return f"{self.name}@{commit}" if commit else self.name


def load_run(path: Path | str, profile: str | None = None) -> Run:
    """Every table of a run, a release bundle or a report by its id, for notebooks.

    Args:
        path: a data folder (the one with ``store/``), a release bundle (folder or ``.tar.gz``), or a report folder
            (the one with ``index.html``).
        profile: whose tables, where a data folder holds those of several profiles.

    Returns:
        A mapping from ``<track>-<table>``, as ``multiparty-measurements``, to frames.

    Raises:
        ReportInputError: nothing of the kind lies there, or several profiles do and none is named.
    """
    place = Path(path)
    if place.is_file():
        if place.name.endswith(_ARCHIVES):
            return _archive(place)
        raise ReportInputError(f"{place} is a file: {_HINT}")
    if not place.exists():
        raise ReportInputError(f"{place} does not exist: {_HINT}")
    if (place / RELEASE_MARKER).is_file():
        return _bundle(place, {file.name: file.read_bytes for file in sorted(place.iterdir()) if file.is_file()})
    if (place / "store" / "tables").is_dir():
        return _data_folder(place, profile)
    files = sorted((place / TABLES_FOLDER).glob("*.parquet"))
    if files:
        marker = _told(place / REPORT_MARKER)
        readers = {file.stem: _reader(file.read_bytes, file) for file in files}
        return Run(place, "report", str(marker.get("profile", place.name)), readers)
    raise ReportInputError(f"{place} holds no tables: {_HINT}")


def _reader(read: Callable[[], bytes], where: Path | str) -> Callable[[], pl.DataFrame]:
    def frame() -> pl.DataFrame:
        try:
            return from_parquet(read())
        except (DamagedTableError, OSError) as error:
            raise ReportInputError(f"{where} is no readable table ({error}): make or fetch it again") from error

    return frame


def _told(file: Path) -> dict[str, Any]:
    return _parsed(file.read_bytes(), file) if file.is_file() else {}


def _parsed(data: bytes, where: Path | str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise ReportInputError(f"{where} is no JSON ({error}): make or fetch it again") from error
    if not isinstance(found, dict):
        raise ReportInputError(f"{where} holds no JSON object: make or fetch it again")
    return found


def _data_folder(data: Path, profile: str | None) -> Run:
    tables = data / "store" / "tables"
    names = sorted(folder.name for folder in tables.iterdir() if any(folder.glob("*/measurements/*.parquet")))
    if profile is None:
        if len(names) != 1:
            told = f"scores of {', '.join(names)}: name one with --profile" if names else "no scores: run it first"
            raise ReportInputError(f"{data} holds {told}")
        profile = names[0]
    if profile not in names:
        there = ", ".join(names) or "none"
        raise ReportInputError(f"{data} holds no scores of profile {profile}: there are those of {there}")
    readers: dict[str, Callable[[], pl.DataFrame]] = {}
    for entry in sorted((tables / profile).glob("*/*")):
        name = f"{entry.parent.name}-{entry.name.removesuffix('.parquet')}"
        of_systems = sorted(entry.glob("*.parquet")) if entry.is_dir() else []
        if of_systems:
            readers[name] = _joined(of_systems)
        elif entry.suffix == ".parquet":
            readers[name] = _reader(entry.read_bytes, entry)
    record = _told(data / "store" / RECORDS / f"{profile}.json")
    return Run(data, "run", profile, readers, record.get("settings"), record.get("facts"))


def _joined(files: list[Path]) -> Callable[[], pl.DataFrame]:
    """The tables of several systems as one, in order of system."""

    def frame() -> pl.DataFrame:
        return pl.concat([_reader(file.read_bytes, file)() for file in files], how="vertical_relaxed")

    return frame


def _whole(place: Path, files: Mapping[str, Callable[[], bytes]]) -> dict[str, Callable[[], bytes]]:
    """Readers that refuse a file whose digest is not that of the bundle's manifest: it is no longer what was released.

    A table that was cut or altered would else be read as far as it goes, or break the reader.
    """
    if RELEASE_MANIFEST not in files:
        raise ReportInputError(f"{place} has no {RELEASE_MANIFEST}, which tells what was released: fetch it again")
    manifest = f"{place}/{RELEASE_MANIFEST}"
    listed = _parsed(files[RELEASE_MANIFEST](), manifest).get("files")
    if not isinstance(listed, dict):
        raise ReportInputError(f"{manifest} lists no files: fetch it again")
    missing = sorted(name for name in listed if name.endswith(".parquet") and name not in files)
    if missing:
        raise ReportInputError(f"{place} lacks {', '.join(missing)}, which {RELEASE_MANIFEST} lists: fetch it again")

    def checked(name: str, read: Callable[[], bytes]) -> Callable[[], bytes]:
        def data() -> bytes:
            found, told = read(), listed.get(name)
            if not isinstance(told, dict) or told.get("sha256") != digest_bytes(found):
                raise ReportInputError(
                    f"{place}/{name} is not the file that was released (its SHA-256 is not that of "
                    f"{RELEASE_MANIFEST}): fetch it again; duplex-bench release --check names all that is wrong"
                )
            return found

        return data

    return {name: checked(name, read) for name, read in files.items() if name != RELEASE_MANIFEST}


def _bundle(place: Path, given: Mapping[str, Callable[[], bytes]]) -> Run:
    files = _whole(place, given)
    marker = _parsed(files[RELEASE_MARKER](), f"{place}/{RELEASE_MARKER}")
    settings = _parsed(files["profile.json"](), f"{place}/profile.json") if "profile.json" in files else None
    readers: dict[str, Callable[[], pl.DataFrame]] = {}
    for name, read in files.items():
        if not name.endswith(".parquet"):
            continue
        table = _reader(read, f"{place}/{name}")
        if name == "cards.parquet":
            readers["systems-cards"] = table
            continue
        for track in marker.get("tracks", ()):
            readers[f"{track}-{name.removesuffix('.parquet')}"] = _of_track(table, track)
    return Run(place, "bundle", str(marker.get("profile", place.name)), readers, settings, marker.get("facts"))


def _of_track(table: Callable[[], pl.DataFrame], track: str) -> Callable[[], pl.DataFrame]:
    return lambda: table().filter(pl.col("track") == track)


def _archive(place: Path) -> Run:
    """The tables of a packed bundle, read in memory: nothing is unpacked."""
    files: dict[str, Callable[[], bytes]] = {}
    allowance = Allowance(place)
    try:
        with tarfile.open(place, "r:gz") as archive:
            for member in archive:
                # Also what is passed over is unpacked on the way to the next.
                allowance.take(member.size)
                name = member.name.partition("/")[2]
                stream = archive.extractfile(member) if "/" not in name and member.isfile() else None
                if stream is not None and name.endswith((".parquet", ".json")):
                    files[name] = _bytes(stream.read())
    except ArchiveBombError as error:
        raise ReportInputError(str(error)) from error
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ReportInputError(f"{place} is no readable archive ({error}): fetch it again") from error
    if RELEASE_MARKER not in files:
        raise ReportInputError(f"{place} is no release bundle (it holds no {RELEASE_MARKER}): {_HINT}")
    return _bundle(place, files)


def _bytes(data: bytes) -> Callable[[], bytes]:
    return lambda: data
