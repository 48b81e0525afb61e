"""Brokers: where results go, and that a busy worker is handed nothing; RabbitMQ itself is in the tier ``cluster``."""

import socket
import time

import pytest
from celery import Celery
from dagster_celery.launcher import CeleryRunLauncher
from kombu.exceptions import OperationalError

from duplex_bench.lib import broker
from duplex_bench.lib.celery_app import worker_app
from duplex_bench.lib.run_launcher import WatchedCeleryRunLauncher

pytestmark = pytest.mark.dagster

REDIS = "redis://:secret@broker:6379/0"
RABBIT = "amqp://me:secret@broker:5672//"
DATABASE = "postgresql+psycopg2://me:secret@db/bench"


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    for name in (broker.BROKER_VARIABLE, broker.RESULTS_VARIABLE, broker.POSTGRES_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_redis_keeps_the_results_and_rabbitmq_leaves_them_to_the_run_database(monkeypatch):
    assert broker.results_address(REDIS) == REDIS
    monkeypatch.setenv(broker.POSTGRES_VARIABLE, DATABASE)
    assert broker.results_address(REDIS) == REDIS
    for address in (RABBIT, RABBIT.replace("amqp", "amqps"), RABBIT.replace("amqp", "pyamqp")):
        assert broker.results_address(address) == f"db+{DATABASE}"
    monkeypatch.setenv(broker.RESULTS_VARIABLE, "redis://results/1")
    assert broker.results_address(RABBIT) == broker.results_address(REDIS) == "redis://results/1"


def test_rabbitmq_without_a_place_for_results_is_refused_with_what_to_set():
    with pytest.raises(ValueError, match="DUPLEX_BENCH_RESULTS or DUPLEX_BENCH_POSTGRES"):
        broker.results_address(RABBIT)
    with pytest.raises(ValueError, match="DUPLEX_BENCH_RESULTS"):
        worker_app(RABBIT)


def declared(app: Celery):
    return {name: (queue.queue_arguments, queue.routing_key) for name, queue in app.amqp.queues.items()}


@pytest.mark.parametrize("written", [None, "rpc://", RABBIT])
def test_launcher_and_worker_declare_the_queues_of_rabbitmq_in_the_same_words(written, monkeypatch):
    monkeypatch.setenv(broker.RESULTS_VARIABLE, "cache+memory://")
    launcher, app = WatchedCeleryRunLauncher("dagster", broker=RABBIT, backend=written), worker_app(RABBIT)
    # Another word, and the server closes the channel of who comes second.
    assert declared(launcher.celery) == declared(app)
    assert set(declared(app)) == set(broker.QUEUES)
    assert launcher.celery.conf.result_backend == app.conf.result_backend == "cache+memory://"
    assert launcher.celery.conf.broker_transport_options["confirm_publish"] is True


@pytest.mark.parametrize("address", ["amqp://127.0.0.1:{port}//", "redis://127.0.0.1:{port}/0"])
def test_a_run_that_is_handed_over_waits_for_a_broker_that_is_away(address, monkeypatch):
    monkeypatch.setenv(broker.RESULTS_VARIABLE, "cache+memory://")
    assert broker.AWAY_FOR_S >= 60
    monkeypatch.setattr(broker, "AWAY_FOR_S", 7)
    # Held and not listened at: refused, and nobody else's meanwhile.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        launcher = WatchedCeleryRunLauncher("dagster", broker=address.format(port=held.getsockname()[1]))
        began = time.monotonic()
        with pytest.raises(OperationalError):
            launcher.celery.send_task("execute_job", queue="dagster", routing_key="dagster.execute_job")
    # Left to itself it is given up after four.
    assert time.monotonic() - began > 6


@pytest.mark.parametrize("address", [REDIS, RABBIT])
def test_a_worker_takes_one_run_at_a_time(address, monkeypatch):
    monkeypatch.setenv(broker.RESULTS_VARIABLE, "cache+memory://")
    conf = worker_app(address).conf
    assert conf.worker_prefetch_multiplier == 1
    # RabbitMQ holds back what is not confirmed; Redis knows no such thing and would hand a long run out twice.
    assert conf.task_acks_late is (address == RABBIT)
    assert conf.worker_disable_prefetch is (address == REDIS)
    if address == REDIS:
        assert conf.broker_transport_options["visibility_timeout"] == broker.HELD_FOR_S


def test_a_place_for_results_that_the_file_names_is_kept():
    launcher = WatchedCeleryRunLauncher("dagster", broker=REDIS, backend="redis://elsewhere/3")
    assert launcher.celery.conf.result_backend == "redis://elsewhere/3"
    assert isinstance(launcher, CeleryRunLauncher)


def test_a_broker_that_is_away_is_an_error_soon(monkeypatch):
    monkeypatch.setattr(broker, "PATIENCE_S", 1.0)
    for address in ("redis://127.0.0.1:9/0", "amqp://127.0.0.1:9//"):
        with pytest.raises(Exception, match="refused"):
            broker.queue_lengths(address)
