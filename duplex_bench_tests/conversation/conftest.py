"""Factories shared by the tests of points, items and scores."""

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from duplex_bench.conversation.candidates import LabelledSession
from duplex_bench.conversation.generator_plan import typical_timing
from duplex_bench.conversation.label_types import Label, Word, other
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import HumanReply, Item, Reference, Stimulus, Window
from duplex_bench.speech.interfaces import SpokenClip

RATE_HZ = 24_000


@pytest.fixture
def make_item() -> Callable[..., Item]:
    """A pause item (pause at 5.0 to 6.0 s) or a turn-end item (turn end at 5.0 s), without stored audio."""

    def build(kind="pause", item_id="item-1", cluster="session-1", reply="well I went there last week", **attributes):
        end_s = attributes.pop("pause_end_s", 6.0) if kind == "pause" else 5.0
        live = AudioSlice("source", 0, int(8 * RATE_HZ), RATE_HZ, f"content-{item_id}")
        human = None
        if kind == "turn_end" and reply is not None:
            human = HumanReply(reply, attributes.pop("reply_duration_s", 2.0), len(reply.split()))
        window = Window(kind, kind, 5.0, end_s, {"resume_end_s": 8.0} if kind == "pause" else {})
        return Item(
            item_id=item_id,
            track="conversation",
            cluster=cluster,
            condition=kind,
            stimulus=Stimulus(kind, live),
            reference=Reference((window,), human_reply=human, attributes={"ranking": 0.5, **attributes}),
            licence="CC0-1.0",
        )

    return build


@pytest.fixture
def timed() -> Callable[..., list[TimedWord]]:
    """Words from (text, start, end) rows; None for a word without times."""

    def build(*rows):
        return [TimedWord(text, start, end) for text, start, end in rows]

    return build


def _spoken(texts, start_s, end_s):
    edges = np.linspace(start_s, end_s, len(texts) + 1)
    return [Word(text, float(a), float(b)) for text, a, b in zip(texts, edges[:-1], edges[1:], strict=True)]


@pytest.fixture
def conversation() -> Callable[..., SimpleNamespace]:
    """A conversation drawn as stretches of speech, with the labels its author planted.

    Each turn is (speaker, [(start, end, "words ..."), ...]): stretches of one turn, the gaps between them its pauses.
    The gate follows the stretches exactly.
    """

    def build(turns, session_id="session-1", extra_labels=(), extra_words=(), extra_gate=()):
        labels, words, gate = list(extra_labels), {"left": [], "right": []}, {"left": [], "right": []}
        for speaker, stretches in turns:
            labels.append(Label(speaker, "turn", stretches[0][0], stretches[-1][1], "end_of_turn", 1.0))
            for (_, end, _), (start, _, _) in pairwise(stretches):
                labels.append(Label(speaker, "pause", end, start, "same_speaker_resumes", 1.0))
            for start, end, text in stretches:
                words[speaker] += _spoken(text.split(), start, end)
                gate[speaker].append((start, end))
        for speaker, word in extra_words:
            words[speaker].append(word)
        for speaker, span in extra_gate:
            gate[speaker].append(span)
        spans = {speaker: np.array(sorted(rows), dtype=np.float64).reshape(-1, 2) for speaker, rows in gate.items()}
        return LabelledSession(session_id, labels, words, spans)

    return build


@pytest.fixture
def mirrored() -> Callable[[LabelledSession], LabelledSession]:
    """The same conversation with its sides exchanged."""

    def build(session):
        labels = [
            Label(other(one.speaker), one.kind, one.start_s, one.end_s, one.rule, one.confidence)
            for one in session.labels
        ]
        words = {other(side): rows for side, rows in session.words.items()}
        gate = {other(side): rows for side, rows in session.gate_s.items()}
        return LabelledSession(session.session_id, labels, words, gate)

    return build


class NoiseVoices:
    """A text to speech whose clips are noise of the length and word starts of ``typical_timing``: quick and exact."""

    engine_id = "noise/1"
    voices = ("one", "two", "three")

    def speak(self, text: str, voice: str) -> SpokenClip:
        timing = typical_timing(text, voice)
        rng = np.random.default_rng(len(text))
        samples = rng.uniform(-0.2, 0.2, round(timing.duration_s * RATE_HZ)).astype(np.float32)
        return SpokenClip(samples, RATE_HZ, timing.word_starts_s)


@pytest.fixture(scope="session")
def noise_voices() -> NoiseVoices:
    return NoiseVoices()
