"""One text model, asked for JSON of a given shape: cached, retried, counted and paid for."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic

from duplex_bench.storage.digests import canonical_json
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.textmodels.access import base_url, key_of
from duplex_bench.textmodels.cache import ResponseCache, StoredResponse
from duplex_bench.textmodels.prices import cost_usd, token_prices
from duplex_bench.textmodels.replies import FINAL_FAULTS, Usage, read_response
from duplex_bench.textmodels.retry import send_again
from duplex_bench.textmodels.schema import Parsed, Reply, UnreadableError, read_as, strict_schema
from duplex_bench.textmodels.settings import CallSettings, ModelSettings
from duplex_bench.textmodels.spend import SpendLedger, SpentCall
from duplex_bench.textmodels.transport import Transport, transport
from duplex_bench.textmodels.wire import TextRequest, WireRequest, cache_key, wire_request

# English runs at about four bytes a token; a plan's range and a reservation stay on the safe sides of that (ours).
_BYTES_PER_TOKEN_LOW: Final = 5.0
_BYTES_PER_TOKEN_HIGH: Final = 2.5
_SHORT_ANSWER_TOKENS: Final = 40


@dataclass(frozen=True, slots=True)
class Answer(Generic[Parsed]):
    """What a model answered: ``value``, or None with ``reason``.

    Attributes:
        value: the answer, validated.
        reason: why there is none; empty where there is one.
        raw: the last response body, as stored.
        key: digest of the whole request.
        model: what the server says it used.
        usage: tokens of every reading of this answer together.
        usd: what it cost when it was made; None: price or usage not known.
        readings: responses that were read, the unreadable ones included.
        cached: whether no call was made now.
        notes: what of the settings could not be sent.
    """

    value: Parsed | None
    reason: str
    raw: str
    key: str
    model: str
    usage: Usage
    usd: float | None
    readings: int
    cached: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CostPlan:
    """What a number of requests would take. Dollars are None, with the reason, where the price is not known."""

    requests: int
    cached: int
    input_tokens_low: int
    input_tokens_high: int
    output_tokens_low: int
    output_tokens_high: int
    usd_low: float | None
    usd_high: float | None
    note: str


class TextModel:
    """A text model with its cache and its purse. Safe to share between threads; calls under way are limited."""

    def __init__(
        self,
        settings: ModelSettings,
        store: ObjectStore,
        *,
        calls: CallSettings | None = None,
        role: str = "",
        spend: SpendLedger | None = None,
        connect: Callable[[ModelSettings], Transport] = transport,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """No connection is made and no key is looked for until a call is needed.

        Args:
            settings: which model.
            store: where responses and spending are kept.
            calls: retries, concurrency and budget.
            role: what the model is used as (judge, script writer, reference), for the ledger.
            spend: the ledger to note calls in; by default one on ``store`` with the budget of ``calls``.
            connect: makes the transport.
            sleep: waits between sends.
        """
        self.settings = settings
        self.calls = calls or CallSettings()
        self.role = role
        self.spend = spend or SpendLedger(store, self.calls.budget_usd, self.calls.block_usd)
        self._cache = ResponseCache(store)
        self._connect = connect
        self._sleep = sleep
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._gate = threading.BoundedSemaphore(self.calls.concurrency)

    def __enter__(self) -> "TextModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.spend.close()

    def check_key(self) -> None:
        """Raise MissingKeyError now rather than at the first call."""
        key_of(self.settings)

    def key(self, request: TextRequest, kind: type[Reply]) -> str:
        """Digest of the whole request."""
        return self.keyed(request, kind)[1]

    def is_stored(self, key: str) -> bool:
        """Whether a response to the request of this digest is stored."""
        return self._cache.get(key, 0) is not None

    def store_batched(
        self,
        wire: WireRequest,
        key: str,
        response: str,
        batch_id: str,
        factor: float,
        subject: str = "",
        held: str = "",
    ) -> None:
        """Keep a response that came by batch as if it had been asked for, and note what it cost.

        Args:
            wire: the request.
            key: its digest.
            response: the body as it came.
            batch_id: the vendor's id of the batch.
            factor: what a batch costs of the usual price.
            subject: the system that it is about, for the ledger.
            held: the name that the ledger holds the batch's money under.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._cache.put(key, 0, wire, StoredResponse(response, at, 1, 0.0, batch_id, factor))
        usage = read_response(self.settings.vendor, response).usage
        cost = cost_usd(self.settings, usage)
        most = self.most_usd(wire)
        usd = most if cost is None else cost
        charged = None if usd is None else factor * usd
        self.spend.settle(
            None,
            SpentCall(
                self.role, subject, self.settings.name, f"{key}/0", usage.input_tokens, usage.output_tokens, charged,
                None, at,
            ),
            held,
        )  # fmt: skip

    def needs_call(self, request: TextRequest, kind: type[Reply]) -> bool:
        """Whether asking would call the provider: no response to this request is stored."""
        return self._cache.get(self.key(request, kind), 0) is None

    def keyed(self, request: TextRequest, kind: type[Reply]) -> tuple[WireRequest, str]:
        """What would be sent, and its digest."""
        wire = wire_request(self.settings, request, strict_schema(kind))
        return wire, cache_key(self.settings, wire, request, base_url(self.settings))

    def ask(self, request: TextRequest, kind: type[Parsed], subject: str = "") -> Answer[Parsed]:
        """The answer to a request, from the cache or from the provider.

        A response that cannot be read is fetched again up to ``calls.readings`` times in all; a refusal is not. Both
        end as an answer without a value, and are stored, so that asking again costs nothing.

        Args:
            request: the question.
            kind: the shape of the answer.
            subject: the system that it is about, for the ledger.

        Raises:
            MissingKeyError: a call is needed and there is no key.
            BudgetError: a call is needed and the budget does not allow it.
            RequestRefusedError: the provider does not take the request.
            ModelUnavailableError: it could not be reached; nothing is stored.
        """
        wire, key = self.keyed(request, kind)
        made = False
        usages: list[Usage] = []
        paid: list[float | None] = []
        reason, raw, model = "", "", ""
        for reading in range(self.calls.readings):
            stored = self._cache.get(key, reading)
            if stored is None:
                stored = self._call(wire, key, reading, subject)
                made = True
            reply = read_response(self.settings.vendor, stored.response)
            raw, model = stored.response, reply.model
            usages.append(reply.usage)
            cost = cost_usd(self.settings, reply.usage)
            paid.append(None if cost is None else stored.factor * cost)
            if reply.text is None:
                reason = f"{reply.fault}: {reply.told}"
                if reply.fault in FINAL_FAULTS:
                    break
                continue
            try:
                value = read_as(kind, reply.text)
            except UnreadableError as error:
                reason = f"unreadable: {error}"
                continue
            return self._answer(value, "", raw, key, model, usages, _summed(paid), made, wire)
        return self._answer(None, reason, raw, key, model, usages, _summed(paid), made, wire)

    def _answer(
        self,
        value: Parsed | None,
        reason: str,
        raw: str,
        key: str,
        model: str,
        usages: Sequence[Usage],
        usd: float | None,
        made: bool,
        wire: WireRequest,
    ) -> Answer[Parsed]:
        usage = Usage(
            _total([one.input_tokens for one in usages]),
            _total([one.output_tokens for one in usages]),
            _total([one.cached_input_tokens for one in usages]),
        )
        return Answer(value, reason, raw, key, model, usage, usd, len(usages), not made, wire.notes)

    def _call(self, wire: WireRequest, key: str, reading: int, subject: str) -> StoredResponse:
        sender = self._sender()
        most = self.most_usd(wire)
        reserved = self.spend.reserve(most, f"{self.settings.name} ({self.role or 'call'})")
        began = time.monotonic()
        waiting = {} if self._sleep is None else {"sleep": self._sleep}
        try:
            with self._gate:
                response, sends = send_again(lambda: sender.send(wire), self.calls, f"{key}/{reading}", **waiting)
        except (OSError, ValueError):
            self.spend.release(reserved)
            raise
        at = datetime.now(UTC).isoformat(timespec="seconds")
        stored = StoredResponse(response, at, sends, round(time.monotonic() - began, 3))
        self._cache.put(key, reading, wire, stored)
        usage = read_response(self.settings.vendor, response).usage
        cost = cost_usd(self.settings, usage)
        # A response that does not say what it used may have cost all that was set aside.
        charged = most if cost is None else cost
        self.spend.settle(
            reserved,
            SpentCall(
                self.role, subject, self.settings.name, f"{key}/{reading}", usage.input_tokens, usage.output_tokens,
                charged, reserved, at,
            ),
        )  # fmt: skip
        return stored

    def _sender(self) -> Transport:
        with self._lock:
            if self._transport is None:
                self._transport = self._connect(self.settings)
            return self._transport

    def most_usd(self, wire: WireRequest) -> float | None:
        """Dollars that a call can cost at most, at the usual price; None where the price is not known."""
        prices = token_prices(self.settings)
        if prices is None:
            return None
        return prices[0] * _tokens(wire, _BYTES_PER_TOKEN_HIGH) + prices[1] * self.settings.max_output_tokens

    def plan(
        self, requests: Sequence[TextRequest], kind: type[Reply], least_output_tokens: int = _SHORT_ANSWER_TOKENS
    ) -> CostPlan:
        """What asking ``requests`` would take, as a range; what the cache holds costs nothing.

        Args:
            requests: the questions.
            kind: the shape of their answers.
            least_output_tokens: how short an answer can be, for the low end; the high end is the settings' limit.
        """
        waiting = [self.keyed(request, kind) for request in requests]
        wires = [wire for wire, key in waiting if self._cache.get(key, 0) is None]
        low_in = sum(_tokens(wire, _BYTES_PER_TOKEN_LOW) for wire in wires)
        high_in = sum(_tokens(wire, _BYTES_PER_TOKEN_HIGH) for wire in wires)
        low_out = len(wires) * min(least_output_tokens, self.settings.max_output_tokens)
        high_out = len(wires) * self.settings.max_output_tokens
        prices = token_prices(self.settings)
        usd = (None, None) if prices is None else (
            prices[0] * low_in + prices[1] * low_out, prices[0] * high_in + prices[1] * high_out
        )  # fmt: skip
        note = "" if prices else f"no cost estimate: the price of {self.settings.name} is not known here"
        return CostPlan(
            len(requests), len(requests) - len(wires), low_in, high_in, low_out, high_out, usd[0], usd[1], note
        )


def _tokens(wire: WireRequest, bytes_per_token: float) -> int:
    return math.ceil(len(canonical_json(wire.body).encode()) / bytes_per_token)


def _summed(paid: Sequence[float | None]) -> float | None:
    known = [usd for usd in paid if usd is not None]
    return sum(known) if len(known) == len(paid) and known else None


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) and known else None
