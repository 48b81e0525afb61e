"""``systems setup``: whole or not at all, once for each text of a lock, and what goes wrong said plainly."""

import hashlib
import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from duplex_bench.cli.main import app
from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.environments import SystemStartError, not_set_up, open_system
from duplex_bench.systems.virtual_environments import (
    EnvironmentSetupError,
    environment_folder,
    made_interpreter,
    set_up,
)

CARD = {
    "name": "own", "title": "Own", "family": "policy", "licence": "MIT", "adapter": "an_adapter:create",
    "environment": {"kind": "python", "lock": "lock.txt"},
}  # fmt: skip


def wheel(folder, name, code=""):
    """A wheel of one module, so that pip installs without a registry."""
    path = folder / f"{name}-9.9-py3-none-any.whl"
    info = f"{name}-9.9.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = '9.9'\n{code}")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return path


def card_of(folder, lock):
    (folder / "lock.txt").write_text(lock)
    return resolved(SystemCard(**CARD), folder)


@pytest.fixture
def card(tmp_path):
    return card_of(tmp_path, f"{wheel(tmp_path, 'numpy')}\n")


@pytest.mark.unit
def test_the_text_of_the_lock_is_what_is_executed_wherever_it_lies(tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    one, other = (card_of(folder, "numpy==1\n") for folder in folders)
    assert one.environment.lock != other.environment.lock
    assert one.execution_digest() == other.execution_digest()
    assert one.environment.lock_sha256 == hashlib.sha256(b"numpy==1\n").hexdigest()
    assert card_of(folders[0], "numpy==2\n").execution_digest() != other.execution_digest()


@pytest.mark.unit
def test_a_lock_that_is_not_there_is_a_skipped_card(tmp_path):
    from duplex_bench.stages.cards import readable_cards

    text = 'name = "own"\ntitle = "Own"\nfamily = "policy"\nlicence = "MIT"\nadapter = "x:create"\n'
    (tmp_path / "own.toml").write_text(f'{text}[environment]\nkind = "python"\nlock = "nowhere.txt"\n')
    cards, errors = readable_cards(tmp_path)
    assert "own" not in cards
    assert any("nowhere.txt" in error.message and "own.toml" in error.file for error in errors)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"kind": "python"}, "interpreter, or a lock"),
        ({"kind": "command"}, "needs a command"),
        ({"kind": "image"}, "needs an image"),
        ({"kind": "command", "command": ["python3"], "interpreter": "python3"}, "belongs to kind 'python'"),
        ({"kind": "none", "lock": "x"}, "other than 'none'"),
        ({"kind": "python", "interpreter": "python3", "memory_limit_gb": 0}, "greater than 0"),
        ({"kind": "image", "image": "x", "container_tool": []}, "at least one word"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(environment, message):
    with pytest.raises(ValueError, match=message):
        SystemCard(**{**CARD, "environment": environment})


@pytest.mark.unit
def test_keys_of_runs_made_before_stay():
    for environment in ({"kind": "none"}, {"kind": "python", "interpreter": "/a/python", "python_path": ["/b"]}):
        made = SystemCard(**{**CARD, "environment": environment}).execution_subset()["environment"]
        assert made == {"kind": "none", "interpreter": None, "python_path": [], "lock": None} | environment


@pytest.mark.process
def test_it_is_made_whole_and_once_used_by_the_worker_and_stands_by_itself(card, tmp_path):
    cache = tmp_path / "cache"
    assert "systems setup own" in not_set_up(card, cache)
    with pytest.raises(SystemStartError, match="duplex-bench systems setup own"), open_system(card, cache_folder=cache):
        pass
    # What an interrupted call left is not used.
    half = environment_folder(card, cache)
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").symlink_to(sys.executable)
    assert made_interpreter(card, cache) is None
    # Two at once: one makes it, the other waits and finds it.
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda _: set_up(card, cache), range(2)))
    assert sorted(made.is_new for made in both) == [False, True]
    assert not_set_up(card, cache) is None
    told = subprocess.run(
        [both[0].interpreter, "-c", "import numpy, sys; print(numpy.__version__, sys.prefix)"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert told == ["9.9", str(environment_folder(card, cache))]
    facts = json.loads((both[0].folder / "duplex-bench-complete.json").read_text())
    assert facts["lock_sha256"] == card.environment.lock_sha256
    # The worker runs there: this numpy has no arrays, and it says so.
    (tmp_path / "an_adapter.py").write_text(
        "import numpy\ndef create(settings):\n    raise ValueError(numpy.__version__)\n"
    )
    here = card.environment.model_copy(update={"python_path": (str(tmp_path),)})
    with (
        pytest.raises(SystemStartError, match=r"9\.9|numpy"),
        open_system(card.model_copy(update={"environment": here}), cache_folder=cache),
    ):
        pass


@pytest.mark.process
def test_what_pip_refuses_is_said_and_leaves_nothing(tmp_path):
    card = card_of(tmp_path, "./no-such-wheel-9.9-py3-none-any.whl\n")
    cache = tmp_path / "cache"
    with pytest.raises(EnvironmentSetupError, match=r"lock\.txt could not be installed.*no-such-wheel"):
        set_up(card, cache)
    assert not environment_folder(card, cache).exists()
    assert made_interpreter(card, cache) is None


@pytest.mark.process
@pytest.mark.parametrize("python", ["no-such-python", "/bin/false"])
def test_a_python_that_is_none_is_refused(card, tmp_path, python):
    with pytest.raises(EnvironmentSetupError, match="--python"):
        set_up(card, tmp_path / "cache", python)
    assert not environment_folder(card, tmp_path / "cache").exists()


@pytest.mark.unit
def test_the_command_says_what_has_nothing_to_set_up(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["systems", "setup", "never-speak", "--data", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert "names no lock" in str(result.exception)


@pytest.mark.process
def test_a_command_and_an_image_start_the_same_worker(tmp_path):
    """A stand-in for the container tool checks what it is given and runs it here."""
    (tmp_path / "an_adapter.py").write_text(
        "from duplex_bench.contract.types import Spec\n"
        "class System:\n    spec = Spec(8000, 8000, 160)\n    def new_session(self):\n        return None\n"
        "def create(settings):\n    return System()\n"
    )
    tool = tmp_path / "tool"
    tool.write_text(f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
json.dump(words, open({str(tmp_path / "words")!r}, "w"))
assert words[:3] == ["run", "--rm", "--interactive"]
path = next(word.partition("=")[2] for word in words if word.startswith("PYTHONPATH="))
mounted = [word.split(":")[0] for flag, word in zip(words, words[1:]) if flag == "--volume"]
assert all(entry in mounted for entry in path.split(":")), (path, mounted)
at = words.index("--entrypoint")
socket = words[words.index("--socket") + 1]
assert os.path.dirname(socket) in mounted
os.environ["PYTHONPATH"] = path
os.execv({sys.executable!r}, [{sys.executable!r}, *words[at + 3:]])
""")
    tool.chmod(0o755)
    image = {
        "kind": "image",
        "image": "registry/model:1",
        "container_tool": [str(tool)],
        "python_path": [str(tmp_path)],
    }
    command = {"kind": "command", "command": ["env", "WRAPPED=1", sys.executable], "python_path": [str(tmp_path)]}
    digests = set()
    for environment in (image, command):
        card = SystemCard(**{**CARD, "environment": environment})
        digests.add(card.execution_digest())
        with open_system(card, cache_folder=tmp_path / "cache") as system:
            assert system.spec.in_rate_hz == 8000
    assert "registry/model:1" in json.loads((tmp_path / "words").read_text())
    other = SystemCard(**{**CARD, "environment": {**image, "image": "registry/model:2"}})
    assert len({*digests, other.execution_digest()}) == 3
