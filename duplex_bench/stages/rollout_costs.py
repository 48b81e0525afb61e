"""What sessions with a vendor may cost and did cost: set aside before the first, noted after the last."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from duplex_bench.records.rollouts import RolloutRecord
from duplex_bench.rollout.record import read_events
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.serial import from_json
from duplex_bench.systems.adapters.prices import usd_per_minute, usd_per_text_item
from duplex_bench.systems.card import SystemCard
from duplex_bench.textmodels.spend import SpendLedger, SpentCall

Note = Callable[[Mapping[str, str]], None]


@contextmanager
def paid_sessions(
    workspace: Workspace, card: SystemCard, ledger: ItemLedger, waiting_s: float, text_items: int = 0
) -> Iterator[Note]:
    """Hold the budget of a profile while a vendor's sessions run; a card without a provider costs nothing.

    Args:
        workspace: Its profile's ``rollout.budget_usd`` limits what all runs on this data folder may spend.
        card: The system.
        ledger: Where its finished runs stand: what is new in it at the end was paid for, however the runs ended.
        waiting_s: Seconds of audio that are about to be streamed.
        text_items: Turns of text that are about to be handed over as history.

    Yields:
        A function for what was computed now (payloads by key): also failed sessions cost.

    Raises:
        BudgetError: Up to the upper end of the price range would pass the budget, or the price is not known.
    """
    computed: dict[str, str] = {}
    if not card.provider:
        yield computed.update
        return
    rates = usd_per_minute(card.model_id)
    most = None if rates is None else waiting_s / 60 * rates[1] + text_items * usd_per_text_item(card.model_id)
    before = set(ledger.finished())
    with SpendLedger(workspace.store, workspace.profile.rollout.budget_usd) as spend:
        reserved = spend.reserve(most, f"{card.name}: {waiting_s / 60:.1f} minutes of sessions")
        try:
            yield computed.update
        finally:
            finished = ledger.finished()
            computed.update({key: finished[key].payload for key in set(finished) - before})
            for key in sorted(computed):
                spend.settle(None, _spent(workspace, card, key, computed[key]))
            spend.release(reserved)


def _spent(workspace: Workspace, card: SystemCard, key: str, payload: str) -> SpentCall:
    record = from_json(RolloutRecord, payload)
    events = [] if record.events is None else read_events(record.events, BlobStore(workspace.store))
    costs = [cost for event in events if event["kind"] in ("close", "earlier_attempt")
             for cost in [event.get("cost_usd")]]  # fmt: skip
    usage: dict[str, float] = next((event.get("usage", {}) for event in events if event["kind"] == "close"), {})
    rates = usd_per_minute(card.model_id)
    # A session that does not say what it used may have cost the upper end of the range.
    most = None if rates is None else record.timeline_s / 60 * rates[1]
    known = [most if cost is None else cost for cost in costs]
    return SpentCall(
        role="rollout",
        subject=card.name,
        model=card.model_id,
        call=key,
        input_tokens=round(sum(usage.get(name, 0.0) for name in ("text_in", "audio_in", "cached_in"))),
        output_tokens=round(sum(usage.get(name, 0.0) for name in ("text_out", "audio_out"))),
        usd=None if None in known else sum(cost for cost in known if cost is not None),
        reserved_usd=None,
    )
