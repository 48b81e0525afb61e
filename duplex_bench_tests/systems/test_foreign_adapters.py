"""Our adapters that run in a model's own environment find there nothing of ours but the contract and their folder."""

import ast
import subprocess
import sys
import sysconfig
from importlib.resources import files

import pytest

from duplex_bench.contract.archive import sources_archive
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.process

CARDS = load_cards(None, plug_ins=False).cards.values()
FOREIGN = sorted(
    {
        known.card.adapter.partition(":")[0]
        for known in CARDS
        if known.card.environment.kind != "none" and known.card.adapter.startswith("duplex_bench.")
    }
)


def test_there_are_such_adapters():
    assert any("moshi" in name for name in FOREIGN)


@pytest.mark.parametrize("module", FOREIGN)
def test_it_is_imported_where_nothing_of_ours_is_installed(module, tmp_path):
    folder = "/".join(module.split(".")[1:-1])
    archive = sources_archive(tmp_path, ("contract", folder))
    # Without ``site`` our own package, which is installed by a path file, is not found; numpy is.
    code = f"""
import sys
sys.path[:] = [{str(archive)!r}, *sys.path[1:], {sysconfig.get_path("purelib")!r}]
import importlib
module = importlib.import_module({module!r})
assert module.__file__.startswith({str(archive)!r}) and callable(module.create)
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", sorted({name.rpartition(".")[0] for name in FOREIGN}))
def test_no_module_beside_it_imports_more_of_ours_not_even_later(package):
    for source in files(package).iterdir():
        if not source.name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in named:
                if name.startswith("duplex_bench"):
                    assert name.startswith(("duplex_bench.contract", package)), f"{source.name} imports {name}"
