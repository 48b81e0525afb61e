"""What a cluster is reached by: addresses from the environment, or services of its own on loopback."""

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path

from duplex_bench.lib.broker import BROKER_VARIABLE, POSTGRES_VARIABLE
from duplex_bench.storage.places import STORE_VARIABLE

LOG_BUCKET_VARIABLE = "DUPLEX_BENCH_LOG_BUCKET"
DATA_VARIABLE = "DUPLEX_BENCH_DATA"
WEB_VARIABLE = "DUPLEX_BENCH_WEB"
PROFILE_VARIABLE = "DUPLEX_BENCH_PROFILE"
LIMIT_VARIABLE = "DUPLEX_BENCH_LIMIT"
OWN_BUCKET = "duplex-bench"
HOST = "127.0.0.1"
# Above what well-known services listen at; Linux's own default; so many that two who draw at once do not meet (ours).
_FIRST_LASTING = 12_000
_FIRST_HANDED_OUT = 32_768
_ENOUGH_PORTS = 2_000


@dataclass(frozen=True, slots=True)
class OwnServices:
    """Ports and made-up credentials of the services that ``cluster up`` starts on loopback for what is not given."""

    postgres_port: int
    redis_port: int
    store_port: int
    store_other_ports: tuple[int, ...]
    web_port: int
    password: str
    access_key: str
    secret_key: str

    @property
    def postgres(self) -> str:
        """SQLAlchemy address of the database; the driver is named since SQLAlchemy's default is another."""
        return f"postgresql+psycopg2://duplex_bench:{self.password}@{HOST}:{self.postgres_port}/duplex_bench"

    @property
    def broker(self) -> str:
        """Address of the broker."""
        return f"redis://:{self.password}@{HOST}:{self.redis_port}/0"

    def environment(self) -> dict[str, str]:
        """What the variables are set to where the caller's environment does not name a service."""
        found: dict[str, str] = {}
        if not os.environ.get(POSTGRES_VARIABLE):
            found[POSTGRES_VARIABLE] = self.postgres
        if not os.environ.get(BROKER_VARIABLE):
            found[BROKER_VARIABLE] = self.broker
        if not os.environ.get(STORE_VARIABLE):
            found |= {
                STORE_VARIABLE: f"s3://{OWN_BUCKET}",
                "AWS_ENDPOINT_URL_S3": f"http://{HOST}:{self.store_port}",
                "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_DEFAULT_REGION": "us-east-1",
            }
        return {LOG_BUCKET_VARIABLE: log_bucket(found.get(STORE_VARIABLE, "")), **found}


def log_bucket(store: str = "") -> str:
    """Bucket of the steps' logs: the one that is named, or that of the object store."""
    address = store or os.environ.get(STORE_VARIABLE, "")
    return os.environ.get(LOG_BUCKET_VARIABLE) or address.removeprefix("s3://").split("/", 1)[0]


def started_here(folder: Path) -> bool:
    """Whether ``cluster up`` was ever called for this folder."""
    return (folder / "services.json").is_file()


def own_services(folder: Path) -> OwnServices:
    """Those of this folder, made up at first use. The file holds credentials of loopback services: only its owner
    may read it.
    """
    path = folder / "services.json"
    if path.is_file():
        known = json.loads(path.read_text("utf-8"))
        return OwnServices(**{**known, "store_other_ports": tuple(known["store_other_ports"])})
    postgres, redis, store, web, *others = free_ports(12)
    made = OwnServices(
        postgres,
        redis,
        store,
        tuple(others),
        web,
        secrets.token_urlsafe(16),
        secrets.token_hex(8),
        secrets.token_urlsafe(24),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(made)), "utf-8")
    return made


@dataclass(frozen=True, slots=True)
class Runs:
    """What the processes of a cluster run: a profile, at most so many items a track (None: all), and the systems that
    they knew when they started.
    """

    profile: str
    limit: int | None = None
    systems: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"profile {self.profile}" + (f" --limit {self.limit}" if self.limit else "")


def runs_of(folder: Path) -> Runs | None:
    """What ``cluster up`` was last told to run here; None where it never was."""
    try:
        told = json.loads((folder / "runs.json").read_text("utf-8"))
        return Runs(told["profile"], told["limit"], tuple(told["systems"]))
    except FileNotFoundError:
        return None


def wanted_runs(folder: Path, profile: str | None, limit: int | None) -> Runs:
    """What is asked for; unsaid, what the cluster runs already, what the environment names, or the demo."""
    known = runs_of(folder)
    if profile is None and known is not None:
        return Runs(known.profile, limit or known.limit)
    named = profile or os.environ.get(PROFILE_VARIABLE) or "demo"
    return Runs(named, limit or int(os.environ.get(LIMIT_VARIABLE) or 0) or None)


def note_runs(folder: Path, runs: Runs) -> None:
    """Write down what the processes run from now on."""
    (folder / "runs.json").write_text(json.dumps(asdict(runs)), "utf-8")


def free_ports(number: int) -> list[int]:
    """Ports of loopback that nobody holds now, and that the system gives to nobody who asks for just any.

    A port from the range of those would be somebody's by the time a service binds it, or is started again.
    """
    held: dict[int, socket.socket] = {}
    drawn = secrets.SystemRandom()
    places = _lasting_ports()
    try:
        while len(held) < number:
            one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                one.bind((HOST, drawn.choice(places) if places else 0))
            except OSError:
                one.close()
                continue
            held[int(one.getsockname()[1])] = one
        return list(held)
    finally:
        for one in held.values():
            one.close()


def _lasting_ports() -> range:
    """Unprivileged ports outside the range that Linux hands out from; empty where that range leaves too few."""
    try:
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    except OSError:
        low = _FIRST_HANDED_OUT
    return range(_FIRST_LASTING, low) if low - _FIRST_LASTING >= _ENOUGH_PORTS else range(0)


def listens(port: int) -> bool:
    """Whether somebody accepts connections at a port of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
