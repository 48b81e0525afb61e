"""A recogniser drops what a short loop repeats, so "always speaks" came out wordless at 5 of 18 pauses.

The policy looped one sentence of 4 s. Whisper wrote it down once and skipped its repetitions; speech without words is
no takeover, and the reference policy missed what design 15.7 says it must score. It now tells a story of 45 s.
"""

import numpy as np
import pytest

from duplex_bench.speech import engines
from duplex_bench.systems.adapters import always_speak
from duplex_bench.systems.adapters.lockstep_track import RATE_HZ

pytestmark = pytest.mark.engine

SHORTEST_PAUSE_S = 0.6
LISTENED_S = 25


def test_every_stretch_as_long_as_a_pause_has_a_word():
    loop = always_speak.create({}).loop
    track = loop[: LISTENED_S * RATE_HZ]
    words = engines.recogniser("whisper-base").words(track, RATE_HZ)
    edges = [0.0]
    for word in words:
        if word.start_s is not None and word.end_s is not None:
            edges += [word.start_s, word.end_s]
    # The word that the end of the track cuts through may be lost.
    assert edges[-1] > LISTENED_S - 1.5
    silences = np.array(edges[3::2]) - np.array(edges[2:-1:2])
    assert len(words) > 2 * LISTENED_S
    assert edges[1] < SHORTEST_PAUSE_S
    assert silences.max() < SHORTEST_PAUSE_S
