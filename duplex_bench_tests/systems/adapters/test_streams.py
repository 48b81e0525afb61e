"""Ogg-Opus and Socket.IO as streams: cut anywhere, whole again; and what is neither is refused."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.contract.types import TransportError
from duplex_bench.systems.adapters.drift import Drift
from duplex_bench.systems.adapters.ogg_opus import CODEC_DELAY_S, OggOpusReader, OggOpusWriter
from duplex_bench.systems.adapters.socketio import Event, PacketReader, encoded_event

pytestmark = pytest.mark.unit

RATE = 24_000


@pytest.fixture(scope="module")
def chirp():
    """Two seconds with a rising tone inside."""
    time_s = np.arange(RATE) / RATE
    audio = np.zeros(2 * RATE, dtype=np.float32)
    audio[RATE // 2 : RATE // 2 + RATE] = 0.3 * np.sin(2 * np.pi * (200 + 200 * time_s) * time_s) * np.hanning(RATE)
    return audio


def _written(audio, step=1920):
    writer = OggOpusWriter(RATE)
    return b"".join(writer.append(audio[at : at + step]) for at in range(0, len(audio), step))


@pytest.mark.parametrize("rate", [24_000, 48_000])
def test_what_is_written_is_read_at_its_time_whatever_the_cuts(chirp, rate):
    data = _written(chirp, 480)
    reader = OggOpusReader(rate)
    heard = np.concatenate([reader.append(data[at : at + 77]) for at in range(0, len(data), 77)])
    at_24k = heard[:: rate // RATE].astype(float)
    lag = np.argmax(np.correlate(at_24k, chirp.astype(float), "full")) - (len(chirp) - 1)
    assert lag / RATE == pytest.approx(CODEC_DELAY_S, abs=0.0005)
    # Nothing is trimmed; the resampler keeps the last few milliseconds back.
    assert len(heard) / rate == pytest.approx(2.0, abs=0.03)
    assert np.abs(at_24k[lag : lag + len(chirp)] - chirp[: len(at_24k) - lag]).max() < 0.05


def test_the_first_bytes_hold_the_headers_and_a_frame_gives_bytes_at_once(chirp):
    first = OggOpusWriter(RATE).append(chirp[:1920])
    assert first.startswith(b"OggS")
    assert first.count(b"OggS") == 4
    assert b"OpusHead" in first[:60]
    assert OggOpusWriter(RATE).append(chirp[:100]).count(b"OggS") == 2


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: b"RIFF" + data[4:], "no Ogg stream"),
        (lambda data: data[:60] + bytes([data[60] ^ 255]) + data[61:], "checksum"),
        (lambda data: data[data.index(b"OggS", 4) :], "OpusHead"),
        (lambda data: b"<html>" * 10, "no Ogg stream"),
    ],
)
def test_what_is_no_stream_is_refused(chirp, spoil, words):
    with pytest.raises(TransportError, match=words):
        OggOpusReader(RATE).append(spoil(_written(chirp[:4800])))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_noise_is_a_transport_error_or_nothing(data):
    with contextlib.suppress(TransportError):
        assert len(OggOpusReader(RATE).append(data)) == 0


arguments = st.lists(st.one_of(st.text(max_size=20), st.integers(-9, 9), st.none(), st.binary(max_size=20)), max_size=4)


@given(st.text(min_size=1, max_size=10), arguments)
def test_events_come_back_as_they_were(name, given_arguments):
    reader = PacketReader()
    event = Event(name, tuple(given_arguments))
    found = [reader.take(message) for message in encoded_event(event)]
    assert found[-1] == event
    assert all(one is None for one in found[:-1])


@given(st.one_of(st.text(max_size=30), st.binary(max_size=30)))
def test_any_message_is_a_packet_or_a_transport_error(message):
    with contextlib.suppress(TransportError):
        PacketReader().take(message)


def test_a_binary_part_that_is_not_there_is_refused():
    reader = PacketReader()
    assert reader.take('451-["audio",{"_placeholder":true,"num":3}]') is None
    with pytest.raises(TransportError, match="part 3 of 1"):
        reader.take(b"x")
    reader = PacketReader()
    reader.take('451-["audio",{"_placeholder":true,"num":0}]')
    with pytest.raises(TransportError, match="binary part"):
        reader.take("2")


def test_a_server_that_falls_behind_is_found_out_and_a_late_one_is_not():
    steady = Drift(limit_s=1.0)
    for _ in range(200):
        steady.sent(0.08)
        if steady.sent_s > 2.0:
            steady.received(0.08)
    assert steady.owed_s == pytest.approx(2.0, abs=0.09)
    slow = Drift(limit_s=1.0)

    def fall_behind():
        for _ in range(200):
            slow.sent(0.08)
            slow.received(0.06)

    with pytest.raises(TransportError, match="slower than real time"):
        fall_behind()
    assert slow.sent_s == pytest.approx(4.1, abs=0.2)
