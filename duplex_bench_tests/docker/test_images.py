"""The images' files: pinned, without root, read-only; and every command and variable in them exists."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker"
BIN = Path(sys.executable).parent
DOCKERFILES = sorted(FOLDER.rglob("*Dockerfile"))
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
# It gives a fresh volume to the user that the object store runs as, and ends.
ROOT_SERVICES = {"objects-owner"}


def instructions(path):
    text = re.sub(r"\\\n", " ", path.read_text())
    found = (line.strip().partition(" ") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [(word.upper(), rest.strip()) for word, _, rest in found]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_a_dockerfile_has_pinned_bases_ends_without_root_and_is_watched(path):
    steps = instructions(path)
    defaults = dict(rest.split("=", 1) for word, rest in steps if word == "ARG" and "=" in rest)
    stages = {rest.split(" AS ")[1] for word, rest in steps if word == "FROM" and " AS " in rest}
    bases = [re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], rest.split(" AS ")[0])
             for word, rest in steps if word == "FROM"]  # fmt: skip
    for base in bases:
        assert base in stages or re.fullmatch(r"[\w./-]+:\d[\w.-]*(@sha256:[0-9a-f]{64})?", base), base
        assert not base.endswith(":latest")
    users = [rest for word, rest in steps if word == "USER"]
    assert users[-1] == "10001:10001"
    assert any(word == "HEALTHCHECK" for word, _ in steps)
    assert not [rest for word, rest in steps if word == "ADD"]
    installs = [rest for word, rest in steps if word == "RUN" and "pip install" in rest]
    assert installs
    for name, value in defaults.items():
        assert not re.search("KEY|TOKEN|SECRET|PASSWORD", name), (name, value)


def test_the_product_is_installed_by_hash_alone():
    for _, rest in (step for step in instructions(FOLDER / "Dockerfile") if "pip install" in step[1]):
        for command in rest.split("&&"):
            if "pip install" in command:
                assert "--require-hashes" in command or command.strip().endswith("--no-deps --no-build-isolation ."), (
                    command
                )


def test_the_lock_of_the_images_holds_the_versions_that_are_tested():
    def versions(name):
        text = (ROOT / "requirements" / name).read_text()
        return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==(\S+)", text, re.MULTILINE))

    images, tested = versions("cluster.lock"), versions("dev.lock")
    assert len(images) > 100
    assert {name: version for name, version in images.items() if tested.get(name) != version} == {}
    assert {"dagster-celery", "dagster-postgres", "dagster-k8s", "redis", "psycopg2-binary"} <= set(images)
    assert not {"pytest", "mypy", "ruff", "playwright"} & set(images)


def test_compose_follows_the_published_schema():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_read_only_without_privileges_pinned_and_on_loopback(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    image = re.sub(r"\$\{\w+:-([^}]+)\}", r"\1", service["image"])
    assert re.fullmatch(r"[\w./-]+:\d[\w.-]*", image), image
    if "build" not in service and name not in ROOT_SERVICES:
        assert str(service["user"]).split(":")[0] not in {"0", "root"}
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), port
    assert "healthcheck" in service or "build" in service
    for needed in service.get("depends_on", {}):
        assert needed in SERVICES
    mounted = [mount.split(":")[0] for mount in service.get("volumes", []) if not mount.startswith((".", "/"))]
    assert set(mounted) <= set(COMPOSE["volumes"])


def test_no_password_stands_in_the_files_and_each_that_is_needed_is_listed():
    text = (FOLDER / "compose.yaml").read_text()
    listed = set(re.findall(r"^(\w+)=", (FOLDER / "env.example").read_text(), re.MULTILINE))
    asked = set(re.findall(r"(?<!\$)\$\{(\w+)", text))
    assert {name for name in asked if re.search("PASSWORD|KEY|TOKEN", name)} <= listed
    assert listed <= asked
    assert not re.search(r"(?i)(password|secret_key)\w*[:=] *[\"']?[A-Za-z0-9]{6,}", text)
    for name, service in SERVICES.items():
        given = service.get("environment", {})
        paid = [key for key in given if key.endswith("_API_KEY")]
        assert not paid or name == "worker", name
    assert "docker/.env" in (ROOT / ".gitignore").read_text().splitlines()
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"


def test_variables_named_in_the_files_are_read_by_the_package():
    named = set()
    for path in [*FOLDER.rglob("*"), ROOT / "docs" / "operations.md"]:
        if path.is_file():
            named |= set(re.findall(r"DUPLEX_BENCH_[A-Z0-9_]+", path.read_text()))
    named -= {"DUPLEX_BENCH_VERSION"}  # of compose itself: the tag of the images
    sources = "\n".join(path.read_text() for path in (ROOT / "duplex_bench").rglob("*.py"))
    sources += "\n".join(path.read_text() for path in (ROOT / "duplex_bench").rglob("*.toml"))
    assert len(named) > 8
    assert {name for name in named if name not in sources} == set()


START = (FOLDER / "start").read_text()
COMMANDS = re.findall(r"^  (\w+)\) exec (.+?) \"\$@\" ;;$", START, re.MULTILINE)


def help_of(words):
    program, *rest = words
    command = [str(BIN / program), *rest, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT).stdout


@pytest.mark.parametrize(("role", "command"), COMMANDS, ids=[role for role, _ in COMMANDS])
def test_the_command_of_a_role_exists_with_its_options(role, command):
    words = [word for word in shlex.split(re.sub(r'"[^"]*\$[^"]*"', "x", command)) if word]
    path = [words[0]]
    for word in words[1:]:
        if word.startswith("-"):
            break
        path.append(word)
    if words[0] == "celery":
        path = ["celery", "worker"]
    told = help_of(path)
    # celery's -A stands before its sub-command.
    for option in [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word) and word != "-A"]:
        assert re.search(rf"(?<![\w-]){re.escape(option)}\b", told), (option, told)


def test_every_role_of_compose_is_one_of_start_and_every_role_can_be_asked_how_it_is(tmp_path):
    roles = {role for role, _ in COMMANDS}
    assert {service["command"][0] for service in SERVICES.values() if "build" in service} <= roles
    for program in ("dagster", "dagster-daemon", "dagster-webserver", "celery", "duplex-bench", "python"):
        fake = tmp_path / program
        fake.write_text(f'#!/bin/sh\necho {program} "$@"\n')
        fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}

    def started(*words, check=True):
        done = subprocess.run(
            ["sh", FOLDER / "start", *words], capture_output=True, text=True, env=environment, check=check
        )
        return done.stdout.strip() if check else done.returncode

    assert started("daemon", "--more") == "dagster-daemon run -w /etc/duplex-bench/workspace.yaml --more"
    assert "-Q dagster " in started("worker")
    environment["QUEUES"] = "gpu"
    assert "-Q gpu " in started("worker")
    # What the launcher of Kubernetes starts goes through as it is.
    assert started("dagster", "api", "execute_run", "{}") == "dagster api execute_run {}"
    for role in roles - {"init"}:
        assert started("healthy", role), role
    for line in (
        "/opt/x/bin/python /opt/x/bin/celery -A app worker",
        "python /x/dagster-webserver -h 0.0.0.0",
        "python /x/dagster code-server start -h",
    ):
        assert started("healthy", line)
    assert started("healthy", "something else", check=False) == 1
