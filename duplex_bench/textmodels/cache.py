"""Raw responses by whole request, stored before anything is read from them."""

import json
from dataclasses import dataclass

from duplex_bench.storage.digests import canonical_json
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.textmodels.wire import WireRequest


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One response: the body as it came (a key that it quoted hidden), when, and how many sends it took.

    ``batch`` is the vendor's id of the batch that it came in, ``factor`` what it cost of the usual price.
    """

    response: str
    at: str
    sends: int
    wall_s: float
    batch: str = ""
    factor: float = 1.0


class ResponseCache:
    """``textmodels/responses/<aa>/<key>/<reading>.json``: the request beside each response, never a header."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def _name(self, key: str, reading: int) -> str:
        return f"textmodels/responses/{key[:2]}/{key}/{reading}.json"

    def get(self, key: str, reading: int) -> StoredResponse | None:
        """The stored response, or None: none there, or one that cannot be read (it is fetched anew)."""
        try:
            found = json.loads(self._store.get(self._name(key, reading)))
            return StoredResponse(
                found["response"], found["at"], found["sends"], found["wall_s"], found.get("batch", ""),
                found.get("factor", 1.0),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            # ValueError: no JSON, or cut within a letter.
            return None

    def put(self, key: str, reading: int, wire: WireRequest, stored: StoredResponse) -> None:
        """Store a response with the request that it answers."""
        told = {
            "path": wire.path,
            "api_version": wire.api_version,
            "body": wire.body,
            "response": stored.response,
            "at": stored.at,
            "sends": stored.sends,
            "wall_s": stored.wall_s,
            **({"batch": stored.batch, "factor": stored.factor} if stored.batch else {}),
        }
        self._store.put(self._name(key, reading), canonical_json(told).encode())
