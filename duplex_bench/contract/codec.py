"""Messages over a socket: a length-prefixed JSON header, then raw float32 arrays. Nothing is ever unpickled.

Layout: 4 bytes ``DXB1``, header length and payload length as unsigned 32-bit big-endian, the header (UTF-8 JSON, with
``version`` and the lengths of the arrays), the arrays one after another as little-endian float32.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.contract.returned import plain_number
from duplex_bench.contract.types import TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

VERSION = 1
MAGIC = b"DXB1"
MAX_HEADER_BYTES = 8 << 20
MAX_PAYLOAD_BYTES = 512 << 20
_PREFIX = struct.Struct("!4sII")
_FLOAT = np.dtype("<f4")


class CodecError(ValueError):
    """What came over the socket is not a message of this version, or is larger than allowed."""


def encode(header: dict[str, Any], arrays: Sequence[npt.NDArray[np.float32]] = ()) -> bytes:
    """One message as bytes.

    Raises:
        CodecError: An array is not 1-D, or the message is larger than the limits.
    """
    flat = [np.ascontiguousarray(array, dtype=_FLOAT) for array in arrays]
    if any(array.ndim != 1 for array in flat):
        raise CodecError("arrays in a message are one-dimensional")
    # NaN is not JSON; in a header it would be a fault of the caller.
    whole = {**header, "version": VERSION, "arrays": [len(array) for array in flat]}
    text = json.dumps(whole, allow_nan=False, default=plain_number)
    head = text.encode()
    payload = b"".join(array.tobytes() for array in flat)
    _check_sizes(len(head), len(payload))
    return _PREFIX.pack(MAGIC, len(head), len(payload)) + head + payload


def send(connection: socket.socket, header: dict[str, Any], arrays: Sequence[npt.NDArray[np.float32]] = ()) -> None:
    """Encode and send one message whole."""
    connection.sendall(encode(header, arrays))


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[npt.NDArray[np.float32]]]:
    """Read one message.

    Returns:
        The header, and float32 arrays (n,) that own their memory.

    Raises:
        TransportError: The other side closed, before or inside a message.
        CodecError: Not a message, of another version, too large, or lengths that do not add up.
    """
    magic, header_length, payload_length = _PREFIX.unpack(_read(connection, _PREFIX.size))
    if magic != MAGIC:
        raise CodecError("not a message of this contract: is another program behind the socket?")
    _check_sizes(header_length, payload_length)
    try:
        header = json.loads(_read(connection, header_length))
    except ValueError as error:
        raise CodecError(f"the header is not JSON: {error}") from error
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise CodecError(f"contract version {VERSION} is spoken here: both sides need the same duplex_bench.contract")
    lengths = header.pop("arrays", None)
    del header["version"]
    if not isinstance(lengths, list) or not all(isinstance(n, int) and n >= 0 for n in lengths):
        raise CodecError("the header gives no array lengths")
    if sum(lengths) * _FLOAT.itemsize != payload_length:
        raise CodecError("the array lengths do not add up to the payload")
    samples = np.frombuffer(_read(connection, payload_length), dtype=_FLOAT).astype(np.float32)
    ends = np.cumsum(lengths)
    return header, [samples[end - length : end].copy() for end, length in zip(ends, lengths, strict=True)]


def _check_sizes(header_length: int, payload_length: int) -> None:
    if header_length > MAX_HEADER_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        raise CodecError(
            f"message of {header_length} + {payload_length} bytes is over the limits "
            f"({MAX_HEADER_BYTES} + {MAX_PAYLOAD_BYTES}): give back less at a time"
        )


def _read(connection: socket.socket, n_bytes: int) -> bytearray:
    data = bytearray(n_bytes)
    view = memoryview(data)
    done = 0
    while done < n_bytes:
        got = connection.recv_into(view[done:])
        if got == 0:
            raise TransportError("the other side closed the connection")
        done += got
    return data
