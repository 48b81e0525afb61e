"""From a card to the pod of a system's run: its image, GPU, and where it may be placed, as a run tag of dagster-k8s.

``DUPLEX_BENCH_KUBERNETES`` names a TOML file with what a cluster calls things; without it no run gets such a tag.
"""

import json
import os
import tomllib
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import INSIDE_VARIABLE

VARIABLE: Final = "DUPLEX_BENCH_KUBERNETES"
CONFIG_TAG: Final = "dagster-k8s/config"


class Toleration(BaseModel):
    """A taint of nodes that the pods of GPU systems put up with, as Kubernetes names its parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    operator: str = Field(default="Exists", pattern="^(Exists|Equal)$")
    value: str | None = None
    effect: str | None = Field(default=None, pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")


class PodSettings(BaseModel):
    """What a cluster calls things. Unknown keys are refused.

    Attributes:
        images: System to image, for systems whose card names none; an image holds duplex_bench and the system.
        gpu_resource: What a GPU is called among resources.
        gpu_count: GPUs of a run of a card with ``gpu = true``.
        gpu_node_selector: Labels of nodes with the right GPUs.
        gpu_tolerations: Taints of such nodes.
        cpu: CPUs that a run asks for, as Kubernetes writes them; the same for every system.
        memory: Memory that a run asks for and may use.
        gpu_memory: The same for a run with a GPU.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    images: dict[str, str] = Field(default_factory=dict)
    gpu_resource: str = "nvidia.com/gpu"
    gpu_count: int = Field(default=1, ge=1)
    gpu_node_selector: dict[str, str] = Field(default_factory=dict)
    gpu_tolerations: tuple[Toleration, ...] = ()
    cpu: str = Field(default="2", pattern=r"^\d+(\.\d+|m)?$")
    memory: str = Field(default="6Gi", pattern=r"^\d+(Mi|Gi)$")
    gpu_memory: str = Field(default="32Gi", pattern=r"^\d+(Mi|Gi)$")


def pod_settings() -> PodSettings | None:
    """Those of the file that the environment names; None where it names none.

    Raises:
        ValueError: the file cannot be read, or has a key or value that cannot be used; names file and key.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    try:
        return PodSettings.model_validate(tomllib.loads(Path(name).read_text("utf-8")))
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ValueError(f"{name} ({VARIABLE}): {told}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} ({VARIABLE}) cannot be read: {error}") from error


def pod_tags(card: SystemCard, settings: PodSettings) -> dict[str, str]:
    """The run tag by which dagster-k8s makes the pod of a run of ``card``'s system.

    The image is that of the card's environment (kind ``image``), else that of ``settings.images``, else the cluster's
    own. In an image of its own the system's worker is started inside the pod, not by a container tool.
    """
    image = card.environment.image or settings.images.get(card.name)
    memory = settings.gpu_memory if card.gpu else settings.memory
    limits = {"memory": memory} | ({settings.gpu_resource: str(settings.gpu_count)} if card.gpu else {})
    container: dict[str, Any] = {
        "resources": {"requests": {"cpu": settings.cpu, "memory": memory}, "limits": limits},
    }
    if image is not None:
        container |= {"image": image}
    if card.environment.image is not None:
        container |= {"env": [{"name": INSIDE_VARIABLE, "value": card.environment.image}]}
    config: dict[str, Any] = {"container_config": container}
    if card.gpu:
        tolerations = [toleration.model_dump(exclude_none=True) for toleration in settings.gpu_tolerations]
        placed = {"node_selector": settings.gpu_node_selector, "tolerations": tolerations}
        config["pod_spec_config"] = {name: value for name, value in placed.items() if value}
    return {CONFIG_TAG: json.dumps(config, sort_keys=True)}
