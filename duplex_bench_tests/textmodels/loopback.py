"""Loopback servers that answer as the text APIs are documented to, and misbehave on request."""

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CANARY = "sk-canary-7f3a9d51c0ffee"
PATIENCE_S = 120.0


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: dict


@dataclass
class FakeApi:
    """Answers ``reply(prompt, body)`` (an object or a text) wrapped as the vendor would, after the queued mishaps."""

    vendor: str
    reply: Callable[[str, dict], object] = lambda prompt, body: {"ok": True}
    mishaps: deque = field(default_factory=deque)
    seen: list[Seen] = field(default_factory=list)
    echo_model: str = ""
    usage: bool = True
    url: str = ""
    under_way: int = 0
    most_under_way: int = 0
    hold: threading.Event | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def settings(self, **more):
        from duplex_bench.textmodels.settings import ModelSettings

        given = {"model": "a-model", "timeout_s": PATIENCE_S, **more}
        if self.vendor == "openai_compatible":
            given = {"key_variable": "LOCAL_KEY", **given}
        return ModelSettings(vendor=self.vendor, base_url=self.url, **given)

    # What each vendor's documentation says a good answer looks like.
    def wrapped(self, text: str, finish: str = "", refusal: str | None = None) -> dict:
        model = self.echo_model or "a-model"
        if self.vendor == "anthropic":
            body = {
                "id": "msg_1", "type": "message", "role": "assistant", "model": model,
                "content": [{"type": "text", "text": text}], "stop_reason": finish or "end_turn",
            }  # fmt: skip
            if self.usage:
                body["usage"] = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 10}
            return body
        if self.vendor == "gemini":
            body = {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]},
                        "finishReason": finish or "STOP",
                    }
                ],
                "modelVersion": model,
            }
            if self.usage:
                body["usageMetadata"] = {
                    "promptTokenCount": 100, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
                }  # fmt: skip
            return body
        message = {"role": "assistant", "content": text if refusal is None else None, "refusal": refusal}
        body = {
            "id": "c1", "object": "chat.completion", "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish or "stop"}],
        }  # fmt: skip
        if self.usage:
            body["usage"] = {
                "prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 10},
            }  # fmt: skip
        return body

    def prompt_in(self, body: dict) -> str:
        if self.vendor == "gemini":
            return body["contents"][-1]["parts"][0]["text"]
        return body["messages"][-1]["content"]

    def refused_request(self, seen: Seen) -> tuple[int, dict] | None:
        """The 4xx that the vendor would give to this request, if any."""
        headers, body = seen.headers, seen.body
        if self.vendor == "anthropic":
            if headers.get("authorization") != f"Bearer {CANARY}" and headers.get("x-api-key") != CANARY:
                return 401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
            if seen.path != "/v1/messages":
                return 404, {"type": "error", "error": {"type": "not_found_error", "message": seen.path}}
            sampling = {"temperature", "top_p", "top_k"} & set(body)
            if headers.get("anthropic-version") == "2026-10-21" and sampling:
                told = {"type": "invalid_request_error", "message": f"{sorted(sampling)} not supported"}
                return 400, {"type": "error", "error": told}
            schema = body["output_config"]["format"]["schema"]
        elif self.vendor == "gemini":
            if headers.get("x-goog-api-key") != CANARY:
                return 403, {"error": {"code": 403, "message": f"bad key {CANARY}", "status": "PERMISSION_DENIED"}}
            if seen.path != "/v1beta/models/a-model:generateContent":
                return 404, {"error": {"code": 404, "message": seen.path, "status": "NOT_FOUND"}}
            schema = body["generationConfig"]["responseJsonSchema"]
        else:
            if headers.get("authorization") != f"Bearer {CANARY}":
                told = f"Incorrect API key provided: {headers.get('authorization', '')}"
                return 401, {"error": {"message": told, "type": "invalid_request_error", "code": "invalid_api_key"}}
            if not seen.path.endswith("/chat/completions"):
                return 404, {"error": {"message": seen.path}}
            form = body["response_format"]["json_schema"]
            schema = form["schema"]
            if not form["strict"] or len(form["name"]) > 64:
                return 400, {"error": {"message": "bad response_format", "type": "invalid_request_error"}}
        if not is_strict(schema):
            return 400, {"error": {"message": "schema is not strict", "type": "invalid_request_error"}}
        return None


def is_strict(schema: object) -> bool:
    """OpenAI's rule: every property required, nothing else allowed, no references."""
    if isinstance(schema, list):
        return all(is_strict(entry) for entry in schema)
    if not isinstance(schema, dict):
        return True
    if "$ref" in schema:
        return False
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema["required"]) != set(schema["properties"])
    ):
        return False
    return all(is_strict(entry) for entry in schema.values())


def serve(api: FakeApi) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            with api.lock:
                api.under_way += 1
                api.most_under_way = max(api.most_under_way, api.under_way)
            try:
                self._answer()
            finally:
                with api.lock:
                    api.under_way -= 1

        def _answer(self):
            raw = self.rfile.read(int(self.headers["content-length"]))
            seen = Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(raw))
            with api.lock:
                api.seen.append(seen)
                mishap = api.mishaps.popleft() if api.mishaps else None
            if api.hold is not None:
                api.hold.wait(PATIENCE_S)
            if mishap == "cut":
                self.close_connection = True
                self.send_response(200)
                self.send_header("content-length", "5000")
                self.end_headers()
                self.wfile.write(b'{"half":')
                return None
            if mishap == "slow":
                api.slow.set()
                api.release.wait(PATIENCE_S)
                self.close_connection = True
                return None
            refused = api.refused_request(seen)
            if refused is not None:
                return self._send(*refused)
            if isinstance(mishap, tuple):
                return self._send(*mishap)
            if isinstance(mishap, dict):
                return self._send(200, mishap)
            if isinstance(mishap, str):
                return self._send(200, api.wrapped(mishap))
            prompt = api.prompt_in(seen.body)
            made = api.reply(prompt, seen.body)
            return self._send(200, api.wrapped(made if isinstance(made, str) else json.dumps(made)))

        def _send(self, status, body, headers=()):
            out = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_):
            pass

    api.release, api.slow = threading.Event(), threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    suffix = "/v1" if api.vendor.startswith("openai") else ""
    api.url = f"http://127.0.0.1:{server.server_port}{suffix}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server
