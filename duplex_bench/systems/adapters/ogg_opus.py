"""Ogg-Opus as a stream, both ways: what the servers of Moshi's kind speak. Nothing is trimmed, so that no time is lost.

Pages after RFC 3533, headers after RFC 7845. A decoder that obeys the declared pre-skip would drop the start of a live
stream; like the vendors' library we keep every sample, which leaves the codec's own delay of 6.5 ms in each direction.
"""

import struct
from functools import cache
from typing import Any, Final

import numpy as np

from duplex_bench.contract.types import TransportError
from duplex_bench.rollout.playback import Samples

# One packet; the vendors' library makes packets of the same length.
PACKET_S: Final = 0.04
CODEC_DELAY_S: Final = 0.0065
_CLOCK_HZ: Final = 48_000
_PRE_SKIP: Final = round(CODEC_DELAY_S * _CLOCK_HZ)
_MAGIC: Final = b"OggS"
_HEADER: Final = struct.Struct("<4sBBqIIIB")
_FIRST, _LAST, _CONTINUED = 2, 4, 1
# A page holds at most 255 segments of 255 bytes: more than this unread is no page.
_MOST_UNREAD: Final = _HEADER.size + 255 + 255 * 255


class OggOpusWriter:
    """Float audio to bytes of one logical stream; the first bytes hold the two header pages.

    Args:
        rate_hz: 8, 12, 16, 24 or 48 kHz.
        serial: Number of the logical stream.
    """

    def __init__(self, rate_hz: int, serial: int = 1) -> None:
        import av

        self._packet = round(PACKET_S * rate_hz)
        self._ticks = round(PACKET_S * _CLOCK_HZ)
        self._rate_hz, self._serial = rate_hz, serial
        self._rest = np.zeros(0, dtype=np.float32)
        self._pages, self._granule = 0, 0
        self._encoder: Any = av.CodecContext.create("libopus", "w")
        self._encoder.sample_rate = rate_hz
        self._encoder.layout, self._encoder.format = "mono", "flt"
        self._encoder.options = {"frame_duration": f"{PACKET_S * 1000:.0f}", "application": "voip"}

    def append(self, pcm: Samples) -> bytes:
        """Bytes to send for ``pcm`` (n,) float32; samples short of a packet wait for the next call."""
        import av

        made = b"" if self._pages else self._headers()
        self._rest = np.concatenate([self._rest, pcm])
        while len(self._rest) >= self._packet:
            frame: Any = av.AudioFrame.from_ndarray(
                self._rest[None, : self._packet].copy(), format="flt", layout="mono"
            )
            frame.sample_rate, frame.pts = self._rate_hz, None
            self._rest = self._rest[self._packet :]
            for packet in self._encoder.encode(frame):
                self._granule += self._ticks
                made += self._page(bytes(packet), self._granule)
        return made

    def _headers(self) -> bytes:
        head = struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, _PRE_SKIP, self._rate_hz, 0, 0)
        tags = b"OpusTags" + struct.pack("<I", 12) + b"duplex_bench" + struct.pack("<I", 0)
        return self._page(head, 0, _FIRST) + self._page(tags, 0)

    def _page(self, packet: bytes, granule: int, flags: int = 0) -> bytes:
        lacing = bytes([255] * (len(packet) // 255) + [len(packet) % 255])
        header = _HEADER.pack(_MAGIC, 0, flags, granule, self._serial, self._pages, 0, len(lacing))
        self._pages += 1
        page = header + lacing + packet
        return page[:22] + struct.pack("<I", _crc(page)) + page[26:]


class OggOpusReader:
    """Bytes of one logical stream, cut anywhere, to float audio at ``rate_hz``."""

    def __init__(self, rate_hz: int) -> None:
        import av
        import soxr

        self._unread = b""
        self._packet = b""
        self._headers = 0
        self._decoder: Any = av.CodecContext.create("opus", "r")
        self._decoder.sample_rate, self._decoder.layout = _CLOCK_HZ, "mono"
        self._resampler: Any = (
            None if rate_hz == _CLOCK_HZ else soxr.ResampleStream(_CLOCK_HZ, rate_hz, 1, dtype="float32", quality="MQ")
        )

    def append(self, data: bytes) -> Samples:
        """What can be heard of the bytes so far, float32 (n,), n may be 0.

        Raises:
            TransportError: It is no Ogg-Opus stream.
        """
        self._unread += data
        heard = [self._decoded(packet) for packet in self._packets()]
        return np.concatenate(heard) if heard else np.zeros(0, dtype=np.float32)

    def _packets(self) -> list[bytes]:
        packets: list[bytes] = []
        while len(self._unread) >= _HEADER.size:
            magic, version, flags, _, _, _, told, segments = _HEADER.unpack_from(self._unread)
            if magic != _MAGIC or version != 0:
                raise TransportError(f"the server sent audio that is no Ogg stream: {self._unread[:8]!r}")
            body = _HEADER.size + segments
            lacing = self._unread[_HEADER.size : body]
            end = body + sum(lacing)
            if len(lacing) < segments or len(self._unread) < end:
                break
            page, self._unread = self._unread[:end], self._unread[end:]
            if _crc(page[:22] + b"\0\0\0\0" + page[26:]) != told:
                raise TransportError("the server sent an Ogg page with a wrong checksum")
            if not flags & _CONTINUED:
                self._packet = b""
            packets += self._of_page(lacing, page[body:])
        if len(self._unread) > _MOST_UNREAD:
            raise TransportError("the server sent audio that is no Ogg stream: a page does not end")
        return packets

    def _of_page(self, lacing: bytes, body: bytes) -> list[bytes]:
        packets, at = [], 0
        for length in lacing:
            self._packet += body[at : at + length]
            at += length
            if length < 255:
                packets.append(self._packet)
                self._packet = b""
        return packets

    def _decoded(self, packet: bytes) -> Samples:
        import av

        if self._headers < 2:
            wanted = (b"OpusHead", b"OpusTags")[self._headers]
            if not packet.startswith(wanted):
                raise TransportError(f"the server's stream lacks its {wanted.decode()} page: {packet[:8]!r}")
            self._headers += 1
            return np.zeros(0, dtype=np.float32)
        try:
            frames = [np.atleast_2d(frame.to_ndarray())[0] for frame in self._decoder.decode(av.Packet(packet))]
        except (av.FFmpegError, ValueError) as error:
            raise TransportError(f"the server sent a packet that is no Opus: {error}") from None
        pcm = np.concatenate(frames).astype(np.float32) if frames else np.zeros(0, dtype=np.float32)
        if self._resampler is not None:
            pcm = np.asarray(self._resampler.resample_chunk(pcm), dtype=np.float32)
        return np.clip(pcm, -1.0, 1.0)


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = ((value << 1) ^ 0x04C11DB7 if value & 0x80000000 else value << 1) & 0xFFFFFFFF
        table.append(value)
    return tuple(table)


def _crc(page: bytes) -> int:
    """The checksum of RFC 3533: polynomial 0x04C11DB7, no reflection, started at zero."""
    table, value = _crc_table(), 0
    for byte in page:
        value = ((value << 8) & 0xFFFFFFFF) ^ table[(value >> 24) ^ byte]
    return value
