"""A small review: two sessions, one with clicks at known times."""

from dataclasses import replace

import numpy as np

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.review.accepted import PointScore
from duplex_bench.review.access import ReviewSettings
from duplex_bench.review.desk import ReviewDesk
from duplex_bench.review.material import SessionEntry, SessionMaterial, WindowEntry
from duplex_bench.review.publish import ReviewFolder
from duplex_bench.review.store import ReviewStore

RATE_HZ = 24000
DURATION_S = 20.0
CLICKS_S = {"left": (2.0, 7.5, 13.25), "right": (4.0, 9.125, 16.5)}
LABELS = (
    Label("left", "turn", 1.0, 6.0, "other_starts", 0.9),
    Label("left", "pause", 2.5, 3.5, "same_speaker_resumes", 0.8),
    Label("right", "backchannel", 3.0, 3.3, "short", 0.7),
    Label("right", "turn", 6.5, 10.0, "other_starts", 0.9),
    Label("left", "turn", 10.5, 11.0, "other_starts", 0.6),
    Label("left", "turn", 12 + 1 / 3, 15.0, "nobody", 0.9),
)
FLAGS = (Flag("left", "turn", 10.5, 11.0, "short_lexical_turn", "a turn with words lasts 500 ms"),)


class Material:
    def __init__(self):
        entry = SessionEntry("V00_S1_I1", DURATION_S, "CC BY-NC 4.0", "en", 1, 2)
        words = {"left": (Word("hello", 1.0, 1.4),), "right": (Word("well", 6.5, 6.8),)}
        self.known = {
            name: SessionMaterial(replace(entry, session_id=name), LABELS, FLAGS, words)
            for name in ("V00_S1_I1", "V00_S2_I2")
        }

    def sessions(self):
        return [one.entry for one in self.known.values()]

    def session(self, session_id):
        return self.known[session_id]

    def audio(self, session_id):
        self.known[session_id]
        samples = np.zeros((round(DURATION_S * RATE_HZ), 2), dtype=np.int16)
        for channel, side in enumerate(("left", "right")):
            for at_s in CLICKS_S[side]:
                start = round(at_s * RATE_HZ)
                samples[start : start + 48, channel] = 20000
        return samples, RATE_HZ

    def scores(self):
        return (
            PointScore("p1", "fast", "pause", "pause_takeover", "rate", 1.0),
            PointScore("p2", "fast", "turn_end", "turn_end_latency", "median", 0.4),
        )

    def windows(self):
        return (
            WindowEntry("p1", "V00_S1_I1", "pause", "left", 1.0, 2.5, 3.5),
            WindowEntry("p2", "V00_S1_I1", "turn_end", "right", 6.5, 10.0, 11.0),
        )


def make_desk(folder, *, busy_timeout_s=0.2, **settings):
    """A review in ``folder``; Ada is its administrator."""
    store = ReviewStore(f"sqlite:///{folder / 'review.sqlite'}", busy_timeout_s=busy_timeout_s)
    chosen = ReviewSettings(administrators=frozenset({"Ada"}), **settings)
    return ReviewDesk(Material(), store, ReviewFolder(folder / "reviews"), chosen)
