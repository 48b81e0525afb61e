"""The broker that hands runs to Celery workers, and where Celery keeps what became of them: Redis or RabbitMQ.

Redis keeps both. RabbitMQ has no place for results that every process can look up, so that they go to the run database
unless RESULTS_VARIABLE names another place.
"""

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kombu.entity import Queue

BROKER_VARIABLE: Final = "DUPLEX_BENCH_BROKER"
RESULTS_VARIABLE: Final = "DUPLEX_BENCH_RESULTS"
POSTGRES_VARIABLE: Final = "DUPLEX_BENCH_POSTGRES"
GPU_QUEUE: Final = "gpu"
QUEUES: Final = ("dagster", GPU_QUEUE)
HELD_FOR_S: Final = 60
"""After this Redis hands a run out again that a killed worker had taken and not begun (ours)."""
AMQP_HELD_FOR_S: Final = 7 * 24 * 3600
"""For so long a worker may be at one run before RabbitMQ (3.12 or newer) takes its connection for dead (ours)."""
AWAY_FOR_S: Final = 60
"""How long a run that is handed over waits for a broker that is away: a killed one is up again by then (ours; else it
is 4 s, after which the run counts as failed)."""
_TRIES: Final = {"max_retries": AWAY_FOR_S, "interval_start": 0.2, "interval_step": 0.4, "interval_max": 1.0}
PATIENCE_S: Final = 10.0
"""How long a look at the queues waits for the broker (ours)."""


def is_amqp(broker: str) -> bool:
    """Whether it is RabbitMQ or another server of AMQP 0-9-1."""
    return broker.split("://", 1)[0] in {"amqp", "amqps", "pyamqp"}


def results_address(broker: str) -> str:
    """Where Celery keeps the results of runs at a broker.

    Raises:
        ValueError: the broker keeps none and no other place is named.
    """
    named = os.environ.get(RESULTS_VARIABLE, "")
    if named or not is_amqp(broker):
        return named or broker
    database = os.environ.get(POSTGRES_VARIABLE, "")
    if not database:
        raise ValueError(f"RabbitMQ keeps no results of runs: set {RESULTS_VARIABLE} or {POSTGRES_VARIABLE}")
    return f"db+{database}"


def celery_settings(broker: str) -> dict[str, Any]:
    """Celery's settings at a broker, for workers and for who hands runs to them.

    A worker takes a run when it is free, not before: another one may be free earlier. Redis is told not to hand it any;
    RabbitMQ hands out no more than one that is not confirmed, which it is at the run's end. Then RabbitMQ also hands a
    killed worker's run out again at once; one that had begun is left to the launcher, which makes it anew.
    """
    away = {**_TRIES, "connect_retries_timeout": AWAY_FOR_S}
    settings: dict[str, Any] = {
        "worker_prefetch_multiplier": 1,
        "broker_connection_retry_on_startup": True,
        "task_publish_retry_policy": _TRIES,
    }
    if not is_amqp(broker):
        return {
            **settings,
            "worker_disable_prefetch": True,
            "broker_transport_options": {**away, "visibility_timeout": HELD_FOR_S},
        }
    arguments = {"x-max-priority": 10, "x-consumer-timeout": AMQP_HELD_FOR_S * 1000}
    return {
        **settings,
        "task_acks_late": True,
        # A run that the broker did not take is an error of who hands it over, not lost.
        "broker_transport_options": {**away, "confirm_publish": True},
        # Both sides must declare a queue in the same words.
        "task_queues": [_queue(name, arguments) for name in QUEUES],
    }


def _queue(name: str, arguments: dict[str, Any]) -> "Queue":
    from kombu.entity import Queue

    return Queue(name, routing_key=f"{name}.#", queue_arguments=dict(arguments))  # type: ignore[no-untyped-call]


def queue_lengths(broker: str) -> dict[str, int]:
    """How many runs wait in each queue, of every priority; a queue that nobody ever opened is empty.

    Raises:
        kombu.exceptions.OperationalError: the broker does not answer.
    """
    from kombu.connection import Connection

    patience = {} if is_amqp(broker) else {"socket_timeout": PATIENCE_S, "socket_connect_timeout": PATIENCE_S}
    opened: Any = Connection(broker, connect_timeout=PATIENCE_S, transport_options=patience)  # type: ignore[no-untyped-call]
    with opened as connection:
        connection.ensure_connection(max_retries=1, timeout=PATIENCE_S)
        return {queue: _waiting(connection, queue) for queue in QUEUES}


def _waiting(connection: Any, queue: str) -> int:
    # A channel of its own: the server closes one on which a queue is asked for that is not there.
    channel = connection.channel()
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except connection.channel_errors:
        return 0
    finally:
        channel.close()
