import importlib.util
import sys
from pathlib import Path

import pytest


def _batch_loopback():
    name = "batch_loopback_servers"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("batch_loopback.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def batch_server(monkeypatch):
    """Starts a loopback server with a vendor's batch endpoint: ``batch_server("openai")``. The key is a canary."""
    module = _batch_loopback()
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, module.CANARY)
    servers = []

    def start(vendor):
        fake = module.FakeBatches(vendor)
        servers.append(module.serve_batches(fake))
        return fake

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
