"""Stable hashes: of bytes, of values, of stimuli, and the seeds derived from names."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duplex_bench.records.items import Stimulus

_CHUNK_BYTES = 1 << 20


def digest_bytes(data: bytes | memoryview) -> str:
    """SHA-256 of ``data`` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's content, read in blocks."""
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces, no NaN. Dataclasses become objects.

    Raises:
        ValueError: ``value`` holds NaN or infinity, which JSON cannot say.
        TypeError: ``value`` holds something that is not plain data.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain data")


def digest_value(*parts: Any) -> str:
    """SHA-256 of the canonical JSON of ``parts``: the key of a piece of work, equal in every process."""
    return digest_bytes(canonical_json(list(parts)).encode())


def digest_pcm16(samples: npt.NDArray[np.int16], sample_rate_hz: int) -> str:
    """Digest of what a stretch of mono audio contains: its PCM16 samples (n,) and their rate."""
    return digest_value(
        "pcm16", sample_rate_hz, digest_bytes(np.ascontiguousarray(samples, dtype="<i2").data.cast("B"))
    )


def stimulus_digest(stimulus: Stimulus) -> str:
    """Digest of all that every system hears and reads; where the audio is stored does not count.

    Word times are not in it: only some systems take them (``history_words_digest``).
    """

    def content(part: Any) -> Any:
        return None if part is None else (part.content, part.sample_rate_hz)

    # Named only where it is used, so that the digests of all other stimuli stay what they were.
    behind = [] if stimulus.after is None else [content(stimulus.after)]
    return digest_value(
        "stimulus/1",
        stimulus.protocol,
        content(stimulus.live),
        stimulus.identity_prompt,
        list(stimulus.history),
        content(stimulus.history_user),
        content(stimulus.history_assistant),
        *behind,
    )


def history_words_digest(stimulus: Stimulus) -> str | None:
    """Digest of the assistant's words in the history with their times; None where there are none."""
    return digest_value("history words/1", list(stimulus.history_words)) if stimulus.history_words else None


def seed_from(*names: str | int) -> int:
    """A 63-bit seed from names, the same in every process (the built-in ``hash`` is not)."""
    return int(digest_value("seed/1", *names)[:16], 16) >> 1


def generator_from(*names: str | int) -> np.random.Generator:
    """A generator seeded by ``seed_from``: all randomness comes from names, passed as a generator."""
    return np.random.default_rng(seed_from(*names))


def draw_order(seed: int, ids: list[str]) -> list[str]:
    """``ids`` by smallest H(seed, id): taking the first k is a draw that an edit changes only locally (design 4)."""
    return sorted(ids, key=lambda item: digest_value("draw/1", seed, item))
