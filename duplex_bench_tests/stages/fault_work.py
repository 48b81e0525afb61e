"""Work for the fault tests, as a program: each item is paid for once more each time it is computed.

``python fault_work.py DATA N [PAUSE_S [HELD]]`` runs N items over the store of the environment and prints the counts;
item HELD waits, once its purchase is noted, until there is a file ``let-go``.
"""

import json
import sys
import threading
from pathlib import Path

from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.places import open_store

SCOPE = "track/rollouts/paid"


def paid(data, pause_s, held, number):
    """Store what was bought, after noting the purchase where no fault reaches: one line a purchase."""
    with (Path(data) / "purchases").open("a") as purchases:
        purchases.write(f"{number}\n")
    threading.Event().wait(pause_s)
    while number == held and not (Path(data) / "let-go").exists():
        threading.Event().wait(0.01)
    digest = BlobStore(open_store(data)).put(f"audio of {number} ".encode() * 500, "flac")
    return json.dumps({"audio": digest, "number": number})


def tasks(n):
    return [Task(f"key-{number}", f"item-{number}", number) for number in range(n)]


def run(data, n, pause_s=0.0, held=None):
    store = open_store(data)
    blobs = BlobStore(store)

    def intact(payloads):
        keys = {payload: blobs.key(json.loads(payload)["audio"], "flac") for payload in payloads}
        gone = store.missing(sorted(keys.values()))
        return {payload for payload, key in keys.items() if key not in gone}

    return resume(
        ItemLedger(store, SCOPE), "paid items", tasks(n), paid, common=(str(data), pause_s, held), intact=intact
    )


if __name__ == "__main__":
    done = run(Path(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:]))
    sys.stdout.write(json.dumps(done.counts()))
