"""The spend ledger: what was set aside and what was spent, in files that are only ever added; and the hard budget.

A run sets money aside in blocks, each written down before it is used, and notes every call after it. When it closes,
its calls count and its blocks no longer do. A run that was killed leaves its blocks counted: the budget may then be
reached early, but it is never passed. What a batch may cost that is under way when its run ends is held under the
batch's own name until its answers are settled. Two runs at once are safe: each writes its block first and looks then,
and takes it back if the sum is too much.
"""

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from duplex_bench.storage import happenings
from duplex_bench.storage.digests import canonical_json
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.textmodels.errors import BudgetError

_PREFIX = "spend"
_FLUSH_EVERY = 20


@dataclass(frozen=True, slots=True)
class SpentCall:
    """One call that was paid for. ``usd`` is None where the price is not known; ``subject`` is the system judged."""

    role: str
    subject: str
    model: str
    call: str
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    reserved_usd: float | None
    at: str = ""


@dataclass(slots=True)
class _Holder:
    reserved_usd: float = 0.0
    spent_usd: float = 0.0
    closed: bool = False

    @property
    def counted_usd(self) -> float:
        return self.spent_usd if self.closed else max(self.spent_usd, self.reserved_usd)


class SpendLedger:
    """Spending on one data folder, shared by every run on it. Use it as a context, so that it is closed."""

    def __init__(self, store: ObjectStore, budget_usd: float | None = None, block_usd: float = 0.25) -> None:
        self._store = store
        self._budget = budget_usd
        self._block = block_usd
        self._lock = threading.Lock()
        self._id = uuid.uuid4().hex
        self._files = 0
        self._free_usd = 0.0
        self._holding = False
        self._pending: list[tuple[str, SpentCall]] = []
        self._seen: set[str] = set()
        self._holders: dict[str, _Holder] = {}

    def __enter__(self) -> "SpendLedger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reserve(self, usd: float | None, what: str) -> float | None:
        """Set aside the most that a call can cost; hand the figure back to ``settle``.

        Raises:
            BudgetError: it would pass the budget, or its price is not known while there is a budget.
        """
        if self._budget is None:
            return usd
        if usd is None:
            raise BudgetError(
                f"{what}: its price is not known, so the budget of {self._budget:g} USD could not be held: give "
                "input_usd_per_million and output_usd_per_million, or remove budget_usd"
            )
        with self._lock:
            if usd > self._free_usd + 1e-12:
                self._take_block(usd, what)
            self._free_usd -= usd
        return usd

    def _take_block(self, usd: float, what: str) -> None:
        if self._budget is None:
            return
        before = self._counted()
        block = max(usd - self._free_usd, min(self._block, self._budget - before))
        self._write("block", {"usd": block})
        if self._counted() > self._budget + 1e-9:
            self._write("block", {"usd": -block})
            raise BudgetError(
                f"{what}: up to {usd:.4f} USD more would pass the budget of {self._budget:g} USD "
                f"({self._counted():.4f} USD spent or set aside): raise budget_usd to go on. Finished work is kept"
            )
        self._holding = True
        self._free_usd += block

    def settle(self, reserved_usd: float | None, call: SpentCall, held: str = "") -> None:
        """Note a call that was made; what it did not need of its reservation is free again.

        ``held`` is the name of ``hold`` whose money paid for it, where it is not this run's.
        """
        tokens = {"input_tokens": call.input_tokens, "output_tokens": call.output_tokens}
        told = {"role": call.role, "subject": call.subject, "model": call.model}
        happenings.tell("paid", call=call.call, usd=call.usd, **told, **tokens)
        with self._lock:
            self._pending.append((held, call if call.at else _dated(call)))
            if self._budget is not None and reserved_usd is not None and call.usd is not None:
                self._free_usd += max(0.0, reserved_usd - call.usd)
            full = len(self._pending) >= _FLUSH_EVERY
            if full:
                self._flush()

    def release(self, reserved_usd: float | None) -> None:
        """Free a reservation whose call was not made."""
        if self._budget is not None and reserved_usd is not None:
            with self._lock:
                self._free_usd += reserved_usd

    def hold(self, reserved_usd: float | None, name: str) -> None:
        """Keep a reservation counted under ``name`` after this run ends: what it pays for is under way elsewhere.

        It is held whether or not this run has a budget, since the next may. ``let_go`` ends it, from any run.
        """
        if reserved_usd is None:
            return
        with self._lock:
            # The other holder first: in between it is counted twice, and never not at all.
            self._write("block", {"usd": reserved_usd}, name)
            if self._budget is not None:
                self._write("block", {"usd": -reserved_usd})

    def let_go(self, name: str) -> None:
        """End what is held under ``name``: its calls were settled, or it was never begun."""
        with self._lock:
            self._flush()
            self._write("closed", {}, name)

    def close(self) -> None:
        """Write what is pending; from now on this run's calls count, not its blocks."""
        with self._lock:
            self._flush()
            if self._holding:
                self._write("closed", {})
                self._id, self._files, self._free_usd, self._holding = uuid.uuid4().hex, 0, 0.0, False

    def counted_usd(self) -> float:
        """Dollars spent, and set aside by runs that are under way (or were killed)."""
        with self._lock:
            return self._counted()

    def calls(self) -> Iterator[SpentCall]:
        """Every call noted on this data folder, by any run."""
        with self._lock:
            self._flush()
        for name in self._store.keys(_PREFIX):
            if name.endswith("-calls.json"):
                for row in json.loads(self._store.get(name))["calls"]:
                    yield SpentCall(**row)

    def _counted(self) -> float:
        self._flush()
        for name in self._store.keys(_PREFIX):
            if name in self._seen:
                continue
            self._seen.add(name)
            found = json.loads(self._store.get(name))
            holder = self._holders.setdefault(found["holder"], _Holder())
            if found["kind"] == "block":
                holder.reserved_usd += found["usd"]
            elif found["kind"] == "calls":
                holder.spent_usd += sum(row["usd"] or 0.0 for row in found["calls"])
            else:
                holder.closed = True
        return sum(holder.counted_usd for holder in self._holders.values())

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        for holder in dict.fromkeys(name for name, _ in pending):
            self._write("calls", {"calls": [asdict(call) for name, call in pending if name == holder]}, holder)

    def _write(self, kind: str, told: dict[str, object], holder: str = "") -> None:
        self._files += 1
        entry = {"kind": kind, "holder": holder or self._id, "at": _now(), **told}
        self._store.put(f"{_PREFIX}/{self._id}-{self._files:06d}-{kind}.json", canonical_json(entry).encode())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _dated(call: SpentCall) -> SpentCall:
    return SpentCall(**{**asdict(call), "at": _now()})
