import importlib.util
from pathlib import Path

import pytest

from duplex_bench.review.store import ReviewStore


@pytest.fixture(scope="session")
def review_factory():
    spec = importlib.util.spec_from_file_location("review_factory", Path(__file__).parent / "factory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def store(tmp_path):
    return ReviewStore(f"sqlite:///{tmp_path / 'review.sqlite'}", busy_timeout_s=0.2)


@pytest.fixture
def make_desk(review_factory, tmp_path):
    return lambda **settings: review_factory.make_desk(tmp_path, **settings)


@pytest.fixture
def desk(make_desk):
    return make_desk()


@pytest.fixture
def visitor():
    """Signs somebody in at an app: ``visitor(desk, "Ben")`` is a client with their cookie."""
    from starlette.testclient import TestClient

    from duplex_bench.review.app import create_app

    apps = {}

    def enter(desk, name, token=""):
        app = apps.setdefault(id(desk), create_app(desk))
        client = TestClient(app, base_url="http://127.0.0.1")
        if name is not None:
            assert client.post("/api/sign-in", json={"name": name, "token": token}).status_code == 200
        return client

    return enter
