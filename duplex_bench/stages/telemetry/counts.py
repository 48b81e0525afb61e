"""Counts of what happened, by metric and labels: kept in memory, stored as JSON, added up over runs."""

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from duplex_bench.storage.happenings import Happening, Value

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus shows it: ``labels`` name the parts of each key, ``help`` says what is counted."""

    name: str
    help: str
    labels: Labels
    kind: Literal["counter", "gauge", "histogram"] = "counter"


_ITEM: Final = ("track", "stage", "system", "state")
_PAID: Final = ("role", "subject", "model")
METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric("duplex_bench_items", "Pieces of work that ended, done or failed.", _ITEM),
        Metric("duplex_bench_item_seconds", "Seconds from handing a piece of work over to its end, added up.", _ITEM),
        Metric("duplex_bench_rollouts", "Rollouts that ended, by outcome.", ("track", "system", "outcome")),
        Metric("duplex_bench_rollout_attempts", "Sessions that these rollouts took.", ("track", "system")),
        Metric("duplex_bench_rollout_audio_seconds", "Seconds of listener timeline recorded.", ("track", "system")),
        Metric("duplex_bench_send_lateness_seconds", "How late frames were sent to a realtime system.", ("system",),
               "histogram"),
        Metric("duplex_bench_send_lateness_worst_seconds", "The latest frame of any rollout.", ("system",), "gauge"),
        Metric("duplex_bench_spend_usd", "US dollars spent, where the price is known.", _PAID),
        Metric("duplex_bench_paid_calls", "Calls and sessions that cost, known price or not.", _PAID),
        Metric("duplex_bench_unpriced_calls", "Of these, those whose price is not known.", _PAID),
        Metric("duplex_bench_stage_seconds", "Wall seconds that stages worked, added up.", ("stage",)),
        Metric("duplex_bench_runs", "Runs that began, and that ended in whatever way but a kill.", ("state",)),
    )
}  # fmt: skip
_WORST: Final = "duplex_bench_send_lateness_worst_seconds"
_LATENESS: Final = "duplex_bench_send_lateness_seconds"


class Counts:
    """Values by metric and label values. A histogram's last label value is the upper edge of a bin, in seconds."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, Labels], float] = {}
        self._lock = threading.Lock()

    def hear(self, happening: Happening) -> None:
        """Count one thing that happened."""
        fields = happening.fields
        if happening.kind == "item":
            self._item(fields)
        elif happening.kind == "paid":
            paid = _texts(fields, _PAID)
            usd = fields.get("usd")
            self.add("duplex_bench_paid_calls", paid)
            if isinstance(usd, int | float):
                self.add("duplex_bench_spend_usd", paid, usd)
            else:
                self.add("duplex_bench_unpriced_calls", paid)
        elif happening.kind == "stage":
            self.add("duplex_bench_stage_seconds", _texts(fields, ("stage",)), _number(fields, "took_s"))
        elif happening.kind == "run":
            self.add("duplex_bench_runs", _texts(fields, ("state",)))

    def _item(self, fields: Mapping[str, Value]) -> None:
        item = (*places(str(fields.get("scope", ""))), str(fields.get("state", "")))
        self.add("duplex_bench_items", item)
        self.add("duplex_bench_item_seconds", item, _number(fields, "took_s"))
        if "outcome" not in fields:
            return
        where = _texts(fields, ("track", "system"))
        self.add("duplex_bench_rollouts", (*where, str(fields["outcome"])))
        self.add("duplex_bench_rollout_attempts", where, _number(fields, "attempts"))
        self.add("duplex_bench_rollout_audio_seconds", where, _number(fields, "timeline_s"))
        edges, counts = fields.get("lateness_edges_ms"), fields.get("lateness_counts")
        if isinstance(edges, list) and isinstance(counts, list):
            ends = [f"{edge / 1000:g}" for edge in edges] + ["+Inf"]
            for end, count in zip(ends, counts, strict=True):
                self.add(_LATENESS, (where[1], end), count)
            self.add(_WORST, (where[1],), _number(fields, "lateness_worst_ms") / 1000)

    def add(self, metric: str, labels: Labels, value: float = 1.0) -> None:
        """Add to a value; of a gauge the greater one is kept."""
        key = (metric, labels)
        with self._lock:
            before = self._values.get(key, 0.0)
            self._values[key] = max(before, value) if METRICS[metric].kind == "gauge" else before + value

    def items(self) -> list[tuple[str, Labels, float]]:
        """Metric, label values and value, in order."""
        with self._lock:
            return sorted((metric, labels, value) for (metric, labels), value in self._values.items())

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps([[metric, list(labels), value] for metric, labels, value in self.items()])

    def add_all(self, stored: Iterable[str]) -> None:
        """Add what ``to_json`` gave; metrics of another version of this package are passed over.

        Raises:
            ValueError: it is no such text.
        """
        for text in stored:
            for metric, labels, value in json.loads(text):
                if metric in METRICS:
                    self.add(metric, tuple(labels), float(value))


def places(scope: str) -> tuple[str, str, str]:
    """Track, stage and system of a ledger's scope ``<track>/<stage>[/<system>]``; empty where it has no such part."""
    first, second, third = (*scope.split("/", 2), "", "")[:3]
    return first, second, third


def _texts(fields: Mapping[str, Value], names: Labels) -> Labels:
    return tuple(str(fields.get(name) or "") for name in names)


def _number(fields: Mapping[str, Value], name: str) -> float:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
