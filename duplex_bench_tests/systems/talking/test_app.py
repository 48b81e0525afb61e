"""Talking over the page's socket: sound in, sound and events out, by either kind of system; strangers kept out."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from duplex_bench.contract.types import OpenRequest, Out, SessionStats, Spec, refuse_unsupported
from duplex_bench.systems.serving.loopback import create as loopback
from duplex_bench.systems.talking.app import PlayableItem, Played, create_app

pytestmark = pytest.mark.unit

OWN = {"host": "localhost:8790", "origin": "http://localhost:8790"}


class Echo:
    """Says each unit again, at another rate than the page's; reports a flush at every loud one."""

    spec = Spec(16_000, 16_000, 1600)

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.closed = 0

    def new_session(self):
        return self

    def open(self, request):
        refuse_unsupported(request, self.spec)
        self.units = 0

    def step(self, unit):
        self.units += 1
        if self.units == self.fails_at:
            raise RuntimeError("the model is broken")
        loud = [Out("flush", self.units - 1)] if abs(unit).max() > 0.5 else []
        return [*loud, Out("text", self.units - 1, text="hm"), Out("audio", self.units - 1, pcm=unit)]

    def close(self):
        self.closed += 1
        return SessionStats()


def pcm(seconds, level=0.25, rate=24_000):
    return np.full(int(seconds * rate), round(level * 32767), dtype="<i2").tobytes()


def client_of(system, **options):
    return TestClient(create_app(system, "Echo", **options), base_url="http://localhost:8790")


def told(socket, until):
    """Messages up to the event ``until``: (events, {channel: bytes})."""
    events, sound = [], {0: b"", 1: b""}
    while True:
        message = socket.receive()
        if message.get("bytes") is not None:
            sound[message["bytes"][0]] += message["bytes"][1:]
            continue
        events.append(json.loads(message["text"]))
        if events[-1]["kind"] == until:
            return events, sound


def test_what_is_said_comes_back_at_the_rate_of_the_page():
    system = Echo()
    with client_of(system).websocket_connect("/talk", headers=OWN) as socket:
        told(socket, "ready")
        for _ in range(50):
            socket.send_bytes(pcm(0.02))
        heard = b""
        while len(heard) < 2 * 24_000 * 0.7:
            message = socket.receive()
            heard += message["bytes"][1:] if message.get("bytes") else b""
        socket.send_text('{"kind": "stop"}')
        told(socket, "end")
    samples = np.frombuffer(heard, "<i2")
    # Away from the edges of the resampler.
    assert np.abs(samples[2400:14_000] / 32767 - 0.25).max() < 0.01
    assert system.closed == 1


def test_events_are_told():
    with client_of(Echo()).websocket_connect("/talk", headers=OWN) as socket:
        told(socket, "ready")
        socket.send_bytes(pcm(0.3, 0.9))
        events, _ = told(socket, "flush")
        assert {"text", "flush"} <= {event["kind"] for event in [*events, *told(socket, "text")[0]]}


def test_an_item_is_played_to_the_system_and_to_the_page():
    live = np.full(4800, 0.25, dtype=np.float32)
    asked = []

    def played(item_id):
        asked.append(item_id)
        return Played(OpenRequest(1, "x"), live, ("identity_prompt",))

    items = [PlayableItem("one", "conversation", "pause", 0.2)]
    client = client_of(Echo(), items=items, played=played)
    assert client.get("/about").json()["items"][0]["item_id"] == "one"
    with client.websocket_connect("/talk?item=one", headers=OWN) as socket:
        ready, _ = told(socket, "ready")
        _, sound = told(socket, "end")
    assert asked == ["one"]
    assert ready[0]["omitted"] == ["identity_prompt"]
    assert len(sound[1]) == 2 * len(live)
    assert len(sound[0]) > 0


def test_an_item_that_is_not_there_is_told():
    def played(item_id):
        raise KeyError(item_id)

    with client_of(Echo(), played=played).websocket_connect("/talk?item=none", headers=OWN) as socket:
        assert "none" in told(socket, "error")[0][-1]["text"]


def test_an_error_of_the_system_is_told_and_the_next_talk_begins_anew():
    system = Echo(fails_at=2)
    client = client_of(system)
    for _ in range(2):
        with client.websocket_connect("/talk", headers=OWN) as socket:
            told(socket, "ready")
            socket.send_bytes(pcm(0.5))
            assert "the model is broken" in told(socket, "error")[0][-1]["text"]
            # The session is closed before the connection is: who leaves earlier may see it open still.
            while socket.receive()["type"] != "websocket.close":
                pass
    assert system.closed == 2


def test_half_a_sample_is_refused():
    with client_of(Echo()).websocket_connect("/talk", headers=OWN) as socket:
        told(socket, "ready")
        socket.send_bytes(b"\x00\x01\x02")
        assert "whole PCM16" in told(socket, "error")[0][-1]["text"]


def test_one_conversation_at_a_time():
    client = client_of(Echo())
    with client, client.websocket_connect("/talk", headers=OWN) as first:
        told(first, "ready")
        with client.websocket_connect("/talk", headers=OWN) as second:
            assert "already" in told(second, "error")[0][-1]["text"]


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:9999", "null"])
def test_pages_of_others_are_kept_out(origin):
    with (
        pytest.raises(WebSocketDisconnect),
        client_of(Echo()).websocket_connect("/talk", headers={**OWN, "origin": origin}) as socket,
    ):
        socket.receive()


def test_other_names_of_this_machine_are_kept_out():
    assert client_of(Echo()).get("/about", headers={"host": "evil.example"}).status_code == 400


def test_a_realtime_system_answers_a_turn():
    system = loopback({"protocol": "openai-realtime", "voice_behind": "tone", "silence_ms": 200, "think_s": 0.05})
    with client_of(system).websocket_connect("/talk", headers=OWN) as socket:
        told(socket, "ready")
        for level in [0.25] * 20 + [0.0] * 30:
            socket.send_bytes(pcm(0.02, level))
        message = socket.receive()
        while message.get("bytes") is None:
            message = socket.receive()
        assert np.abs(np.frombuffer(message["bytes"][1:], "<i2")).max() > 1000
        socket.send_text('{"kind": "stop"}')
        told(socket, "end")
