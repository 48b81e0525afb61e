"""A spoken sentence through each protocol in memory, the embedded cascade behind it: its answer can be understood."""

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.plan import ProtocolSettings, plan_for
from duplex_bench.rollout.realtime import run
from duplex_bench.speech import engines
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.serving.loopback import create

pytestmark = pytest.mark.engine

PROTOCOLS = ("flm-audio", "freeze-omni", "minicpm-o-realtime", "minicpm-o-demo", "vllm-omni-duplex")


def test_a_sentence_is_heard_and_answered_in_words_over_every_protocol(tmp_path, voice_file):
    store = FolderStore(tmp_path)
    clip = engines.text_to_speech("embedded", store).speak("We went to the lake on Sunday.", "a")
    recogniser = engines.recogniser("whisper-tiny.en", store)
    plan = plan_for("turn_end", ProtocolSettings())
    heard = {}
    for protocol in PROTOCOLS:
        voice = {"voice": voice_file} if protocol == "vllm-omni-duplex" else {}
        system = create({"protocol": protocol, **voice}, store)
        result = run(system, OpenRequest(1, "x"), clip.samples, clip.sample_rate_hz, plan)
        assert result.outcome is Outcome.COMPLETED, f"{protocol}: {result.reason}"
        assert np.isfinite(result.listener).all()
        heard[protocol] = [word.text for word in recogniser.words(result.listener, result.sample_rate_hz)]
        told = "".join(event["text"] for event in result.events if event["kind"] == "text").split()
        if protocol != "freeze-omni":
            assert told == heard[protocol]
    # One voice behind all: whatever the protocol, the same words come through.
    assert len({tuple(words) for words in heard.values()}) == 1
    assert len(heard["flm-audio"]) >= 3
