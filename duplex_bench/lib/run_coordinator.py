"""Queues runs, and tags each with what its system's card says of limits: whose provider, whether a GPU.

The limits themselves are ``tag_concurrency_limits`` in dagster.yaml. So a click on Materialize, a backfill, a sensor
and a schedule are held to the same limits.
"""

import os
from pathlib import Path
from typing import Final

from dagster import DagsterRun
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.tags import PARTITION_NAME_TAG

from duplex_bench.lib.broker import GPU_QUEUE
from duplex_bench.lib.kubernetes import pod_settings, pod_tags
from duplex_bench.stages.cards import readable_cards
from duplex_bench.systems.card import SystemCard

PROVIDER_TAG: Final = "duplex_bench/provider"
GPU_TAG: Final = "duplex_bench/gpu"
# Of dagster-celery: which workers may take the run. Other launchers pass over it.
QUEUE_TAG: Final = "dagster-celery/queue"


class CardTagsCoordinator(QueuedRunCoordinator):
    """The queued coordinator, for runs of systems with limits of their own."""

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        """Tag the run by the card of its partition, then queue it. A card edited meanwhile counts as it is now."""
        run = context.dagster_run
        name = run.tags.get(PARTITION_NAME_TAG)
        if name is not None:
            card = readable_cards(Path(os.environ.get("DUPLEX_BENCH_DATA", "data")) / "systems")[0].get(name)
            # What was tagged by hand stays.
            tags = {key: value for key, value in card_tags(card).items() if key not in run.tags} if card else {}
            if tags:
                self._instance.add_run_tags(run.run_id, tags)
        return super().submit_run(context)


def card_tags(card: SystemCard) -> dict[str, str]:
    """Limits, and on Kubernetes the pod.

    Raises:
        ValueError: the file of pod settings cannot be used.
    """
    settings = pod_settings()
    return limit_tags(card) | (pod_tags(card, settings) if settings is not None else {})


def limit_tags(card: SystemCard) -> dict[str, str]:
    """Run tags by which dagster.yaml can limit how many runs are under way at once."""
    tags = {}
    if card.provider:
        tags[PROVIDER_TAG] = card.provider
    if card.gpu:
        tags |= {GPU_TAG: "yes", QUEUE_TAG: GPU_QUEUE}
    return tags
