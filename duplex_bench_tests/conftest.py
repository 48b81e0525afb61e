"""What several rooms' tests share."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# A machine that is busy is no defect of what is tested: how long things take is for benchmarks/.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


def _servers(name):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "textmodels" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def text_api(monkeypatch):
    """Starts loopback servers that speak a vendor's text API: ``text_api("openai", reply)``. The key is a canary."""
    module = _servers("loopback")
    servers, apis = [], []
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_KEY"):
        monkeypatch.setenv(name, module.CANARY)
    for name in ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def start(vendor, reply=None, **more):
        api = module.FakeApi(vendor, **({"reply": reply} if reply else {}), **more)
        servers.append(module.serve(api))
        apis.append(api)
        return api

    start.canary = module.CANARY
    yield start
    for api in apis:
        api.release.set()
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def batch_server(monkeypatch):
    """Starts a loopback server with a vendor's batch endpoint: ``batch_server("openai")``. The key is a canary."""
    module = _servers("batch_loopback")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, module.CANARY)
    servers = []

    def start(vendor, **more):
        fake = module.FakeBatches(vendor, **more)
        servers.append(module.serve_batches(fake))
        return fake

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
