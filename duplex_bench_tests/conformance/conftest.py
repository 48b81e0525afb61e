import subprocess
import sys
import venv
from pathlib import Path

import numpy
import pytest

from duplex_bench.systems.card import Environment, SystemCard

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def foreign_interpreter(tmp_path_factory):
    """Another virtual environment that holds numpy and nothing else; made without a network."""
    folder = tmp_path_factory.mktemp("foreign")
    venv.create(folder / "env", with_pip=False)
    packages = folder / "numpy_only"
    packages.mkdir()
    installed = Path(numpy.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (installed.parent / name).exists():
            (packages / name).symlink_to(installed.parent / name)
    interpreter = folder / "env" / "bin" / "python"
    site = subprocess.check_output(
        [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    (Path(site) / "numpy_only.pth").write_text(f"{packages}\n")
    return str(interpreter)


@pytest.fixture
def foreign_card(foreign_interpreter):
    def card(factory):
        return SystemCard(
            name="foreign", title="Foreign", family="full_duplex", licence="Apache-2.0",
            adapter=f"systems_under_test:{factory}",
            environment=Environment(kind="python", interpreter=foreign_interpreter, python_path=(str(HERE),)),
        )  # fmt: skip

    return card


@pytest.fixture(scope="session")
def under_test():
    """The module of systems, imported as the worker imports it."""
    sys.path.insert(0, str(HERE))
    try:
        import systems_under_test
    finally:
        sys.path.remove(str(HERE))
    return systems_under_test
