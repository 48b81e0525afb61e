"""A silent system that writes down what it is opened for, and can be held at one session until it is let go."""

import os
from pathlib import Path

from duplex_bench.systems.adapters.lockstep_track import TRACK_SPEC, TrackSession


def _nothing(_request, _unit):
    return None


class _Session(TrackSession):
    def __init__(self, folder):
        super().__init__(_nothing)
        self._folder = folder

    def open(self, request):
        log = self._folder / "opened.txt"
        with log.open("a") as lines:
            lines.write(f"{request.stimulus_id} {os.getpid()}\n")
        hold = self._folder / "hold-at.txt"
        if hold.exists() and len(log.read_text().splitlines()) == int(hold.read_text()):
            (self._folder / "held").write_text("")
            # Opening a pipe waits until someone opens its other end.
            (self._folder / "let-go").read_text()
        super().open(request)


class HoldingSystem:
    spec = TRACK_SPEC

    def __init__(self, folder):
        self._folder = folder

    def new_session(self):
        return _Session(self._folder)


def create(settings):
    return HoldingSystem(Path(settings["folder"]))
