"""One send of one request: over the vendors' own packages, or httpx where there is none; faults told apart."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

from duplex_bench.textmodels.access import base_url, key_of, without_key
from duplex_bench.textmodels.errors import RequestRefusedError, TransientError
from duplex_bench.textmodels.settings import ANTHROPIC_VERSION, ModelSettings
from duplex_bench.textmodels.wire import WireRequest

_RATE_LIMITED: Final = 429
_SERVER_FAULTS: Final = 500
_OK: Final = 200
_TOLD_CHARACTERS: Final = 300
# A 429 for an empty account will not pass by waiting.
_NO_MONEY: Final = "insufficient_quota"


class Transport(Protocol):
    """Sends a request once and returns the body of a good response."""

    def send(self, wire: WireRequest) -> str:
        """The body as text.

        Raises:
            TransientError: sending again may help.
            RequestRefusedError: it will not.
        """
        ...


def transport(settings: ModelSettings) -> Transport:
    """The transport of a vendor; loads its package.

    Raises:
        MissingKeyError: no key in the environment.
    """
    if settings.vendor == "anthropic":
        return _Anthropic(settings)
    if settings.vendor == "gemini":
        return _Gemini(settings)
    return _OpenAI(settings)


class _VendorPackage:
    """What the two vendors' packages, which are built alike, have in common: only how a client is made differs."""

    _key: str
    _name: str
    _vendor: Any
    _client: Any
    _response: Any

    def send(self, wire: WireRequest) -> str:
        try:
            got = self._client.post(wire.path, cast_to=self._response, body=wire.body)
        except self._vendor.APIStatusError as error:
            response = error.response
            raise http_fault(self._name, response.status_code, response.text, response.headers, self._key) from None
        except self._vendor.APIConnectionError as error:
            raise _lost(self._name, error, self._key) from None
        return without_key(got.text, self._key)


class _OpenAI(_VendorPackage):
    def __init__(self, settings: ModelSettings) -> None:
        import httpx2
        import openai

        self._key = key_of(settings)
        self._vendor = openai
        self._response = httpx2.Response
        self._name = settings.name
        # Retries are ours: they are counted, and honour what the server asks for.
        self._client = openai.OpenAI(
            api_key=self._key or "none", base_url=base_url(settings), max_retries=0, timeout=settings.timeout_s
        )


class _Anthropic(_VendorPackage):
    def __init__(self, settings: ModelSettings) -> None:
        import anthropic
        import httpx2

        self._key = key_of(settings)
        self._vendor = anthropic
        self._response = httpx2.Response
        self._name = settings.name
        self._client = anthropic.Anthropic(
            api_key=self._key,
            base_url=base_url(settings),
            max_retries=0,
            timeout=settings.timeout_s,
            default_headers={"anthropic-version": settings.api_version or ANTHROPIC_VERSION},
        )


class _Gemini:
    def __init__(self, settings: ModelSettings) -> None:
        import httpx

        self._key = key_of(settings)
        self._vendor = httpx
        self._name = settings.name
        self._client = httpx.Client(
            base_url=base_url(settings), timeout=settings.timeout_s, headers={"x-goog-api-key": self._key}
        )

    def send(self, wire: WireRequest) -> str:
        try:
            got = self._client.post(wire.path, json=wire.body)
        except self._vendor.TransportError as error:
            raise _lost(self._name, error, self._key) from None
        if got.status_code != _OK:
            raise http_fault(self._name, got.status_code, got.text, got.headers, self._key)
        return without_key(got.text, self._key)


def _lost(name: str, error: Exception, key: str) -> TransientError:
    told = without_key(str(error), key) or type(error).__name__
    return TransientError(f"{name}: the connection failed: {told}")


def http_fault(name: str, status: int, body: str, headers: Mapping[str, str], key: str) -> Exception:
    """What a bad status means: a fault that may pass, or a request that will not be taken; the key hidden."""
    if status in {401, 403}:
        # Servers quote a part of the key here, so nothing they say is repeated.
        return RequestRefusedError(f"{name}: HTTP {status}: the key in the environment was not accepted", status)
    told = without_key(body, key)[:_TOLD_CHARACTERS]
    if status == _RATE_LIMITED and _NO_MONEY not in _codes(body):
        return TransientError(f"{name}: HTTP 429: {told}", retry_after_s(headers))
    if status >= _SERVER_FAULTS:
        return TransientError(f"{name}: HTTP {status}: {told}", retry_after_s(headers))
    return RequestRefusedError(f"{name}: HTTP {status}: {told}", status)


def _codes(body: str) -> set[object]:
    try:
        error: Any = json.loads(body).get("error")
    except (json.JSONDecodeError, AttributeError):
        return set()
    return {error.get("code"), error.get("type")} if isinstance(error, dict) else set()


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that header ``retry-after`` asks to wait, as a number or a date; None where it says nothing usable."""
    told = headers.get("retry-after", "")
    try:
        seconds = float(told)
    except ValueError:
        try:
            until = parsedate_to_datetime(told)
        except ValueError:
            return None
        zoned = until if until.tzinfo else until.replace(tzinfo=UTC)
        seconds = (zoned - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None
