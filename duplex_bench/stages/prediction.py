"""What a silence endpointer must do at pauses of known length, beside what it did: a check of the whole instrument.

A cascade that answers ``silence_s`` after speech ends and needs ``latency_s`` to begin takes a pause if and only if
the pause is longer than the two together; so does a server of a hosted protocol in memory. Labels, streaming,
endpointer, recognition and scoring all lie between the prediction and the observation.
"""

from collections.abc import Sequence

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.items import items_of
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.serving.delivery import Manner

# Between these distances of a pause's end from the predicted start both outcomes are right: the gate opens up to
# 20 ms early, and a cascade notices a resumed speaker only after 60 ms.
MARGIN_S = 0.08
METRIC = "pause_takeover"
HOSTED_IN_MEMORY = frozenset({"openai-realtime", "xai-realtime", "gemini-live"})


def predicted_start_s(card: SystemCard) -> float | None:
    """When speech begins after a silence starts, by the card alone; None where a model decides, or a vendor."""
    settings = card.settings
    if settings.get("endpointer") == "silence":
        return float(str(settings["silence_s"])) + float(str(settings["latency_s"]))
    if settings.get("protocol") in HOSTED_IN_MEMORY and settings.get("detector", "server_vad") == "server_vad":
        # On virtual time recognition takes no time, and nothing but the silence and the declared thinking is left.
        return float(str(settings["silence_ms"])) / 1000 + float(str(settings.get("think_s", Manner().think_s)))
    return None


def pause_prediction(tables: TrackTables, cards: Sequence[SystemCard]) -> Table | None:
    """One row a system with a silence endpointer: takeovers predicted from planted pauses, and observed.

    Returns:
        Columns system, start_after_s, n, predicted, observed, agree, within_margin, disagree, median_start_s
        (observed takeovers); None without such systems or pauses.
    """
    pauses = {
        item_id: float(item.reference.attributes["pause_s"])
        for item_id, item in items_of(tables.items).items()
        if item.condition == "pause"
    }
    rows = []
    for card in sorted(cards, key=lambda card: card.name):
        start_s = predicted_start_s(card)
        mine = tables.measurements.filter((pl.col("system") == card.name) & pl.col("value").is_not_null())
        if start_s is None or not pauses or not mine.height:
            continue
        took = dict(mine.filter(pl.col("metric") == METRIC).select("item_id", "value").iter_rows())
        latency = mine.filter(pl.col("metric") == "takeover_latency")["value"].median()
        known = {item_id: value == 1.0 for item_id, value in took.items() if item_id in pauses}
        close = {item_id for item_id in known if abs(pauses[item_id] - start_s) <= MARGIN_S}
        right = {item_id for item_id in known if known[item_id] == (pauses[item_id] > start_s)}
        rows.append(
            {
                "system": card.name,
                "start_after_s": start_s,
                "n": len(known),
                "predicted": sum(pauses[item_id] > start_s for item_id in known),
                "observed": sum(known.values()),
                "agree": len(right),
                "within_margin": len(close - right),
                "disagree": len(set(known) - right - close),
                "median_start_s": latency,
            }
        )
    if not rows:
        return None
    return Table(
        "conversation-pause-prediction",
        "Conversation: takeovers predicted from planted pauses",
        f"A silence endpointer with a declared latency must take exactly the pauses longer than the two together. "
        f"Pauses within {1000 * MARGIN_S:.0f} ms of that length may go either way. A reply that the resumed speaker "
        "cuts before its first word, or one to an earlier silence of the turn, shows as disagreement. The difference "
        "between two endpointers, paired, with its interval, n and the smallest detectable difference, is in the table "
        "of pairs.",
        pl.DataFrame(rows),
    )
