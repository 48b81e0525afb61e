"""Pods by card: read by dagster-k8s and the Kubernetes client as the launcher would; and the chart's values.

Keys of the chart are noted from its values and schema (dagster-io/dagster, helm/dagster, Apache-2.0); the chart itself
is not part of this repository. What the chart hands on to Kubernetes and Dagster is read by their own code.
"""

import importlib
import json
import re
import tomllib
from pathlib import Path

import kubernetes.client as k8s
import pytest
import yaml
from dagster._config import Shape, resolve_to_config_type, validate_config
from dagster._core.instance.config import dagster_instance_config_schema
from dagster_aws.s3 import S3ComputeLogManager
from dagster_k8s import K8sRunLauncher
from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job, get_user_defined_k8s_config
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

from duplex_bench.lib.kubernetes import CONFIG_TAG, VARIABLE, PodSettings, pod_settings, pod_tags
from duplex_bench.lib.run_coordinator import GPU_TAG, card_tags
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import INSIDE_VARIABLE, worker_command

pytestmark = pytest.mark.dagster

FOLDER = Path(__file__).parents[2] / "docker" / "kubernetes"
CARD = {"name": "one", "title": "One", "family": "full_duplex", "licence": "test",
        "adapter": "duplex_bench.systems.adapters.never_speak:create"}  # fmt: skip
IMAGE = {"kind": "image", "image": "duplex-bench-moshi:0.1.0"}


def card(**more):
    return SystemCard.model_validate(CARD | more)


def pod_of(tags):
    """The job that the launcher would make of a run with these tags."""
    config = get_user_defined_k8s_config(tags)
    job = construct_dagster_k8s_job(
        job_config=DagsterK8sJobConfig(job_image="duplex-bench-work:0.1.0", dagster_home="/data/home"),
        args=["dagster", "api", "execute_run"],
        job_name="run",
        user_defined_k8s_config=config,
    )
    return job.spec.template.spec


def test_a_gpu_system_gets_its_image_a_gpu_and_a_node_with_one():
    settings = PodSettings.model_validate(tomllib_of(FOLDER / "pods.toml"))
    pod = pod_of(pod_tags(card(gpu=True, environment=IMAGE), settings))
    container = pod.containers[0]
    assert container.image == "duplex-bench-moshi:0.1.0"
    assert container.resources.limits == {"memory": "32Gi", "nvidia.com/gpu": "1"}
    assert container.resources.requests == {"cpu": "2", "memory": "32Gi"}
    assert {one.name: one.value for one in container.env if one.name == INSIDE_VARIABLE} == {
        INSIDE_VARIABLE: "duplex-bench-moshi:0.1.0"
    }
    assert pod.node_selector == {"nvidia.com/gpu.present": "true"}
    assert [(one.key, one.operator, one.effect) for one in pod.tolerations] == [
        ("nvidia.com/gpu", "Exists", "NoSchedule")
    ]


def test_another_system_gets_the_clusters_image_or_that_of_the_settings_and_no_gpu():
    pod = pod_of(pod_tags(card(), PodSettings()))
    assert pod.containers[0].image == "duplex-bench-work:0.1.0"
    assert pod.containers[0].resources.limits == {"memory": "6Gi"}
    assert not pod.node_selector
    assert not pod.tolerations
    named = pod_of(pod_tags(card(), PodSettings(images={"one": "mine:2", "two": "other:1"})))
    assert named.containers[0].image == "mine:2"


def test_inside_its_own_image_the_worker_is_started_without_a_container_tool(tmp_path, monkeypatch):
    described = card(environment=IMAGE)
    assert worker_command(described, tmp_path).command[0] == "docker"
    monkeypatch.setenv(INSIDE_VARIABLE, "another:1")
    assert worker_command(described, tmp_path).command[0] == "docker"
    monkeypatch.setenv(INSIDE_VARIABLE, IMAGE["image"])
    assert worker_command(described, tmp_path).command == ("python3",)


def test_the_coordinator_adds_the_pod_only_where_the_cluster_is_described(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert CONFIG_TAG not in card_tags(card(gpu=True))
    monkeypatch.setenv(VARIABLE, str(FOLDER / "pods.toml"))
    tags = card_tags(card(gpu=True))
    assert tags[GPU_TAG] == "yes"
    assert json.loads(tags[CONFIG_TAG])["pod_spec_config"]["node_selector"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("gpu_cuont = 1", "gpu_cuont"), ('memory = "6 GB"', "memory"), ("cpu =", "cannot be read"),
     ('[[gpu_tolerations]]\nkey = "a"\noperator = "Maybe"', "gpu_tolerations.0.operator"),
     ("gpu_count = 0", "gpu_count")],
)  # fmt: skip
def test_pod_settings_that_cannot_be_used_name_file_and_key(text, told, tmp_path, monkeypatch):
    path = tmp_path / "pods.toml"
    path.write_text(text)
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(ValueError, match=re.escape(told)) as error:
        pod_settings()
    assert str(path) in str(error.value)


def tomllib_of(path):
    return tomllib.loads(path.read_text())


# What of the chart's keys is used here; a key that the chart does not have would be passed over in silence.
PLACED = {"envConfigMaps", "envSecrets", "podSecurityContext", "securityContext", "volumes", "volumeMounts",
          "resources", "image", "nodeSelector", "tolerations", "affinity", "annotations", "labels", "env",
          "readinessProbe", "livenessProbe", "startupProbe"}  # fmt: skip
CHART = {
    "": {"global", "dagsterWebserver", "dagster-user-deployments", "postgresql", "generatePostgresqlPasswordSecret",
         "generateCeleryConfigSecret", "rabbitmq", "redis", "flower", "ingress", "imagePullSecrets",
         "computeLogManager", "scheduler", "runLauncher", "pythonLogs", "dagsterDaemon", "busybox", "migrate",
         "telemetry", "serviceAccount", "retention", "concurrency", "additionalInstanceConfig"},
    "dagsterWebserver": {*PLACED, "replicaCount", "nameOverride", "service", "workspace", "enableReadOnly"},
    "dagsterDaemon": {*PLACED, "enabled", "runCoordinator", "heartbeatTolerance", "runMonitoring", "runRetries",
                      "sensors", "schedules"},
    "dagster-user-deployments": {"enabled", "enableSubchart", "imagePullSecrets", "deployments"},
    "deployment": {*PLACED, "name", "port", "dagsterApiGrpcArgs", "codeServerArgs", "includeConfigInLaunchedRuns"},
    "postgresql": {"enabled", "image", "postgresqlScheme", "postgresqlHost", "postgresqlUsername",
                   "postgresqlPassword", "postgresqlDatabase", "postgresqlParams", "service"},
    "runLauncher": {"type", "config"},
    "k8sRunLauncher": {"image", "imagePullPolicy", "jobNamespace", "loadInclusterConfig", "kubeconfigFile",
                       "envConfigMaps", "envSecrets", "envVars", "volumeMounts", "volumes", "labels",
                       "failPodOnRunFailure", "resources", "schedulerName", "securityContext", "runK8sConfig"},
    "runMonitoring": {"enabled", "startTimeoutSeconds", "cancelTimeoutSeconds", "maxResumeRunAttempts",
                      "pollIntervalSeconds", "maxRuntimeSeconds", "freeSlotsAfterRunEndSeconds"},
    "runRetries": {"enabled", "maxRetries", "retryOnAssetOrOpFailure"},
    "global": {"postgresqlSecretName", "dagsterHome", "serviceAccountName", "celeryConfigSecretName",
               "dagsterInstanceConfigMap"},
}  # fmt: skip


@pytest.fixture(scope="module")
def values():
    return yaml.safe_load((FOLDER / "values.yaml").read_text())


def test_every_key_is_one_of_the_chart(values):
    deployments = values["dagster-user-deployments"]["deployments"]
    parts = [
        ("", values),
        ("deployment", deployments[0]),
        ("k8sRunLauncher", values["runLauncher"]["config"]["k8sRunLauncher"]),
        ("runMonitoring", values["dagsterDaemon"]["runMonitoring"]),
        ("runRetries", values["dagsterDaemon"]["runRetries"]),
    ]
    parts += [(name, values[name]) for name in CHART if name in values]
    for name, found in parts:
        assert set(found) <= CHART[name], name


def test_kubernetes_reads_what_the_chart_hands_on(values):
    for part in (
        values["dagsterWebserver"],
        values["dagsterDaemon"],
        values["dagster-user-deployments"]["deployments"][0],
    ):
        security = k8s_model_from_dict(
            k8s.V1SecurityContext, k8s_snake_case_dict(k8s.V1SecurityContext, part["securityContext"])
        )
        assert security.read_only_root_filesystem is True
        assert security.allow_privilege_escalation is False
        assert security.capabilities.drop == ["ALL"]
        pod = k8s_model_from_dict(
            k8s.V1PodSecurityContext, k8s_snake_case_dict(k8s.V1PodSecurityContext, part["podSecurityContext"])
        )
        assert (pod.run_as_non_root, pod.run_as_user) == (True, 10001)
        names = {
            k8s_model_from_dict(k8s.V1Volume, k8s_snake_case_dict(k8s.V1Volume, one)).name for one in part["volumes"]
        }
        mounts = [k8s_model_from_dict(k8s.V1VolumeMount, k8s_snake_case_dict(k8s.V1VolumeMount, one))
                  for one in part["volumeMounts"]]  # fmt: skip
        assert {mount.name for mount in mounts} == names
        assert {"/tmp", "/data"} <= {mount.mount_path for mount in mounts if not mount.read_only}
        k8s_model_from_dict(
            k8s.V1ResourceRequirements, k8s_snake_case_dict(k8s.V1ResourceRequirements, part["resources"])
        )


def snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)


def test_dagster_reads_launcher_logs_limits_and_coordinator(values):
    launcher = {snake(key): value for key, value in values["runLauncher"]["config"]["k8sRunLauncher"].items()}
    launcher["run_k8s_config"] = {snake(key): value for key, value in launcher["run_k8s_config"].items()}
    launcher |= {"service_account_name": "bench", "instance_config_map": "instance", "dagster_home": "/opt/home"}
    assert checked(K8sRunLauncher.config_type(), launcher) == []
    logs = {snake(key): value for key, value in values["computeLogManager"]["config"]["s3ComputeLogManager"].items()}
    assert checked(S3ComputeLogManager.config_type(), logs) == []
    more = values["additionalInstanceConfig"]
    assert checked(dagster_instance_config_schema(), {**more}) == []
    assert checked(dagster_instance_config_schema(), {"concurrency": {"runs": {"max_runs": 1}}}) != []
    custom = values["dagsterDaemon"]["runCoordinator"]["config"]["customRunCoordinator"]
    assert hasattr(importlib.import_module(custom["module"]), custom["class"])


def test_limits_are_for_the_tags_that_the_coordinator_sets(values):
    shipped = yaml.safe_load((FOLDER.parents[1] / "dagster.yaml").read_text())
    keys = {one["key"] for one in shipped["concurrency"]["runs"]["tag_concurrency_limits"]}
    assert {
        one["key"] for one in values["additionalInstanceConfig"]["concurrency"]["runs"]["tag_concurrency_limits"]
    } == keys


def checked(schema, config):
    found = validate_config(resolve_to_config_type(Shape(schema) if isinstance(schema, dict) else schema), config)
    return list(found.errors or [])
