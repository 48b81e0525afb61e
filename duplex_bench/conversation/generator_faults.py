"""Known faults of the Seamless Interaction release, made on purpose, one a session.

Each is a finding of a census of the real corpus (corpora-and-models reference A.6); the generator applies them to
otherwise clean sessions so that a loader can be tried on every one.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

Fault = Literal[
    "empty_wav", "missing_partner", "missing_archive", "empty_vad", "vad_ends_early", "no_transcript",
    "null_word_times", "reversed_word_times", "partner_longer", "crosstalk", "float_wav", "broken_json",
]  # fmt: skip

FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)

# The partner's voice in a bad recording, relative to its own microphone, and the delay of its echoed words.
CROSSTALK_DB: Final = -15.0
CROSSTALK_DELAY_S: Final = 0.1
LONGER_BY_S: Final = 65.0
_NULL_EVERY: Final = 10
_VAD_KEPT: Final = 0.6


@dataclass(slots=True)
class SideFiles:
    """One participant's files before they are written.

    ``written`` is False for files that are missing, ``listed`` whether ``filelist.csv`` names them; ``form`` is how the
    WAV is stored, ``cut_json`` whether the JSON breaks off.
    """

    file_id: str
    archive: int
    samples: npt.NDArray[np.float32]
    note: dict[str, Any]
    form: Literal["pcm16", "float32", "header_only"] = "pcm16"
    written: bool = True
    listed: bool = True
    cut_json: bool = False


def apply_fault(fault: Fault, left: SideFiles, right: SideFiles, sample_rate_hz: int) -> None:
    """Damages a clean pair in the way ``fault`` names; where one side is enough, it is the left one.

    Raises:
        ValueError: no such fault.
    """
    match fault:
        case "empty_wav":
            left.form = "header_only"
            left.note["metadata:vad"] = []
        case "missing_partner":
            right.written = right.listed = False
        case "missing_archive":
            right.written = False
        case "empty_vad":
            left.note["metadata:vad"] = []
        case "vad_ends_early":
            vad = left.note["metadata:vad"]
            left.note["metadata:vad"] = vad[: max(1, int(len(vad) * _VAD_KEPT))]
        case "no_transcript":
            del left.note["metadata:transcript"]
        case "null_word_times":
            for word in _words(left)[::_NULL_EVERY]:
                word["start"] = word["end"] = None
                del word["score"]
        case "reversed_word_times":
            word = _words(left)[0]
            word["start"], word["end"] = word["end"], word["start"]
        case "partner_longer":
            silence = np.zeros(round(LONGER_BY_S * sample_rate_hz), dtype=np.float32)
            right.samples = np.append(right.samples, silence)
        case "crosstalk":
            left.samples = left.samples + right.samples * np.float32(10 ** (CROSSTALK_DB / 20))
            segments = [*left.note["metadata:transcript"], *map(_echo, right.note["metadata:transcript"])]
            left.note["metadata:transcript"] = sorted(segments, key=lambda segment: float(segment["start"]))
        case "float_wav":
            left.form = "float32"
        case "broken_json":
            left.cut_json = True
        case _:
            raise ValueError(f"no fault named {fault!r}: choose of {', '.join(FAULTS)}")


def header_only_wav(sample_rate_hz: int) -> bytes:
    """A float WAV without samples: 58 bytes, as the corpus has them."""
    fmt = struct.pack("<HHIIHHH", 3, 1, sample_rate_hz, sample_rate_hz * 4, 4, 32, 0)
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt + b"fact" + struct.pack("<II", 4, 0)
    body = b"WAVE" + chunks + b"data" + struct.pack("<I", 0)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _words(side: SideFiles) -> list[dict[str, Any]]:
    return [word for segment in side.note["metadata:transcript"] for word in segment["words"]]


def _echo(segment: dict[str, Any]) -> dict[str, Any]:
    def later(timed: dict[str, Any]) -> dict[str, Any]:
        return {**timed, **{edge: round(timed[edge] + CROSSTALK_DELAY_S, 4) for edge in ("start", "end")}}

    return {**later(segment), "words": [later(word) for word in segment["words"]]}
