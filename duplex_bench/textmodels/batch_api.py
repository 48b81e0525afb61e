"""The vendors' batch endpoints: submit, look, collect. One class each; facts of the wire are in docs/text-models.md."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from duplex_bench.textmodels.access import base_url, key_of, without_key
from duplex_bench.textmodels.errors import RequestRefusedError, TransientError
from duplex_bench.textmodels.settings import ANTHROPIC_VERSION, ModelSettings
from duplex_bench.textmodels.transport import http_fault
from duplex_bench.textmodels.wire import WireRequest

_OK: Final = 200
_LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One answered request: the response body, or the fault. ``expired``: it was not tried, and cost nothing."""

    response: str | None
    fault: str = ""
    expired: bool = False


@dataclass(frozen=True, slots=True)
class BatchLook:
    """How a batch stands: ``items`` by custom id once it has ended, else None; ``told`` is the vendor's own word."""

    told: str
    items: Mapping[str, BatchItem] | None = None


class BatchApi(Protocol):
    """Batches at one vendor. Faults are those of ``transport``: transient ones may be tried again."""

    def submit(self, name: str, requests: Sequence[tuple[str, WireRequest]], /) -> str:
        """Start a batch called ``name`` of requests with their custom ids; the vendor's id of it."""
        ...

    def find(self, name: str, n_requests: int, since: datetime, /) -> str | None:
        """The id of a batch that was started as ``name`` and whose id was never written down; None if none was.

        Raises:
            RequestRefusedError: several fit, and the vendor keeps no name to tell them apart.
        """
        ...

    def look(self, batch_id: str, custom_ids: Sequence[str], /) -> BatchLook:
        """How the batch stands, with its answers once it has ended."""
        ...


def batch_api(settings: ModelSettings) -> BatchApi:
    """The batch endpoint of a vendor.

    Raises:
        MissingKeyError: no key in the environment.
        RequestRefusedError: a vendor without one that is known here.
    """
    if settings.vendor == "openai":
        return _OpenAI(settings)
    if settings.vendor == "anthropic":
        return _Anthropic(settings)
    if settings.vendor == "gemini":
        return _Gemini(settings)
    raise RequestRefusedError(f"{settings.name}: no batch endpoint is known: leave out judge.batch", 0)


class _Http:
    def __init__(self, settings: ModelSettings) -> None:
        import httpx

        self._key = key_of(settings)
        self._name = settings.name
        self._vendor = httpx
        self._client = httpx.Client(
            base_url=base_url(settings), timeout=settings.timeout_s, headers=self._headers(settings)
        )

    def _headers(self, _settings: ModelSettings, /) -> dict[str, str]:
        raise NotImplementedError

    def _send(self, method: str, path: str, **more: Any) -> str:
        try:
            got = self._client.request(method, path, **more)
        except self._vendor.TransportError as error:
            told = without_key(str(error), self._key) or type(error).__name__
            raise TransientError(f"{self._name}: the connection failed: {told}") from None
        if got.status_code != _OK:
            raise http_fault(self._name, got.status_code, got.text, got.headers, self._key)
        return without_key(got.text, self._key)

    def _object(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        text = self._send(method, path, **more)
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise TransientError(f"{self._name}: {path} did not answer with a JSON object")
        return found


class _OpenAI(_Http):
    def _headers(self, _settings: ModelSettings, /) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"}

    def submit(self, name: str, requests: Sequence[tuple[str, WireRequest]], /) -> str:
        lines = [
            json.dumps({"custom_id": custom, "method": "POST", "url": f"/v1{wire.path}", "body": wire.body})
            for custom, wire in requests
        ]
        sent = {"file": (f"{name}.jsonl", "\n".join(lines).encode(), "application/jsonl")}
        uploaded = self._object("POST", "/files", data={"purpose": "batch"}, files=sent)
        made = self._object(
            "POST",
            "/batches",
            json={
                "input_file_id": uploaded["id"],
                "endpoint": "/v1/chat/completions",
                "completion_window": "24h",
                "metadata": {"duplex_bench": name},
            },
        )
        return str(made["id"])

    def find(self, name: str, _n_requests: int, _since: datetime, /) -> str | None:
        for one in self._object("GET", "/batches", params={"limit": _LISTED}).get("data", []):
            if (one.get("metadata") or {}).get("duplex_bench") == name:
                return str(one["id"])
        return None

    def look(self, batch_id: str, custom_ids: Sequence[str], /) -> BatchLook:
        found = self._object("GET", f"/batches/{batch_id}")
        status = str(found.get("status", ""))
        if status not in {"completed", "failed", "expired", "cancelled"}:
            return BatchLook(status)
        items: dict[str, BatchItem] = {}
        for name in ("output_file_id", "error_file_id"):
            if found.get(name):
                items |= dict(map(_openai_item, _lines(self._send("GET", f"/files/{found[name]}/content"))))
        why = "; ".join(str(one.get("message", "")) for one in (found.get("errors") or {}).get("data") or [])
        rest = BatchItem(None, f"the batch is {status}{': ' + why if why else ''}", expired=True)
        return BatchLook(status, {custom: items.get(custom, rest) for custom in custom_ids})


def _openai_item(row: dict[str, Any]) -> tuple[str, BatchItem]:
    error, response = row.get("error"), row.get("response") or {}
    if error:
        code = str(error.get("code", ""))
        return row["custom_id"], BatchItem(None, f"{code}: {error.get('message', '')}", code == "batch_expired")
    body = json.dumps(response.get("body"))
    if response.get("status_code") != _OK:
        return row["custom_id"], BatchItem(None, f"HTTP {response.get('status_code')}: {body[:300]}")
    return row["custom_id"], BatchItem(body)


class _Anthropic(_Http):
    def _headers(self, settings: ModelSettings, /) -> dict[str, str]:
        return {"x-api-key": self._key, "anthropic-version": settings.api_version or ANTHROPIC_VERSION}

    def submit(self, _name: str, requests: Sequence[tuple[str, WireRequest]], /) -> str:
        rows = [{"custom_id": custom, "params": wire.body} for custom, wire in requests]
        return str(self._object("POST", "/v1/messages/batches", json={"requests": rows})["id"])

    def find(self, _name: str, n_requests: int, since: datetime, /) -> str | None:
        # It keeps no name: time and size must tell, and custom ids are checked when answers are collected.
        listed = self._object("GET", "/v1/messages/batches", params={"limit": _LISTED}).get("data", [])
        found = [
            str(one["id"])
            for one in listed
            if datetime.fromisoformat(one["created_at"]) >= since
            and sum((one.get("request_counts") or {}).values()) == n_requests
        ]
        if len(found) > 1:
            raise RequestRefusedError(
                f"{self._name}: batches {', '.join(found)} could all be one that a killed run began: cancel what is "
                "not yours there, or delete the record below textmodels/batches to send its requests again",
                0,
            )
        return found[0] if found else None

    def look(self, batch_id: str, custom_ids: Sequence[str], /) -> BatchLook:
        found = self._object("GET", f"/v1/messages/batches/{batch_id}")
        status = str(found.get("processing_status", ""))
        if status != "ended":
            return BatchLook(status)
        items = dict(map(_anthropic_item, _lines(self._send("GET", f"/v1/messages/batches/{batch_id}/results"))))
        missing = BatchItem(None, "the results do not hold it", expired=True)
        return BatchLook(status, {custom: items.get(custom, missing) for custom in custom_ids})


def _anthropic_item(row: dict[str, Any]) -> tuple[str, BatchItem]:
    result = row["result"]
    kind = result["type"]
    if kind == "succeeded":
        return row["custom_id"], BatchItem(json.dumps(result["message"]))
    if kind == "errored":
        error = result.get("error", {}).get("error", result.get("error", {}))
        return row["custom_id"], BatchItem(None, f"{error.get('type', '')}: {error.get('message', '')}")
    return row["custom_id"], BatchItem(None, kind, expired=True)


class _Gemini(_Http):
    def _headers(self, settings: ModelSettings, /) -> dict[str, str]:
        self._model = settings.model
        return {"x-goog-api-key": self._key}

    def submit(self, name: str, requests: Sequence[tuple[str, WireRequest]], /) -> str:
        rows = [{"request": wire.body, "metadata": {"key": custom}} for custom, wire in requests]
        batch = {"displayName": name, "inputConfig": {"requests": {"requests": rows}}}
        made = self._object("POST", f"/v1beta/models/{self._model}:batchGenerateContent", json={"batch": batch})
        return str(made["name"])

    def find(self, name: str, _n_requests: int, _since: datetime, /) -> str | None:
        for one in self._object("GET", "/v1beta/batches", params={"pageSize": _LISTED}).get("operations", []):
            if (one.get("metadata") or {}).get("displayName") == name:
                return str(one["name"])
        return None

    def look(self, batch_id: str, custom_ids: Sequence[str], /) -> BatchLook:
        found = self._object("GET", f"/v1beta/{batch_id}")
        told = found.get("metadata") or {}
        status = str(told.get("state", ""))
        if not found.get("done"):
            return BatchLook(status)
        output = found.get("response") or told.get("output") or {}
        listed = (output.get("inlinedResponses") or {}).get("inlinedResponses") or []
        why = str((found.get("error") or {}).get("message", ""))
        rest = BatchItem(None, f"the batch ended: {status}{' ' + why if why else ''}", expired=True)
        # Answers come in the order of the requests; not every version of the API sends the keys back.
        named = {(one.get("metadata") or {}).get("key") or custom: _gemini_item(one)
                 for one, custom in zip(listed, custom_ids, strict=False)}  # fmt: skip
        return BatchLook(status, {custom: named.get(custom, rest) for custom in custom_ids})


def _gemini_item(row: dict[str, Any]) -> BatchItem:
    if row.get("response") is not None:
        return BatchItem(json.dumps(row["response"]))
    error = row.get("error") or {}
    return BatchItem(None, f"{error.get('code', '')}: {error.get('message', 'no response')}")


def _lines(text: str) -> list[dict[str, Any]]:
    # Not splitlines: JSON leaves a line separator (U+2028) within a text as it is.
    return [json.loads(line) for line in text.split("\n") if line.strip()]
