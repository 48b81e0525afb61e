"""A server on Flask-SocketIO with events as Freeze-Omni's: hands out two seconds of tone after one second of audio.

Prints its port, then serves until its standard input ends.
"""

import json
import socket
import sys
import threading

import numpy as np
from flask import Flask, request
from flask_socketio import SocketIO, emit

app = Flask(__name__)
server = SocketIO(app, async_mode="threading")
state = {}


@server.on("connect")
def connected():
    state[request.sid] = {"heard": 0, "queue": []}


@server.on("prompt_text")
def prompted(text):
    server.emit("prompt_success", to=request.sid)


@server.on("recording-started")
def started():
    server.emit("stop_tts", to=request.sid)
    server.emit("stop_tts", to=request.sid)


@server.on("audio")
def audio(data):
    mine = state[request.sid]
    if mine["queue"]:
        emit("audio", mine["queue"].pop(0))
    before = mine["heard"]
    mine["heard"] += len(np.frombuffer(bytes(json.loads(data)["audio"]), dtype=np.int16))
    if before < 16_000 <= mine["heard"]:
        tone = (8000 * np.sin(np.arange(24_000) / 10)).astype(np.int16).tobytes()
        mine["queue"] = [tone, tone]


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
threading.Thread(
    target=server.run,
    args=(app,),
    kwargs={"host": "127.0.0.1", "port": port, "allow_unsafe_werkzeug": True},
    daemon=True,
).start()
while True:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            break
sys.stdout.write(f"{port}\n")
sys.stdout.flush()
sys.stdin.read()
