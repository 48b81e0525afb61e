"""A measurement's key is the digest of all it depends on, however it is put together: finished work stays found."""

import numpy as np
import pytest

from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.tables import JUDGEMENTS
from duplex_bench.records.transcripts import Transcript
from duplex_bench.stages import evaluation, scoring
from duplex_bench.stages.measured import Measured
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import frame_of

pytestmark = pytest.mark.unit


def measured(item, number, speech):
    words = (TimedWord("fifteén", 6.2, 6.5),) if speech else ()
    intervals = np.array([[6.1, 7.0]]) if speech else np.zeros((0, 2))
    # Speech would need a verdict: here it stands in a rollout that is not scored.
    outcome = Outcome.TRANSPORT_ERROR if speech else Outcome.COMPLETED
    return Measured(item, f"rollout-{number}", outcome, "", 12.0 + number, intervals, intervals,
                    Transcript(f"rollout-{number}", words, "none"))  # fmt: skip


def test_the_key_is_the_digest_of_everything(small_workspace, tmp_path):
    workspace = small_workspace(tmp_path)
    labels = {"turn_type": "N1", "addressee": "B", "speaker": "A", "utterance_id": "u1", "text": 'a "quoted" line'}
    window = Window("u1", "silence", 5.0, 8.0, {"t_start_s": 3.0, "t_end_s": 4.0}, labels)
    stimulus = Stimulus("multiparty", AudioSlice("s", 0, 24_000, 24_000, "c"))
    items = [Item(f"item-{n}", "multiparty", "c1", "explicit", stimulus, Reference((window,)), "test") for n in (1, 2)]
    ones = [measured(item, number, speech) for item in items for number, speech in ((0, True), (1, False))]
    _, done = evaluation.scored(workspace, "multiparty", ones, frame_of([], JUDGEMENTS), "any")
    wanted = [
        digest_value(
            "measurements", scoring.versions("multiparty"), scoring.settings("multiparty", workspace.profile),
            one.item.item_id, one.item.condition, one.item.reference, one.outcome, one.reason, one.timeline_s,
            one.gate_s.tolist(), one.vad_s.tolist(), one.transcript.words, {},
        )
        for one in ones
    ]  # fmt: skip
    assert list(done.payloads) == wanted
    assert len(set(wanted)) == len(ones)
