"""What bounds the scores without running a system: the person, the shuffled reply, the reply through the recogniser.

P2 section 4.3. Each function gives the measurements of one reference row, on the same items as every system.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from duplex_bench.conversation.cards import PAUSE_METRICS, PAUSE_SHARES, TURN_END_METRICS, card
from duplex_bench.conversation.scoring import Details, similarity_scores
from duplex_bench.conversation.similarity import Vectors
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import HumanReply, Item
from duplex_bench.records.score import Measurement, Score
from duplex_bench.storage.digests import draw_order

_SIMILARITY = ("token_f1", "cosine")


def floor_pairs(items: Sequence[Item], seed: int = 0) -> dict[str, str | None]:
    """For each turn-end item the item of the same conversation whose human reply is its floor.

    The items of a conversation stand in a ring by H(seed, id), each paired with the next: an item that comes or goes
    changes one pair. None where the conversation has no other.
    """
    rings: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if _reply(item) is not None:
            rings[item.cluster].append(item.item_id)
    pairs: dict[str, str | None] = {}
    for cluster in sorted(rings):
        ring = draw_order(seed, rings[cluster])
        for place, item_id in enumerate(ring):
            pairs[item_id] = ring[(place + 1) % len(ring)] if len(ring) > 1 else None
    return pairs


def floor_measurements(items: Sequence[Item], vectors: Vectors | None, seed: int = 0) -> list[Measurement]:
    """Similarity of a different human reply of the same conversation to the right one."""
    replies = {item.item_id: reply for item in items if (reply := _reply(item)) is not None}
    pairs = floor_pairs(items, seed)
    found: list[Measurement] = []
    for item in items:
        if item.item_id not in pairs:
            continue
        partner = pairs[item.item_id]
        if partner is None:
            scores = dict.fromkeys(_SIMILARITY, Score(None, "no other turn end in the conversation"))
        else:
            scores = similarity_scores(replies[partner].text, replies[item.item_id].text, vectors)
        found += _measurements(item, scores, {"bound": "floor", "partner": partner})
    return found


def ceiling_measurements(
    items: Sequence[Item], heard: Mapping[str, Sequence[TimedWord]], vectors: Vectors | None
) -> list[Measurement]:
    """Similarity of the human reply to itself: its recognised words (``heard``, by item id) against its label."""
    found: list[Measurement] = []
    for item in items:
        reply = _reply(item)
        if reply is None:
            continue
        words = heard.get(item.item_id)
        text = " ".join(word.text for word in words or ())
        if words is None:
            scores = dict.fromkeys(_SIMILARITY, Score(None, "the human reply was not transcribed"))
        elif not text:
            scores = dict.fromkeys(_SIMILARITY, Score(None, "the recogniser found no words in the human reply"))
        else:
            scores = similarity_scores(text, reply.text, vectors)
        found += _measurements(item, scores, {"bound": "ceiling", "heard": text})
    return found


def human_measurements(items: Sequence[Item]) -> list[Measurement]:
    """The person, by construction of the point set: held every pause, took every turn end, ratios and similarity 1."""
    found: list[Measurement] = []
    for item in items:
        if item.condition == "pause":
            scores = {metric: Score(float(metric == "pause_silent")) for metric in PAUSE_SHARES}
            metrics: Sequence[str] = PAUSE_METRICS
        elif item.condition == "turn_end":
            ones = ("response_rate", "duration_ratio", "word_ratio", "token_f1", "cosine")
            scores = dict.fromkeys(ones, Score(1.0)) | dict.fromkeys(("no_words", "at_cap"), Score(0.0))
            delay_s = item.reference.attributes.get("reply_delay_s")
            if delay_s is not None:
                scores["turn_end_latency"] = Score(float(delay_s))
            metrics = TURN_END_METRICS
        else:
            # What a person would have answered to a question that nobody asked is not known.
            continue
        undefined = Score(None, "not defined for the person")
        found += _measurements(item, {metric: scores.get(metric, undefined) for metric in metrics}, {"bound": "human"})
    return found


def _reply(item: Item) -> HumanReply | None:
    reply = item.reference.human_reply
    return reply if reply is not None and reply.text else None


def _measurements(item: Item, scores: Mapping[str, Score], details: Details) -> list[Measurement]:
    window = item.reference.windows[0]
    return [
        Measurement(item.item_id, window.window_id, metric, card(metric).version, score, window.start_s, dict(details))
        for metric, score in scores.items()
    ]
