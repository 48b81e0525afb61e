"""Services of a cluster folder: what a killed server leaves behind, and folders that it cannot enter."""

import os
import subprocess
from pathlib import Path

import pytest

from duplex_bench.cli.cluster import services
from duplex_bench.cli.cluster.processes import wait_until

pytestmark = pytest.mark.process


def test_a_killed_server_is_there_until_somebody_waited_for_it(tmp_path):
    assert not services._still_named(tmp_path)
    process = subprocess.Popen(["sleep", "600"])
    (tmp_path / "postmaster.pid").write_text(f"{process.pid}\n{tmp_path}\n")
    assert services._still_named(tmp_path)
    process.kill()
    # Ended, but a zombie: Postgres would refuse to start.
    ended = Path(f"/proc/{process.pid}/stat")
    assert wait_until(lambda: ended.read_text().rsplit(")", 1)[1].split()[0] == "Z", 120)
    assert services._still_named(tmp_path)
    process.wait()
    assert not services._still_named(tmp_path)
    (tmp_path / "postmaster.pid").write_text("")
    assert not services._still_named(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts Postgres as another user")
def test_a_folder_that_postgres_may_not_enter_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    try:
        services.pwd.getpwnam("postgres")
    except KeyError:
        with pytest.raises(services.ServiceMissingError, match="no user postgres"):
            services._not_root(closed / "postgres")
        return
    with pytest.raises(ValueError, match="may not enter"):
        services._not_root(closed / "postgres")
