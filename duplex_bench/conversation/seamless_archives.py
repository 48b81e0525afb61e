"""Seamless Interaction as it is downloaded: which archives a choice needs, archives unpacked, the bucket's layout.

Layouts: corpora-and-models reference, section A.3. The loader itself reads unpacked folders.
"""

import csv
import json
import re
import shutil
import tarfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from duplex_bench.conversation.seamless import FILE_ID
from duplex_bench.conversation.sessions import LoadedSessions, Rejection, Session
from duplex_bench.storage.digests import digest_value

SPLITS: Final = ("train", "dev", "test")
_ARCHIVE: Final = re.compile(r"^\d{4}$")
_WANTED_SUFFIXES: Final = (".wav", ".json")
# Twice the longest interaction as float32 at 48 kHz (ours): a member larger than that is no side of a conversation.
_MOST_BYTES: Final = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One row of ``filelist.csv``."""

    file_id: str
    key: str
    label: str
    split: str
    batch: str
    archive: str

    @property
    def archive_path(self) -> str:
        """Where the archive lies below the root, as downloaded."""
        return f"{self.label}/{self.split}/{self.batch}/{self.archive}.tar"

    @property
    def s3_keys(self) -> tuple[str, ...]:
        """What speech work needs of this file in the bucket, below its prefix: audio, transcript, voice activity."""
        base = f"{self.label}/{self.split}"
        notes = tuple(f"{base}/metadata/{kind}/{self.file_id}.jsonl" for kind in ("transcript", "vad"))
        return (f"{base}/audio/{self.file_id}.wav", *notes)


def read_file_list(path: Path, label: str = "naturalistic") -> list[ListedFile]:
    """The rows of a ``filelist.csv`` of one label, in order.

    Raises:
        ValueError: no such columns, or a file id or index that is none; names file and row.
    """
    found: list[ListedFile] = []
    with path.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream), start=2):
            missing = [name for name in ("file_id", "label", "split", "batch_idx", "archive_idx") if not row.get(name)]
            if missing:
                raise ValueError(
                    f"{path}, line {number}: no {', '.join(missing)}: take the filelist.csv of the release"
                )
            match = FILE_ID.match(row["file_id"])
            if match is None or row["split"] not in SPLITS:
                raise ValueError(
                    f"{path}, line {number}: {row['file_id']!r} in split {row['split']!r} is no file of it"
                )
            if row["label"] == label:
                batch, archive = row["batch_idx"].zfill(4), row["archive_idx"].zfill(4)
                found.append(ListedFile(row["file_id"], match["key"], label, row["split"], batch, archive))
    return found


def read_selection(path: Path) -> frozenset[str]:
    """Interaction keys of a selection: a text file with a key or file id a line, or a CSV with a column file_id.

    Raises:
        ValueError: a line that is neither; names file and row.
    """
    keys: set[str] = set()
    lines = path.read_text("utf-8").splitlines()
    if lines and "," in lines[0]:
        names = [row.get("file_id") or "" for row in csv.DictReader(lines)]
        numbered = list(enumerate(names, start=2))
    else:
        numbered = [(n, line.strip()) for n, line in enumerate(lines, start=1)]
    for number, name in numbered:
        if not name or name.startswith("#"):
            continue
        match = FILE_ID.match(name) or FILE_ID.match(f"{name}_P0")
        if match is None:
            raise ValueError(f"{path}, line {number}: {name!r} is no interaction or file id (V.._S...._I........)")
        keys.add(match["key"])
    return frozenset(keys)


def needed_archives(listed: Iterable[ListedFile], keys: Collection[str] | None = None) -> list[str]:
    """Paths of the archives that hold both sides of the chosen interactions, each once, in order; None: of all.

    The two sides of one interaction may lie in different archives.
    """
    return sorted({one.archive_path for one in listed if keys is None or one.key in keys})


def needed_s3_keys(listed: Iterable[ListedFile], keys: Collection[str] | None = None) -> list[str]:
    """Objects of the bucket that the chosen interactions need, below its prefix; nothing of video or motion."""
    return sorted(key for one in listed if keys is None or one.key in keys for key in one.s3_keys)


def unpack_archives(root: Path, label: str) -> list[Rejection]:
    """Unpack WAV and JSON of every ``<archive>.tar`` below ``root/label`` that is not unpacked yet, beside it.

    Whole archives, whatever is chosen of them: another choice then finds what it needs.
    A folder appears when it is complete. Members are taken by their file name alone, so that none can leave the folder;
    links, devices and oversized members are left out and named.

    Returns:
        Rejections: archives that could not be read, members that were refused.
    """
    rejections: list[Rejection] = []
    for path in sorted((root / label).glob("*/*/*.tar")):
        folder = path.with_suffix("")
        if folder.exists() or not _ARCHIVE.match(path.stem):
            continue
        part = path.with_name(f".{path.stem}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            with tarfile.open(path) as archive:
                rejections += _unpack(archive, path, part)
        except (tarfile.TarError, EOFError) as error:
            shutil.rmtree(part)
            rejections.append(Rejection(str(path), "broken_archive", str(error), "download it again"))
            continue
        part.rename(folder)
    return rejections


def _unpack(archive: tarfile.TarFile, path: Path, folder: Path) -> Iterator[Rejection]:
    for member in archive:
        name = PurePosixPath(member.name).name
        stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
        if suffix not in _WANTED_SUFFIXES or FILE_ID.match(stem) is None:
            continue
        stream = archive.extractfile(member) if member.isfile() and member.size <= _MOST_BYTES else None
        if stream is None:
            told = "it is no plain file" if not member.isfile() else f"it has {member.size} bytes"
            yield Rejection(f"{path}: {member.name}", "unsafe_member", told, "download the archive from the release")
            continue
        with stream, (folder / name).open("wb") as target:
            shutil.copyfileobj(stream, target)


def from_bucket_layout(mirror: Path, root: Path, label: str, keys: Collection[str] | None = None) -> list[Rejection]:
    """Bring a local mirror of the bucket (``audio/``, ``metadata/``) into the folder layout below ``root``.

    Lines of the JSONL files become the lists of the one JSON that the release's own helper writes. WAV files are linked
    where that is possible. What is there already is left alone.

    Returns:
        Rejections: sides whose notes could not be read.
    """
    rejections: list[Rejection] = []
    for wav in sorted((mirror / label).glob("*/audio/*.wav")):
        match = FILE_ID.match(wav.stem)
        if match is None or (keys is not None and match["key"] not in keys):
            continue
        split = wav.parent.parent
        folder = root / label / split.name / "0000" / "0000"
        target = folder / wav.name
        if target.exists() and target.with_suffix(".json").exists():
            continue
        note: dict[str, object] = {"id": wav.stem}
        try:
            for kind in ("transcript", "vad"):
                lines = (split / "metadata" / kind / f"{wav.stem}.jsonl").read_text("utf-8").split("\n")
                note[f"metadata:{kind}"] = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            rejections.append(Rejection(str(wav), "metadata", str(error), "download transcript and vad of this file"))
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            try:
                target.hardlink_to(wav)
            except OSError:
                shutil.copyfile(wav, target)
        target.with_suffix(".json").write_text(json.dumps(note, indent=4), "utf-8")
    return rejections


def speaker_disjoint_split(
    sessions: Sequence[Session], shares: Sequence[tuple[str, float]], seed: int
) -> dict[str, str]:
    """A split in which no speaker is on two sides: name of the part by session id.

    Sessions that share a speaker, also through others, go together. Groups go, in the order of a hash, to the part
    that lies furthest below its share of sessions.

    Args:
        sessions: any sessions; speaker ids hold the vendor.
        shares: name and share of each part, above 0.
        seed: of the order.

    Raises:
        ValueError: no part, or a share that is not above 0.
    """
    if not shares or any(share <= 0 for _, share in shares):
        raise ValueError(f"split shares {tuple(shares)}: give each part a share above 0")
    groups = _speaker_groups(sessions)
    total = sum(share for _, share in shares)
    aims = {name: share / total * len(sessions) for name, share in shares}
    taken = dict.fromkeys(aims, 0)
    found: dict[str, str] = {}
    for group in sorted(groups, key=lambda one: digest_value("speaker split/1", seed, min(one))):
        part = max(aims, key=lambda name: (aims[name] - taken[name]) / aims[name])
        taken[part] += len(group)
        found |= dict.fromkeys(group, part)
    return found


def _speaker_groups(sessions: Sequence[Session]) -> list[list[str]]:
    parent: dict[str, str] = {}

    def root_of(speaker: str) -> str:
        parent.setdefault(speaker, speaker)
        while parent[speaker] != speaker:
            parent[speaker] = parent[parent[speaker]]
            speaker = parent[speaker]
        return speaker

    for session in sessions:
        parent[root_of(session.left.speaker_id)] = root_of(session.right.speaker_id)
    groups: dict[str, list[str]] = {}
    for session in sessions:
        groups.setdefault(root_of(session.left.speaker_id), []).append(session.session_id)
    return list(groups.values())


def selected(loaded: LoadedSessions, names: Collection[str]) -> LoadedSessions:
    """The sessions named; rejections stay as they are."""
    return LoadedSessions(tuple(one for one in loaded.sessions if one.session_id in names), loaded.rejections)
