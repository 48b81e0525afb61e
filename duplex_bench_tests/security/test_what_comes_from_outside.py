"""What others hand us: names in profiles and cards, archives, pickles; and who may reach what we serve."""

import ast
import io
import re
import tarfile
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from typer.main import get_command

import duplex_bench
from duplex_bench.cli import talk, ui
from duplex_bench.cli.cluster import settings as cluster
from duplex_bench.cli.health import TOKEN_VARIABLE, show_health
from duplex_bench.cli.main import app
from duplex_bench.cli.serve import serve_protocol
from duplex_bench.defs.resources import RESOURCES
from duplex_bench.lib.io_manager import TableIOManager
from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.review.access import ReviewSettings
from duplex_bench.stages.profile import ProfileError, parse_profile
from duplex_bench.stages.release.archive import opened
from duplex_bench.stages.release.contents import ReleaseError
from duplex_bench.stages.telemetry.exposition import check_address
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

PACKAGE = Path(duplex_bench.__file__).parent
NAMES = ("../../x", "a/b", "/etc/x", "..", "x\0y", ".hidden", "", "x" * 65, "a\\b", "a\nb")


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_names_no_folder_outside(name):
    table = tomllib.loads((resources.files("duplex_bench.profiles") / "demo.toml").read_text())
    with pytest.raises(ProfileError, match="key name"):
        parse_profile({**table, "name": name}, "theirs.toml")


@pytest.mark.parametrize("name", NAMES)
def test_a_card_names_no_folder_outside(name):
    fields = {"title": "t", "family": "policy", "adapter": "a.b:c", "licence": "l"}
    assert SystemCard.model_validate({"name": "fine", **fields}).name == "fine"
    with pytest.raises(ValueError, match="name"):
        SystemCard.model_validate({"name": name, **fields})


@pytest.mark.parametrize("key", ["../x", "/x", "a/../../x", "a\\b", "a\0b", ""])
def test_no_key_of_the_store_leads_outside(key, tmp_path):
    store = FolderStore(tmp_path / "store")
    for use in (store.get, store.exists, store.delete, store.stamp, lambda key: store.put(key, b""),
                lambda key: store.put_if_absent(key, b""), lambda key: list(store.keys(key))):  # fmt: skip
        with pytest.raises(ValueError, match="not a relative path"):
            use(key)
    assert not (tmp_path / "x").exists()


def bundle(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, size, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, size if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            archive.addfile(member, io.BytesIO(bytes(size)))
    return path


@pytest.mark.parametrize(
    "member",
    [("../outside.json", 10, tarfile.REGTYPE), ("/outside.json", 10, tarfile.REGTYPE),
     ("b/../../outside.json", 10, tarfile.REGTYPE), ("b/link.json", 0, tarfile.SYMTYPE),
     ("b/hard.json", 0, tarfile.LNKTYPE), ("b/pipe", 0, tarfile.FIFOTYPE), ("b/device", 0, tarfile.CHRTYPE),
     ("alone.json", 10, tarfile.REGTYPE)],
    ids=["up", "absolute", "up again", "link", "hard link", "pipe", "device", "no folder"],
)  # fmt: skip
def test_a_bundle_with_a_member_that_leads_outside_is_refused(member, tmp_path):
    path = bundle(tmp_path / "b.tar.gz", [("b/fine.json", 10, tarfile.REGTYPE), member])
    with pytest.raises(ReleaseError, match="do not use"), opened(path):
        pass
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_bundle_that_unpacks_to_far_more_than_its_size_is_refused_before_it_is_unpacked(tmp_path):
    # 300 MB of zeros in a file of 0.3 MB; written without holding them.
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number in range(3):
            member = tarfile.TarInfo(f"b/{number}.json")
            member.size = 100 * 1024**2
            with (tmp_path / "zeros").open("wb+") as zeros:
                zeros.truncate(member.size)
                archive.addfile(member, zeros)
    (tmp_path / "zeros").unlink()
    with pytest.raises(ReleaseError, match="do not use"), opened(path):
        pass
    with pytest.raises(ReportInputError, match="do not use"):
        load_run(path)


def trees():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8"))


def name_of(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id if isinstance(node, ast.Name) else ""]))


def given(call, name):
    return next(
        (word.value.value for word in call.keywords if word.arg == name and isinstance(word.value, ast.Constant)), None
    )


UNPICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}


def test_nothing_from_outside_is_unpickled_or_evaluated():
    imported, wrong = set(), []
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                imported |= {(file, name) for name in names if name.split(".")[0] in UNPICKLES}
            if not isinstance(node, ast.Call):
                continue
            called = name_of(node.func)
            if called.endswith("np.load") and given(node, "allow_pickle") is not False:
                wrong.append((file, node.lineno, called))
            if called.endswith(("torch.load", "torch.jit.load")) and given(node, "weights_only") is not True:
                wrong.append((file, node.lineno, called))
            if called in {"eval", "exec", "os.system", "yaml.load", "yaml.unsafe_load"} or called.startswith("pickle."):
                wrong.append((file, node.lineno, called))
            if called.endswith((".extractall", ".extract", "read_pickle")) or given(node, "shell") is True:
                wrong.append((file, node.lineno, called))
    assert wrong == []
    # For the name of the exception that torch raises where a checkpoint holds more than tensors.
    for file, name in imported:
        uses = set(re.findall(r"\bpickle\.(\w+)", (PACKAGE / file).read_text("utf-8")))
        assert (name, uses) == ("pickle", {"UnpicklingError"}), file
    # Dagster's own default stores pickles; every asset's table goes through ours.
    assert isinstance(RESOURCES["io_manager"], TableIOManager)


RAW = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "| safe", "|safe", "Markup(", "eval(")


def test_pages_show_texts_as_text():
    """Names, titles, notes, transcripts: no page of ours takes one as HTML, and every template escapes."""
    pages = [path for kind in ("*.js", "*.html") for path in PACKAGE.rglob(kind)]
    own = [path for path in pages if ".min." not in path.name and "vendor" not in path.parts]
    assert len(own) > 10
    found = [(path.name, word) for path in own for word in RAW if word in path.read_text("utf-8")]
    assert found == []
    environments = [(file, given(node, "autoescape")) for file, tree in trees() for node in ast.walk(tree)
                    if isinstance(node, ast.Call) and name_of(node.func).endswith("jinja2.Environment")]  # fmt: skip
    assert len(environments) >= 3
    assert all(escapes is True for _, escapes in environments), environments


# Where a server is made, and the test below that shows who may reach it. Unix sockets lie in a folder of their owner.
SERVERS = {
    "cli/review.py", "cli/talk.py", "cli/health.py", "cli/ui.py", "cli/cluster/control.py", "systems/serving/host.py",
    "stages/telemetry/exposition.py", "contract/worker.py",
}  # fmt: skip
MAKES_SERVERS = ("uvicorn.run", "uvicorn.Server", "make_server", "create_server", "ThreadingHTTPServer", "HTTPServer",
                 "start_http_server", "start_server")  # fmt: skip


def test_every_server_is_known_to_these_tests():
    found = set()
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = name_of(node.func)
                listens = called.endswith(".listen") and file.startswith("contract")
                if called.endswith(MAKES_SERVERS) or listens:
                    found.add(file)
            if isinstance(node, ast.ImportFrom) and node.module == "websockets.asyncio.server":
                found.add(file)
            # Dagster's own, started as another process.
            if (
                file.startswith("cli/")
                and isinstance(node, ast.Constant)
                and node.value in {"dagster_webserver", "dev"}
            ):
                found.add(file)
    assert found == SERVERS


def test_a_server_beyond_this_machine_asks_for_a_token(tmp_path, monkeypatch):
    for name in (TOKEN_VARIABLE,):
        monkeypatch.delenv(name, raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", "bench.example"):
        with pytest.raises(ValueError, match="lets others in"):
            ReviewSettings(token="only-one").check_host(host)
        with pytest.raises(ValueError, match="lets others in"):
            serve_protocol("openai-realtime", 0, host, "tone", None, 0.1, 1.0, tmp_path)
        with pytest.raises(ValueError, match="lets others in"):
            check_address(host, None, "metrics", "X")
        with pytest.raises(ValueError, match="lets others in"):
            show_health(tmp_path, tmp_path / "data", host, 0)
    ReviewSettings(token="a", administrator_token="b").check_host("0.0.0.0")
    check_address("0.0.0.0", "token", "metrics", "X")
    check_address("127.0.0.1", None, "metrics", "X")


def test_servers_without_a_token_have_no_other_host_to_choose_and_the_others_choose_loopback():
    assert talk.HOST == ui.HOST == cluster.HOST == "127.0.0.1"
    commands = get_command(app).commands
    hosts = {}

    def collect(path, command):
        for name, below in getattr(command, "commands", {}).items():
            collect(f"{path} {name}", below)
        for option in command.params:
            if "--host" in option.opts:
                hosts[path.strip()] = option.default

    for name, command in commands.items():
        collect(name, command)
    assert hosts == {"serve": "127.0.0.1", "review": "127.0.0.1", "health": "127.0.0.1"}
