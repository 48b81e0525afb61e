"""Where a run's outputs lie, under which profile: handed to every stage."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from duplex_bench.stages.profile import Profile, load_profile
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.places import open_store


@dataclass(frozen=True)
class Workspace:
    """A data folder and a profile. Blobs, caches and ledgers are shared by profiles, tables and reports are not."""

    data: Path
    profile: Profile

    @cached_property
    def store(self) -> ObjectStore:
        """Blobs, caches, ledgers and tables."""
        return open_store(self.data)

    @cached_property
    def blobs(self) -> BlobStore:
        """Content-addressed audio and event logs."""
        return BlobStore(self.store)

    def ledger(self, scope: str) -> ItemLedger:
        """The ledger of one stage (and system): ``<track>/<stage>[/<system>]``."""
        return ItemLedger(self.store, scope)

    def table_key(self, asset: tuple[str, ...], partition: str | None) -> str:
        """Object key of an asset's table."""
        parts = [*asset, partition] if partition else list(asset)
        return f"tables/{self.profile.name}/{'/'.join(parts)}.parquet"

    @property
    def systems_folder(self) -> Path:
        """A user's own system cards."""
        return self.data / "systems"

    @property
    def reviews_folder(self) -> Path:
        """Approved label reviews, one JSON per session."""
        return self.data / "reviews"

    @property
    def corpora_folder(self) -> Path:
        """Generated corpora."""
        return self.data / "corpora"

    @property
    def report_folder(self) -> Path:
        """The static report of this profile."""
        return self.data / "reports" / self.profile.name


def open_workspace(profile: str, data: str | Path, limit: int | None = None) -> Workspace:
    """The workspace in folder ``data`` under a profile; a bad profile is a ValueError with the remedy.

    With ``limit`` its tables and report stand apart from those of the whole profile.
    """
    loaded = load_profile(profile)
    if limit is not None:
        loaded = replace(loaded, limit=limit, name=f"{loaded.name}-limit-{limit}")
    return Workspace(Path(data).resolve(), loaded)
