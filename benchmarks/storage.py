"""Storage and orchestration: what an item costs beside its work, how work scales over processes, S3 against boto3.

Each figure is measured side by side in one run. Wall time and scaling need the machine to itself: two busy processes
cannot be 1.8 times as fast as one where others keep the cores busy. Requests and CPU time of an item hardly
depend on it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from duplex_bench.cli.cluster.processes import Processes
from duplex_bench.cli.cluster.services import start_store
from duplex_bench.cli.cluster.settings import own_services
from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.cached_store import CachedStore
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.object_store import FolderStore, ObjectStore
from duplex_bench.storage.s3_store import S3Store

LOCAL_LIMIT_MS = 5.0
BUCKET_LIMIT_MS = 20.0
SCALE_LIMIT = 1.8
S3_SHARE_LIMIT = 0.8
ITEMS = 200
AUDIO_BYTES = 900_000  # 30 s of speech at 24 kHz as FLAC
EVENTS_BYTES = 20_000
MOVED = 160
COMMITTED = 40
"""Blobs that a ledger's segment names: of 20 items, audio and events each."""
THREADS = 4
BUSY_S = 0.1


def item(store: ObjectStore, audio: bytes, number: int) -> str:
    """What a rollout stores: its audio and its events, different for each."""
    blobs = BlobStore(store)
    blobs.put(audio[:-8] + number.to_bytes(8), "flac")
    return blobs.put(audio[:EVENTS_BYTES] + number.to_bytes(8), "jsonl.gz")


def per_item_ms(store: ObjectStore) -> float:
    """Milliseconds an item takes when its work takes none: keys, lease, blobs, ledger."""
    audio = np.random.default_rng(1).bytes(AUDIO_BYTES)
    tasks = [Task(f"key-{number}", f"item-{number}", number) for number in range(ITEMS)]
    began = time.perf_counter()
    resume(ItemLedger(store, f"bench/{time.monotonic_ns()}"), "bench", tasks, item, common=(store, audio))
    return (time.perf_counter() - began) / ITEMS * 1e3


def counted_requests(store: S3Store) -> list[int]:
    """How many requests the store's client sends from now on: the one number of the list."""
    count = [0]

    def sent(**_: object) -> None:
        count[0] += 1

    store._client.meta.events.register("before-send.s3", sent)
    return count


def busy(number: int) -> str:
    """A tenth of a second of one core."""
    ends = time.process_time() + BUSY_S
    total = float(number)
    while time.process_time() < ends:
        total += 1.0
    return str(total > 0)


def scaling(folder: Path) -> float:
    """Items a second with two processes over that with one."""
    rates = []
    for n in (1, 2):
        with ProcessPoolExecutor(n) as pool:
            list(pool.map(busy, range(n)))
            rates.append(_rate(folder / str(n), pool))
    return rates[1] / rates[0]


def _rate(folder: Path, pool: Executor) -> float:
    tasks = [Task(str(number), str(number), number) for number in range(60)]
    began = time.perf_counter()
    resume(ItemLedger(FolderStore(folder), "bench"), "bench", tasks, busy, executor=pool)
    return len(tasks) / (time.perf_counter() - began)


def s3_share(store: S3Store, client: Any, copies: Path, seed: int) -> tuple[float, float]:
    """Megabytes a second of our path over that of ``client``: (writing, reading), in turns.

    Writing as a run does, copies and look-ups included; reading from the bucket, as where there is no copy yet.
    """
    data = np.random.default_rng(seed).bytes(AUDIO_BYTES)
    bucket, aside = store.bucket, f"bare/{seed}"
    blobs, cached = BlobStore(store), CachedStore(store, copies)
    written = BlobStore(cached)
    parts = [data[:-8] + number.to_bytes(8) for number in range(MOVED)]
    taken = {"put": 0.0, "get": 0.0, "bare put": 0.0, "bare get": 0.0}
    with ThreadPoolExecutor(THREADS) as threads:

        def timed(name: str, function: Callable[[int], object], numbers: range) -> list[object]:
            began = time.perf_counter()
            found = list(threads.map(function, numbers))
            taken[name] += time.perf_counter() - began
            return found

        def ours(some: range) -> dict[int, str]:
            digests = timed("put", lambda n: written.put(parts[n], "flac"), some)
            began = time.perf_counter()
            cached.settle()
            taken["put"] += time.perf_counter() - began
            return dict(zip(some, map(str, digests), strict=True))

        def bare(some: range) -> None:
            timed("bare put", lambda n: client.put_object(Bucket=bucket, Key=f"{aside}/{n}", Body=parts[n]), some)

        for start in range(0, MOVED, COMMITTED):
            some = range(start, start + COMMITTED)
            # What the server still does for the one that went first falls to the next: each goes first as often.
            if start // COMMITTED % 2:
                bare(some)
                digests = ours(some)
                timed("get", partial(_read, blobs, digests), some)
                timed("bare get", partial(_bare_read, client, bucket, aside), some)
            else:
                digests = ours(some)
                bare(some)
                timed("bare get", partial(_bare_read, client, bucket, aside), some)
                timed("get", partial(_read, blobs, digests), some)
    return taken["bare put"] / taken["put"], taken["bare get"] / taken["get"]


def _read(blobs: BlobStore, digests: dict[int, str], number: int) -> bytes:
    return blobs.get(digests[number], "flac")


def _bare_read(client: Any, bucket: str, aside: str, number: int) -> bytes:
    data: bytes = client.get_object(Bucket=bucket, Key=f"{aside}/{number}")["Body"].read()
    return data


def main() -> int:
    """Print the figures; 1 if a limit was passed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = own_services(folder / "services")
        processes = Processes(folder / "services" / "processes")
        start_store(processes, folder / "services", own)
        try:
            os.environ.update({name: value for name, value in own.environment().items() if name.startswith("AWS_")})
            bucket = S3Store("bench")
            bucket.make_bucket()
            local_ms = per_item_ms(FolderStore(folder / "store"))
            requests = counted_requests(bucket)
            cpu_s = time.process_time()
            bucket_ms = per_item_ms(CachedStore(bucket, folder / "copies"))
            cpu_ms = (time.process_time() - cpu_s) / ITEMS * 1e3
            of_item = requests[0] / ITEMS
            import boto3

            plain = s3_share(bucket, boto3.client("s3"), folder / "moved", seed=2)
            stripped = s3_share(bucket, bucket._client, folder / "moved", seed=3)
        finally:
            processes.stop("objects", patience_s=1.0)
        scale = scaling(folder)
    print(f"an item beside its work: {local_ms:.1f} ms local (limit {LOCAL_LIMIT_MS:.0f}), "
          f"{bucket_ms:.1f} ms with a bucket (limit {BUCKET_LIMIT_MS:.0f}): "
          f"{of_item:.2f} requests, {cpu_ms:.1f} ms of CPU on our side")  # fmt: skip
    print(f"two processes over one: {scale:.2f} times (limit {SCALE_LIMIT}), load {os.getloadavg()[0]:.1f}")
    print(f"audio by our S3 path over boto3's client as it comes: {_told(plain)} (limit {S3_SHARE_LIMIT})")
    print(f"over a client that checks nothing: {_told(stripped)}")
    kept = local_ms < LOCAL_LIMIT_MS and bucket_ms < BUCKET_LIMIT_MS
    return 0 if kept and scale >= SCALE_LIMIT and there_and_back(plain) >= S3_SHARE_LIMIT else 1


def there_and_back(share: tuple[float, float]) -> float:
    """The share where as much is written as read."""
    written, read = share
    return 2 / (1 / written + 1 / read)


def _told(share: tuple[float, float]) -> str:
    return f"writing {share[0]:.2f}, reading {share[1]:.2f}, there and back {there_and_back(share):.2f}"


if __name__ == "__main__":
    sys.exit(main())
