"""Counts as Prometheus reads them, served over HTTP: loopback, or a token."""

import hmac
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from duplex_bench.stages.telemetry.counts import METRICS, Counts

if TYPE_CHECKING:
    from prometheus_client.core import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
TOKEN_VARIABLE: Final = "DUPLEX_BENCH_METRICS_TOKEN"


class _Collector:
    def __init__(self, counts: Callable[[], Counts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator["Family"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        found: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in METRICS}
        for name, labels, value in self._counts().items():
            found[name].append((labels, value))
        for name, metric in METRICS.items():
            if metric.kind == "histogram":
                bins: dict[tuple[str, ...], dict[str, float]] = {}
                for key, value in found[name]:
                    bins.setdefault(key[:-1], {})[key[-1]] = value
                histogram = HistogramMetricFamily(name, metric.help, labels=metric.labels)
                for names, counted in bins.items():
                    # Only the bins are known, not the sum of what fell into them.
                    histogram.add_metric(names, buckets=list(_summed(counted)), sum_value=None)
                yield histogram
                continue
            family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
                name, metric.help, labels=metric.labels
            )
            for names, value in found[name]:
                family.add_metric(names, value)
            yield family


def _summed(bins: dict[str, float]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for end in sorted(bins, key=float):
        total += bins[end]
        yield end, total


def registry(counts: Callable[[], Counts]) -> "CollectorRegistry":
    """A registry of its own whose values are those of ``counts`` at each look."""
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry()
    made.register(_Collector(counts))
    return made


def check_address(host: str, token: str | None, what: str, variable: str) -> None:
    """Refuse to serve beyond this machine without a token.

    Raises:
        ValueError: another host than loopback, and no token.
    """
    if host not in LOOPBACK and not token:
        raise ValueError(f"serving {what} on {host} lets others in: set {variable}, or serve on 127.0.0.1")


def shown_token(header: str | None, token: str | None) -> bool:
    """Whether an ``Authorization`` header carries the token; always where none is asked for."""
    return token is None or hmac.compare_digest(f"Bearer {token}".encode(), (header or "").encode())


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A look every few seconds is not worth a line each."""


@contextmanager
def served(made: "CollectorRegistry", host: str, port: int, token: str | None) -> Iterator[int]:
    """Serve ``/metrics`` while the block lasts; gives the port (for 0: the one that was free).

    Raises:
        ValueError: another host than loopback without a token.
        OSError: the port is taken.
    """
    from prometheus_client import make_wsgi_app

    check_address(host, token, "metrics", TOKEN_VARIABLE)
    inner = make_wsgi_app(made)

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not shown_token(environ.get("HTTP_AUTHORIZATION"), token):
            start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
            return [b"a token is needed\n"]
        if environ.get("PATH_INFO") != "/metrics":
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"only /metrics is here\n"]
        answer: Iterable[bytes] = inner(environ, start_response)
        return answer

    with make_server(host, port, app, server_class=_Server, handler_class=_Silent) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
