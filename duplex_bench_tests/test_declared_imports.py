"""What the package imports it declares: a dependency's own dependency may be gone with its next release."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
# Part of what their parent shows its users.
PART_OF = {
    "botocore": "boto3",
    "urllib3": "boto3",
    "starlette": "fastapi",
    "celery": "dagster-celery",
    "kombu": "dagster-celery",
    "httpx2": "openai",
    "pydantic_core": "pydantic",
}
NAME = re.compile(r"[A-Za-z0-9._-]+")
# Run in environments of their own, each with a lock.
FOREIGN_ROOMS = ("systems/adapters/mimi_models", "systems/adapters/voila", "speech/workers")


def imported():
    """(name of a top-level module, file) of every import outside the standard library."""
    package = ROOT / "duplex_bench"
    for path in package.rglob("*.py"):
        if path.relative_to(package).as_posix().startswith(FOREIGN_ROOMS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            for name in names:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and top != package.name:
                    yield top, path.relative_to(ROOT).as_posix()


def plain(written):
    """The name in a requirement, a pin or a distribution, as indexes compare names."""
    return re.sub(r"[-_.]+", "-", NAME.match(written).group()).lower()


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_import_is_declared():
    extras = [line for lines in project()["optional-dependencies"].values() for line in lines]
    declared = {plain(line) for line in [*project()["dependencies"], *extras]}
    carried_by = packages_distributions()
    missing = {
        (top, path)
        for top, path in imported()
        if not {plain(name) for name in [*carried_by.get(top, [top]), PART_OF.get(top, top)]} & declared
    }
    assert not missing


def test_every_run_time_requirement_of_the_project_is_locked():
    locked = {
        plain(line)
        for name in ("dev.lock", "models.lock")
        for line in (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
        if "==" in line and NAME.match(line)
    }
    assert {plain(line) for line in project()["dependencies"]} <= locked
