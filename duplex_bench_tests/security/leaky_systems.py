"""Systems that say their host's key: when they are made, and while they speak."""

import os

from duplex_bench.systems.adapters.lockstep_track import TRACK_SPEC, TrackSession


def at_start(settings):
    raise RuntimeError(f"cannot log in with {os.environ['OPENAI_API_KEY']}")


class InStep:
    spec = TRACK_SPEC

    def new_session(self):
        def broken(request, unit):
            raise RuntimeError(f"the session of {os.environ['OPENAI_API_KEY']} ended")

        return TrackSession(broken)


def in_step(settings):
    return InStep()
