"""What several rooms' tests share."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy is no defect of what is tested: how long things take is for benchmarks/. Examples come from
# each test itself, so that the same tree gives the same answer; new ones are sought with --hypothesis-profile=explore.
settings.register_profile(
    "any-machine", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("any-machine"), derandomize=False, print_blob=True)
settings.load_profile("any-machine")

# What a user's shell names is not what is tested: a store, a profile, a proxy, colours.
_ASKED_FOR = {f"DUPLEX_BENCH_{name}" for name in ("UPDATE_SNAPSHOTS", "PICTURES", "CACHE", "TEST_CLUSTER")}
_OF_A_SHELL = ("DUPLEX_BENCH_", "AWS_", "DAGSTER_HOME", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "PYTHONWARNINGS")
for _name in [name for name in os.environ if name.startswith(_OF_A_SHELL) and name not in _ASKED_FOR]:
    del os.environ[_name]
for _name in ("NO_PROXY", "no_proxy"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "127.0.0.1", "localhost")))
os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"


@pytest.fixture(autouse=True)
def _same_folder():
    """A test that leaves the process in another folder would change what later ones import and write."""
    before = Path.cwd()
    yield
    after = Path.cwd()
    os.chdir(before)
    assert after == before


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
