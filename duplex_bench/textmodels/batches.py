"""Questions asked ahead through a batch endpoint: their answers are in the cache when they are asked for.

What is sent is written down before it is sent, and its batch's id after: a run that was killed finds its batch again
and does not pay twice. A batch that is not done in time stays open, and the next run collects it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import tenacity

from duplex_bench.storage.digests import canonical_json, digest_value
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.textmodels.access import base_url
from duplex_bench.textmodels.batch_api import BatchApi, BatchItem, BatchLook, batch_api
from duplex_bench.textmodels.errors import RequestRefusedError, TransientError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prices import batch_factor
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import ModelSettings, TextModelSettingsError
from duplex_bench.textmodels.wire import TextRequest, WireRequest

_FOLDER: Final = "textmodels/batches"
_GONE: Final = 404
# Clocks of two machines, when a batch without a name is looked for by its time.
_CLOCKS: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Whether and how questions go through the vendor's batch endpoint.

    Attributes:
        enabled: False asks one by one.
        poll_s: seconds between two looks at a batch.
        most_wait_s: how long a run waits for its batches; then it ends, and the next run collects them.
        most_requests: requests of one batch (vendors take 10,000 and more, Gemini 20 MB a batch).
    """

    enabled: bool = False
    poll_s: float = 30.0
    most_wait_s: float = 24 * 3600.0
    most_requests: int = 2000

    def __post_init__(self) -> None:
        if self.poll_s < 0 or self.most_wait_s < 0 or self.most_requests < 1:
            raise TextModelSettingsError("judge.batch: poll_s and most_wait_s must not be negative, most_requests >= 1")


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch as it is written down. ``keys`` are the cache keys of its requests, in the order of custom ids."""

    name: str
    model: str
    base_url: str
    keys: tuple[str, ...]
    at: str
    batch_id: str = ""
    closed: bool = False

    def custom_id(self, place: int) -> str:
        """Id of one request within the batch, which no other batch has."""
        return f"{self.name[:16]}-{place}"


@dataclass(slots=True)
class AskedAhead:
    """What came of it: keys whose answer is stored, faults by key, and keys of batches that are still under way."""

    stored: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)


def ask_ahead(
    model: TextModel,
    asked: Sequence[tuple[TextRequest, type[Reply]]],
    store: ObjectStore,
    settings: BatchSettings,
    *,
    subject: str = "",
    connect: Callable[[ModelSettings], BatchApi] = batch_api,
    sleep: Callable[[float], None] = tenacity.nap.sleep,
    now: Callable[[], float] = time.monotonic,
) -> AskedAhead:
    """Put every question whose answer is not stored to the batch endpoint, and wait.

    Args:
        model: whose cache, purse and settings are used.
        asked: questions with the shape of their answers.
        store: where batches are written down.
        settings: see ``BatchSettings``.
        subject: the system that they are about, for the ledger.
        connect: makes the connection.
        sleep: waits between looks.
        now: a monotonic clock.

    Raises:
        MissingKeyError, BudgetError, RequestRefusedError: as ``TextModel.ask``; what was sent stays written down.
    """
    wires: dict[str, WireRequest] = {}
    for request, kind in asked:
        wire, key = model.keyed(request, kind)
        if not model.is_stored(key):
            wires[key] = wire
    found = AskedAhead()
    open_records = [one for one in _records(store, model.settings) if set(one.keys) & wires.keys()]
    if not wires:
        return found
    api = connect(model.settings)
    running = [one for one in (_adopted(api, model, store, record) for record in open_records) if one is not None]
    known = {key for record in running for key in record.keys}
    fresh = [key for key in wires if key not in known]
    for start in range(0, len(fresh), settings.most_requests):
        keys = fresh[start : start + settings.most_requests]
        running.append(_submitted(api, model, store, {key: wires[key] for key in keys}))
    began_s = now()
    while running:
        running = [record for record in running if not _collected(api, model, store, record, wires, subject, found)]
        if not running or now() - began_s + settings.poll_s > settings.most_wait_s:
            break
        sleep(settings.poll_s)
    for record in running:
        found.waiting |= {key: record.batch_id for key in record.keys if key in wires}
    return found


def _records(store: ObjectStore, settings: ModelSettings) -> list[BatchRecord]:
    found = []
    for name in store.keys(_FOLDER):
        data = json.loads(store.get(name))
        record = BatchRecord(**{**data, "keys": tuple(data["keys"])})
        if not record.closed and (record.model, record.base_url) == (settings.name, base_url(settings).rstrip("/")):
            found.append(record)
    return found


def _write(store: ObjectStore, record: BatchRecord) -> BatchRecord:
    store.put(f"{_FOLDER}/{record.name}.json", canonical_json(asdict(record)).encode())
    return record


def _changed(record: BatchRecord, **more: object) -> BatchRecord:
    return BatchRecord(**{**asdict(record), "keys": record.keys, **more})


def _held(record: BatchRecord) -> str:
    return f"batch-{record.name}"


def _close(store: ObjectStore, model: TextModel, record: BatchRecord) -> None:
    """The batch is over: no run looks for it again, and its money is no longer set aside."""
    _write(store, _changed(record, closed=True))
    model.spend.let_go(_held(record))


def _adopted(api: BatchApi, model: TextModel, store: ObjectStore, record: BatchRecord) -> BatchRecord | None:
    """The record with its batch's id; None, and closed, where its run was killed before the vendor had it."""
    if record.batch_id:
        return record
    batch_id = api.find(record.name, len(record.keys), datetime.fromisoformat(record.at) - _CLOCKS)
    if batch_id is None:
        _close(store, model, record)
        return None
    return _write(store, _changed(record, batch_id=batch_id))


def _submitted(api: BatchApi, model: TextModel, store: ObjectStore, wires: Mapping[str, WireRequest]) -> BatchRecord:
    at = datetime.now(UTC).isoformat()
    name = digest_value("batch", at, list(wires))[:40]
    record = BatchRecord(name, model.settings.name, base_url(model.settings).rstrip("/"), tuple(wires), at)
    factor = _factor(model.settings)
    costs = [model.most_usd(wire) for wire in wires.values()]
    most = None if None in costs else factor * sum(cost for cost in costs if cost is not None)
    # What a batch may cost stays set aside until its answers are settled, whether its run ends or is killed.
    reserved = model.spend.reserve(most, f"{model.settings.name} ({model.role or 'call'}, batch of {len(wires)})")
    model.spend.hold(reserved, _held(record))
    _write(store, record)
    try:
        batch_id = api.submit(name, [(record.custom_id(n), wire) for n, wire in enumerate(wires.values())])
    except ValueError:
        # It was refused: nothing runs there. A lost connection is another matter: the batch may have begun.
        _close(store, model, record)
        raise
    return _write(store, _changed(record, batch_id=batch_id))


def _collected(
    api: BatchApi,
    model: TextModel,
    store: ObjectStore,
    record: BatchRecord,
    wires: Mapping[str, WireRequest],
    subject: str,
    found: AskedAhead,
) -> bool:
    """Whether the batch has ended; then its answers are in the cache and paid for in the ledger."""
    custom_ids = [record.custom_id(place) for place in range(len(record.keys))]
    try:
        look = api.look(record.batch_id, custom_ids)
    except TransientError:
        return False
    except RequestRefusedError as error:
        if error.status != _GONE:
            raise
        # The vendor keeps batches for some weeks only: what was not collected by then is asked anew.
        look = BatchLook("gone", dict.fromkeys(custom_ids, BatchItem(None, "the vendor no longer has it", True)))
    if look.items is None:
        return False
    unasked = False
    for custom, key in zip(custom_ids, record.keys, strict=True):
        item: BatchItem = look.items[custom]
        if key not in wires:
            # Another stage's question: it is stored when that stage collects, from the same record.
            unasked = unasked or not model.is_stored(key)
            continue
        if item.response is None:
            found.faults[key] = f"{'not tried' if item.expired else 'refused'} in batch {record.batch_id}: {item.fault}"
        elif not model.is_stored(key):
            model.store_batched(
                wires[key], key, item.response, record.batch_id, _factor(model.settings), subject, _held(record)
            )
            found.stored.add(key)
    if not unasked:
        _close(store, model, record)
    return True


def _factor(settings: ModelSettings) -> float:
    price = batch_factor(settings.vendor)
    return 1.0 if price is None else price.factor
