import socket
import struct
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.contract import codec, messages
from duplex_bench.contract.types import HistoryPart, OpenRequest, Out, Prompt, SessionStats, Spec, TransportError

pytestmark = pytest.mark.unit

plain = st.dictionaries(
    st.text(max_size=8), st.one_of(st.integers(-1000, 1000), st.text(max_size=20), st.none()), max_size=4
)
arrays = st.lists(st.lists(st.floats(width=32, allow_nan=False), max_size=50), max_size=4)


def _roundtrip(data: bytes):
    left, right = socket.socketpair()
    with left, right:
        writer = threading.Thread(target=lambda: (left.sendall(data), left.shutdown(socket.SHUT_WR)))
        writer.start()
        try:
            return codec.receive(right)
        finally:
            writer.join()


@settings(deadline=None)
@given(plain.filter(lambda header: not {"version", "arrays"} & set(header)), arrays)
def test_a_message_comes_back_as_it_was_sent(header, values):
    sent = [np.array(value, dtype=np.float32) for value in values]
    found, received = _roundtrip(codec.encode(header, sent))
    assert found == header
    assert len(received) == len(sent)
    for before, after in zip(sent, received, strict=True):
        assert after.dtype == np.float32
        assert before.tobytes() == after.tobytes()


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises((codec.CodecError, TransportError)):
        _roundtrip(data)


def test_a_message_cut_short_is_a_lost_connection():
    data = codec.encode({"kind": "step"}, [np.ones(100, dtype=np.float32)])
    with pytest.raises(TransportError, match="closed"):
        _roundtrip(data[:-1])


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        (struct.pack("!4sII", b"HTTP", 2, 0) + b"{}", "not a message"),
        (struct.pack("!4sII", codec.MAGIC, codec.MAX_HEADER_BYTES + 1, 0), "limits"),
        (struct.pack("!4sII", codec.MAGIC, 2, codec.MAX_PAYLOAD_BYTES + 1) + b"{}", "limits"),
        (struct.pack("!4sII", codec.MAGIC, 2, 0) + b"{}", "version"),
        (struct.pack("!4sII", codec.MAGIC, 2, 0) + b"{x", "not JSON"),
        (struct.pack("!4sII", codec.MAGIC, 28, 4) + b'{"version":1,"arrays":[2]}  ' + bytes(4), "add up"),
    ],
)
def test_each_fault_is_named(prefix, message):
    with pytest.raises(codec.CodecError, match=message):
        _roundtrip(prefix)


def test_too_large_a_header_is_refused_before_it_is_sent():
    with pytest.raises(codec.CodecError, match="limits"):
        codec.encode({"text": "x" * codec.MAX_HEADER_BYTES})


def test_two_dimensional_audio_is_refused():
    with pytest.raises(codec.CodecError, match="one-dimensional"):
        codec.encode({}, [np.zeros((2, 3), dtype=np.float32)])


def test_every_type_of_the_contract_survives_the_wire():
    pcm = np.linspace(-1, 1, 7, dtype=np.float32)
    spec = Spec(16000, 24000, 640, 960, True, 1, 2, -1, 240.0, frozenset({"text_prompt", "seedable"}))
    assert messages.unpack_spec(_header(messages.pack_spec(spec))) == spec

    request = OpenRequest(
        5, "abc", Prompt("You are Aria.", "aria"),
        (HistoryPart("both", "", 0.0, 2.0, pcm, pcm[::-1].copy(), (("hello", 0.1, 0.4),)),
         HistoryPart("user", "hi", 0.0, 1.0)),
        {"temperature": 0.7},
    )  # fmt: skip
    data, parts = messages.pack_request(request)
    header, received = _roundtrip(codec.encode(data, parts))
    found = messages.unpack_request(header, received)
    assert (found.seed, found.stimulus_id, found.prompt, found.sampling) == (
        5,
        "abc",
        request.prompt,
        {"temperature": 0.7},
    )
    assert found.history[1] == request.history[1]
    assert found.history[0].words == request.history[0].words
    assert np.array_equal(found.history[0].user_pcm, pcm)
    assert np.array_equal(found.history[0].assistant_pcm, pcm[::-1])

    outs = [Out("audio", 3, pcm=pcm, response_id="r1", model_time_s=0.5, available_s=0.6, cost_ms=2.5),
            Out("state", 3, state="speak"), Out("flush", 4), Out("text", 4, text="words")]  # fmt: skip
    packed, parts = messages.pack_outs(outs)
    header, received = _roundtrip(codec.encode({"outs": packed}, parts))
    back = messages.unpack_outs(header["outs"], received)
    assert np.array_equal(back[0].pcm, pcm)
    assert back[1:] == outs[1:]
    assert (back[0].response_id, back[0].model_time_s, back[0].available_s) == ("r1", 0.5, 0.6)

    stats = SessionStats(3, 1, 0.25, ("slow",), {"note": "x"})
    assert messages.unpack_stats(_header(messages.pack_stats(stats))) == stats


@pytest.mark.parametrize("change", [{"capabilities": None}, {"extra": 1}])
def test_unknown_and_missing_fields_are_refused(change):
    data = messages.pack_spec(Spec(16000, 24000, 640))
    data = {**data, **change} if "extra" in change else {k: v for k, v in data.items() if k != "capabilities"}
    with pytest.raises(codec.CodecError, match="fields"):
        messages.unpack_spec(data)


def test_an_array_that_is_not_there_is_refused():
    packed, parts = messages.pack_outs([Out("audio", 0, pcm=np.zeros(3, dtype=np.float32))])
    with pytest.raises(codec.CodecError, match="names array"):
        messages.unpack_outs(packed, parts[1:])


def _header(data):
    header, _ = _roundtrip(codec.encode(data))
    return header
