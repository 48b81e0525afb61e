"""A user's recording as the rest of the pipeline wants it: one stored two-channel file, the user left, read in blocks.

Memory does not grow with the length of the recording.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import soundfile

from duplex_bench.audio import files
from duplex_bench.audio.files import AudioFileError, AudioInfo
from duplex_bench.audio.gate import GateSettings, stream_intervals
from duplex_bench.stages import progress
from duplex_bench.storage.blobs import BlobStore, to_pcm16
from duplex_bench.storage.digests import digest_file, digest_value
from duplex_bench.storage.object_store import FolderStore, StorageFullError

Party = Literal["user", "system"]
PARTIES: Final[tuple[Party, Party]] = ("user", "system")
BLOCK_S: Final = 10.0
HIGHEST_RATE_HZ: Final = 24_000
"""Recordings above this rate are brought down to it, the rate at which everything else is gated (design 5)."""

Block = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recording:
    """A stored two-channel recording: channel 0 the user, channel 1 the system.

    Attributes:
        path: the stored FLAC file.
        source: its blob digest.
        user_content: digest of the user's channel, as an audio slice wants it.
        sample_rate_hz: its rate.
        n_samples: per channel.
        gate: energy-gate intervals of each channel, int64 (k, 2) samples.
        notes: what was done to the audio, and what makes it less trustworthy.
    """

    path: Path
    source: str
    user_content: str
    sample_rate_hz: int
    n_samples: int
    gate: dict[Party, npt.NDArray[np.int64]]
    notes: tuple[str, ...]

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.n_samples / self.sample_rate_hz

    def gate_s(self, party: Party) -> npt.NDArray[np.float64]:
        """Gate intervals of one channel in seconds, float64 (k, 2)."""
        return self.gate[party].astype(np.float64) / self.sample_rate_hz

    def blocks(self, party: Party) -> Iterator[Block]:
        """One channel in blocks of float32 (m,)."""
        channel = PARTIES.index(party)
        return (np.ascontiguousarray(block[:, channel]) for block in files.blocks(self.path, BLOCK_S))


def prepare(user: Path, system: Path | None, store: FolderStore, gate: GateSettings) -> Recording:
    """Store a recording as one two-channel file and gate both channels.

    Two files are brought to one rate (the higher of the two, at most 24 kHz) and cut to the shorter; notes say so.

    Args:
        user: the user's channel, or both channels in one file, the user first.
        system: the system's channel, if it is a file of its own.
        store: where the recording goes.
        gate: the gate's numbers.

    Raises:
        AudioFileError: a file cannot be read, has the wrong number of channels, or both channels are the same audio.
        StorageFullError: no space for the recording.
    """
    infos = _checked(user, system)
    rate_hz = min(max(info.sample_rate_hz for info in infos), HIGHEST_RATE_HZ)
    notes = _notes([user] if system is None else [user, system], infos, rate_hz)
    written = _Written()
    blobs = BlobStore(store)
    total_s = min(info.duration_s for info in infos)
    _require_space(store.root, total_s, rate_hz)
    store.root.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".writing-", suffix=".flac", dir=store.root)
    os.close(descriptor)
    temporary = Path(name)
    try:
        _write(temporary, _two_channels(user, system, infos, rate_hz), rate_hz, total_s, written)
        if written.same and written.peak > 0:
            remedy = "give the two channels of the conversation: this is one channel saved twice"
            raise AudioFileError(user, "holds the same audio for user and system", remedy)
        temporary.chmod(0o644)
        source = digest_file(temporary)
        store.put_file(blobs.key(source, "flac"), temporary)
    finally:
        temporary.unlink(missing_ok=True)
    path = store.path(blobs.key(source, "flac"))
    content = digest_value("pcm16", rate_hz, written.user.hexdigest())
    recording = Recording(path, source, content, rate_hz, written.n_samples, {}, ())
    gates = {party: stream_intervals(recording.blocks(party), rate_hz, gate) for party in PARTIES}
    lowest_hz = min(info.sample_rate_hz for info in infos)
    for channel, party in enumerate(PARTIES):
        share = written.at_full_scale[channel] / max(written.n_samples, 1)
        notes += [f"{party}'s channel: {one.message}" for one in files.warnings_of(share, lowest_hz)]
        if not len(gates[party]):
            notes.append(f"the {party}'s channel never opens the energy gate ({gate.threshold:g} of full scale)")
    return Recording(path, source, content, rate_hz, written.n_samples, gates, tuple(notes))


def _checked(user: Path, system: Path | None) -> list[AudioInfo]:
    first = files.probe(user)
    if system is None:
        if first.channels != 2:
            remedy = "give the system's channel as a second file, or one file with the user left and the system right"
            raise AudioFileError(user, f"has {_channels(first)} where two are needed", remedy)
        return [first]
    second = files.probe(system)
    for path, info in ((user, first), (system, second)):
        if info.channels != 1:
            remedy = "give a file with one channel, or one two-channel file alone (the user left, the system right)"
            raise AudioFileError(path, f"has {_channels(info)} where one is needed", remedy)
    return [first, second]


def _channels(info: AudioInfo) -> str:
    return f"{info.channels} channel" + ("" if info.channels == 1 else "s")


def _notes(paths: list[Path], infos: list[AudioInfo], rate_hz: int) -> list[str]:
    notes = [
        f"{path.name} was resampled from {info.sample_rate_hz} to {rate_hz} Hz"
        for path, info in zip(paths, infos, strict=True)
        if info.sample_rate_hz != rate_hz
    ]
    if len(infos) == 2:
        shorter = int(infos[1].duration_s < infos[0].duration_s)
        cut_s = infos[1 - shorter].duration_s - infos[shorter].duration_s
        if cut_s * rate_hz >= 1:
            notes.append(
                f"{paths[1 - shorter].name} is {cut_s:.3f} s longer than {paths[shorter].name}: its end was cut off; "
                "both are taken to start at the same moment"
            )
    return notes


def _require_space(folder: Path, seconds: float, rate_hz: int) -> None:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    needed = int(seconds * rate_hz) * 4
    free = shutil.disk_usage(there).free
    if free < needed:
        raise StorageFullError(
            f"{needed / 1e6:.0f} MB are needed for the recording at {folder}, {free / 1e6:.0f} MB are free: free some, "
            "or name another folder with --data"
        )


class _Written:
    """What is learnt about a recording while it is written."""

    def __init__(self) -> None:
        self.n_samples = 0
        self.at_full_scale = [0, 0]
        self.peak = 0.0
        self.same = True
        self.user = hashlib.sha256()

    def add(self, block: Block, pcm: npt.NDArray[np.int16]) -> None:
        self.n_samples += len(block)
        self.peak = max(self.peak, float(np.abs(block).max(initial=0.0)))
        self.same = self.same and bool(np.array_equal(pcm[:, 0], pcm[:, 1]))
        self.user.update(np.ascontiguousarray(pcm[:, 0], dtype="<i2").tobytes())
        for channel in (0, 1):
            self.at_full_scale[channel] += files.n_at_full_scale(block[:, channel])


def _write(target: Path, blocks: Iterator[Block], rate_hz: int, total_s: float, written: _Written) -> None:
    total = max(1, round(total_s))
    stage = "reading the recording (s)"
    progress.tell(progress.Progress(stage, 0, total))
    try:
        with soundfile.SoundFile(target, "w", rate_hz, 2, "PCM_16", format="FLAC") as stream:
            for block in blocks:
                pcm = to_pcm16(block)
                stream.write(pcm)
                written.add(block, pcm)
                progress.tell(progress.Progress(stage, min(total, round(written.n_samples / rate_hz)), total))
    except soundfile.LibsndfileError as error:
        raise OSError(f"{target}: the recording could not be stored ({error}): free some space, run again") from error


def _two_channels(user: Path, system: Path | None, infos: list[AudioInfo], rate_hz: int) -> Iterator[Block]:
    if system is None:
        yield from _at_rate(user, infos[0], rate_hz)
        return
    parts = [_at_rate(path, info, rate_hz) for path, info in zip((user, system), infos, strict=True)]
    waiting = [np.zeros((0, 1), dtype=np.float32) for _ in parts]
    while True:
        for side, part in enumerate(parts):
            while not len(waiting[side]):
                block = next(part, None)
                if block is None:
                    return
                waiting[side] = block
        size = min(len(block) for block in waiting)
        yield np.concatenate([block[:size] for block in waiting], axis=1)
        waiting = [block[size:] for block in waiting]


def _at_rate(path: Path, info: AudioInfo, rate_hz: int) -> Iterator[Block]:
    if info.sample_rate_hz == rate_hz:
        yield from files.blocks(path, BLOCK_S)
        return
    import soxr

    resampler = soxr.ResampleStream(info.sample_rate_hz, rate_hz, info.channels, dtype="float32", quality="HQ")
    for block in files.blocks(path, BLOCK_S):
        converted: Block = resampler.resample_chunk(block)
        yield converted.reshape(-1, info.channels)
    tail: Block = resampler.resample_chunk(np.zeros((0, info.channels), dtype=np.float32), last=True)
    yield tail.reshape(-1, info.channels)
