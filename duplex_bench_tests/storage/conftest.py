"""A real S3 server on loopback, and a proxy before it that misbehaves on request."""

import http.client
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from duplex_bench.cli.cluster.processes import Processes
from duplex_bench.cli.cluster.services import ServiceMissingError, start_store
from duplex_bench.cli.cluster.settings import own_services
from duplex_bench.storage.s3_store import S3Settings, S3Store

PATIENCE_S = 120.0
FEW_ATTEMPTS = S3Settings(attempts=3, connect_timeout_s=PATIENCE_S, read_timeout_s=PATIENCE_S)


@pytest.fixture(scope="session")
def serving():
    """``serving(start, folder)`` is a service, on other ports if somebody took one since they were drawn."""

    def begin(start, folder):
        processes = Processes(folder / "processes")
        for attempt in (1, 2, 3):
            own = own_services(folder)
            try:
                start(processes, folder, own)
                break
            except ServiceMissingError:
                raise
            except ValueError:
                for name in processes.names():
                    processes.stop(name)
                if attempt == 3:
                    raise
                (folder / "services.json").unlink()
        return own, processes

    return begin


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory, serving):
    """SeaweedFS: (endpoint, environment of its clients)."""
    own, processes = serving(start_store, tmp_path_factory.mktemp("objects"))
    names = {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{own.store_port}",
        "AWS_ACCESS_KEY_ID": own.access_key,
        "AWS_SECRET_ACCESS_KEY": own.secret_key,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        S3Store("bench").make_bucket()
    yield names
    processes.stop("objects", patience_s=0.5)


@pytest.fixture
def s3_environment(s3_server, monkeypatch):
    for name, value in s3_server.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def s3(s3_environment, request):
    """A store of its own prefix in the bucket."""
    return S3Store("bench", request.node.name.replace("[", "-").replace("]", ""), FEW_ATTEMPTS)


class FaultProxy(ThreadingHTTPServer):
    """Passes requests on to an S3 server; ``fault(method, path)`` may name what goes wrong with one.

    Faults: ``error`` (503), ``lost`` (a write is confirmed and dropped), ``cut`` (the answer breaks off), ``slow`` (no
    answer until the client gives up), ``drop`` (the connection closes), ``full`` (507), ``unsaid`` (the write is made
    and the connection closes before the answer), ``damaged`` (a byte of the body is another on arrival),
    ``unconfirmed`` (no checksum comes back, as from a store that does not know them).
    """

    daemon_threads = True

    def __init__(self, target_port):
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target_port = target_port
        self.fault = lambda _method, _path: None
        self.seen = []
        self.slow = threading.Event()
        self.closing = threading.Event()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def once(self, method, fault, times=1):
        """Make the next ``times`` requests of a method go wrong."""
        left = [times]

        def chosen(wanted, _path):
            if wanted == method and left[0]:
                left[0] -= 1
                return fault
            return None

        self.fault = chosen


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault(self.command, self.path)
        self.server.seen.append((self.command, self.path, fault))
        if fault == "slow":
            self.server.slow.set()
            self.server.closing.wait(PATIENCE_S)
            fault = "drop"
        if fault == "drop":
            self.close_connection = True
            return
        if fault == "error":
            self._answer(503, [], b"<Error><Code>SlowDown</Code><Message>busy</Message></Error>")
            return
        if fault == "full":
            self._answer(507, [], b"<Error><Code>InsufficientStorage</Code><Message>full</Message></Error>")
            return
        if fault == "lost":
            import hashlib

            told = [("ETag", f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"')]
            told += [pair for pair in self.headers.items() if pair[0].lower() == "x-amz-checksum-sha256"]
            self._answer(200, told, b"")
            return
        if fault == "damaged":
            body = body[:-1] + bytes([body[-1] ^ 1])
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target_port)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if fault == "unsaid":
            self.close_connection = True
            return
        kept = [
            pair
            for pair in answer.getheaders()
            if pair[0].lower() not in {"connection", "transfer-encoding", "content-length"}
        ]
        if fault == "unconfirmed":
            kept = [pair for pair in kept if not pair[0].lower().startswith("x-amz-checksum")]
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self._answer(answer.status, kept, data, length, cut=fault == "cut")

    def _answer(self, status, headers, data, length=None, cut=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        if cut:
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


for _verb in ("GET", "PUT", "HEAD", "POST", "DELETE"):
    setattr(_Passing, f"do_{_verb}", _Passing._pass_on)


@pytest.fixture
def proxy(s3_environment, monkeypatch):
    """The S3 server behind a proxy that misbehaves; the environment's endpoint is the proxy."""
    server = FaultProxy(int(s3_environment["AWS_ENDPOINT_URL_S3"].rsplit(":", 1)[1]))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
    yield server
    server.closing.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def faulty(proxy, request):
    """A store behind the proxy."""
    return S3Store("bench", request.node.name.replace("[", "-").replace("]", ""), FEW_ATTEMPTS)


@pytest.fixture
def impatient_once(proxy, faulty):
    """The store gives up soon on its next request, and waits for what comes after it, however busy the machine is."""

    def begin():
        patience = faulty._client._endpoint.http_session._timeout
        sends = itertools.count()

        def before_send(**_):
            if next(sends) == 0:
                patience._read = 0.5
            else:
                proxy.slow.wait(PATIENCE_S)
                patience._read = PATIENCE_S

        faulty._client.meta.events.register("before-send.s3", before_send)

    return begin
