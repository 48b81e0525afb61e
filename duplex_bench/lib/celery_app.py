"""The Celery application of a worker: ``celery -A duplex_bench.lib.celery_app worker``."""

import os
import threading
from typing import Any

from celery.signals import worker_process_init
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

_LOOK_AT_PARENT_S = 0.5

_broker = os.environ.get("DUPLEX_BENCH_BROKER", "")
app = make_app(  # type: ignore[no-untyped-call]
    {"broker": _broker, "backend": _broker, "config_source": {"worker_prefetch_multiplier": 1}}
)
app.conf.broker_connection_retry_on_startup = True

execute_job = create_execute_job_task(app)
resume_job = create_resume_job_task(app)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _end_with_worker(**_: Any) -> None:
    """A killed worker's run ends too: the run is made again elsewhere, and must not go on here unseen."""
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(_LOOK_AT_PARENT_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
