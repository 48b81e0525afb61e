"""A loopback server with the batch endpoints of three vendors, as their documentation and packages describe them."""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from duplex_bench.textmodels.settings import ModelSettings

CANARY = "sk-canary-7f3a9d51c0ffee"


def _json(value: object) -> str:
    """As vendors write result files: letters as they are, not as escapes."""
    return json.dumps(value, ensure_ascii=False)


@dataclass
class FakeBatches:
    """Batches end after ``looks`` looks; ``fate`` of a prompt is "ok", "error" or "expired".

    Questions that are asked singly are answered too and their prompts are kept in ``singles``.
    """

    vendor: str
    reply: Callable[[str], dict] = lambda prompt: {"mood": "good" if "good" in prompt else "bad"}
    fate: Callable[[str], str] = lambda prompt: "ok"
    looks: int = 1
    cut_after_submit: bool = False
    keep_keys: bool = True
    usage: bool = True
    files: dict[str, str] = field(default_factory=dict)
    batches: dict[str, dict] = field(default_factory=dict)
    n_requests: int = 0
    singles: list[str] = field(default_factory=list)
    url: str = ""

    def settings(self, **more):
        suffix = "/v1" if self.vendor == "openai" else ""
        return ModelSettings(self.vendor, "a-model", base_url=self.url + suffix, timeout_s=120.0, **more)

    def message(self, prompt: str) -> dict:
        said = _json(self.reply(prompt))
        if self.vendor == "anthropic":
            return {"type": "message", "role": "assistant", "model": "a-model", "stop_reason": "end_turn",
                    "content": [{"type": "text", "text": said}],
                    "usage": {"input_tokens": 100, "output_tokens": 20}}  # fmt: skip
        if self.vendor == "gemini":
            return {"candidates": [{"content": {"parts": [{"text": said}]}, "finishReason": "STOP"}],
                    "modelVersion": "a-model",
                    "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20}}  # fmt: skip
        return {"model": "a-model", "usage": {"prompt_tokens": 100, "completion_tokens": 20},
                "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}  # fmt: skip

    def begin(self, name: str, rows: list[tuple[str, str]]) -> str:
        batch_id = f"{'batches/' if self.vendor == 'gemini' else 'batch_'}{len(self.batches)}"
        self.batches[batch_id] = {"name": name, "rows": rows, "looks": 0, "at": datetime.now(UTC).isoformat()}
        self.n_requests += len(rows)
        return batch_id

    def ended(self, batch: dict) -> bool:
        batch["looks"] += 1
        return batch["looks"] >= self.looks

    def authorised(self, headers) -> bool:
        bearer = headers.get("authorization")
        given = {"openai": bearer, "anthropic": headers.get("x-api-key") or bearer,
                 "gemini": headers.get("x-goog-api-key")}[self.vendor]  # fmt: skip
        return given in {CANARY, f"Bearer {CANARY}"}

    def post(self, path: str, raw: bytes) -> tuple[int, object]:
        if self.vendor == "openai" and path == "/v1/files":
            assert b'name="purpose"\r\n\r\nbatch' in raw
            found = re.search(rb"application/jsonl\r\n\r\n(.*?)\r\n--", raw, re.DOTALL)
            name = f"file-{len(self.files)}"
            self.files[name] = found.group(1).decode()
            return 200, {"id": name, "object": "file", "purpose": "batch"}
        body = json.loads(raw)
        if self.vendor == "openai" and path == "/v1/batches":
            assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
            rows = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
            assert {row["url"] for row in rows} == {"/v1/chat/completions"}
            asked = [(row["custom_id"], row["body"]["messages"][-1]["content"]) for row in rows]
            made = self.begin(body["metadata"]["duplex_bench"], asked)
            return 200, {"id": made, "object": "batch", "status": "validating"}
        if self.vendor == "anthropic" and path == "/v1/messages/batches":
            asked = [(row["custom_id"], row["params"]["messages"][-1]["content"]) for row in body["requests"]]
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", custom) for custom, _ in asked)
            return 200, {"id": self.begin("", asked), "type": "message_batch", "processing_status": "in_progress"}
        if self.vendor == "gemini" and path == "/v1beta/models/a-model:batchGenerateContent":
            batch = body["batch"]
            rows = batch["inputConfig"]["requests"]["requests"]
            asked = [(row["metadata"]["key"], row["request"]["contents"][-1]["parts"][0]["text"]) for row in rows]
            made = self.begin(batch["displayName"], asked)
            return 200, {"name": made, "metadata": {"state": "BATCH_STATE_PENDING"}}
        if path.endswith((":generateContent", "/v1/messages", "/v1/chat/completions")):
            turn = (body["contents"] if self.vendor == "gemini" else body["messages"])[-1]
            self.singles.append(turn["parts"][0]["text"] if self.vendor == "gemini" else turn["content"])
            return 200, self.message(self.singles[-1])
        return 404, {"error": {"message": path}}

    def get(self, path: str) -> tuple[int, object]:
        if self.vendor == "openai":
            return self._get_openai(path.removeprefix("/v1"))
        if self.vendor == "anthropic":
            return self._get_anthropic(path)
        return self._get_gemini(path.removeprefix("/v1beta/"))

    def _get_openai(self, path: str) -> tuple[int, object]:
        if path.startswith("/files/"):
            return 200, self.files[path.split("/")[2]]
        if path == "/batches":
            return 200, {"data": [{"id": one, "metadata": {"duplex_bench": batch["name"]}}
                                  for one, batch in self.batches.items()]}  # fmt: skip
        batch = self.batches[path.split("/")[2]]
        if not self.ended(batch):
            return 200, {"status": "in_progress"}
        good, bad = [], []
        for custom, prompt in reversed(batch["rows"]):
            fate = self.fate(prompt)
            if fate == "ok":
                body = {"status_code": 200, "body": self.message(prompt)}
                good.append({"custom_id": custom, "response": body, "error": None})
            elif fate == "error":
                body = {"status_code": 400, "body": {"error": {"message": "bad request"}}}
                bad.append({"custom_id": custom, "response": body, "error": None})
            else:
                told = {"code": "batch_expired", "message": "not executed in the window"}
                bad.append({"custom_id": custom, "response": None, "error": told})
        self.files |= {f"{name}-{batch['name']}": "\n".join(map(_json, rows))
                       for name, rows in (("good", good), ("bad", bad))}  # fmt: skip
        expired = any(self.fate(prompt) == "expired" for _, prompt in batch["rows"])
        return 200, {"status": "expired" if expired else "completed", "output_file_id": f"good-{batch['name']}",
                     "error_file_id": f"bad-{batch['name']}" if bad else None}  # fmt: skip

    def _get_anthropic(self, path: str) -> tuple[int, object]:
        parts = path.split("/")
        if len(parts) == 4:
            return 200, {"data": [{"id": one, "created_at": batch["at"],
                                   "request_counts": {"processing": len(batch["rows"]), "succeeded": 0}}
                                  for one, batch in self.batches.items()]}  # fmt: skip
        batch = self.batches[parts[4]]
        if len(parts) == 5:
            return 200, {"id": parts[4], "processing_status": "ended" if self.ended(batch) else "in_progress"}
        lines = []
        for custom, prompt in reversed(batch["rows"]):
            fate = self.fate(prompt)
            told = {"type": "error", "error": {"type": "invalid_request_error", "message": "bad request"}}
            result = {"ok": {"type": "succeeded", "message": self.message(prompt)},
                      "error": {"type": "errored", "error": told}, "expired": {"type": "expired"}}[fate]  # fmt: skip
            lines.append(_json({"custom_id": custom, "result": result}))
        return 200, "\n".join(lines)

    def _get_gemini(self, path: str) -> tuple[int, object]:
        if path == "batches":
            return 200, {"operations": [{"name": one, "metadata": {"displayName": batch["name"]}}
                                        for one, batch in self.batches.items()]}  # fmt: skip
        batch = self.batches[path]
        if not self.ended(batch):
            return 200, {"name": path, "metadata": {"state": "BATCH_STATE_RUNNING"}}
        if any(self.fate(prompt) == "expired" for _, prompt in batch["rows"]):
            return 200, {"name": path, "done": True, "metadata": {"state": "BATCH_STATE_EXPIRED"},
                         "error": {"code": 4, "message": "expired"}}  # fmt: skip
        rows = []
        for custom, prompt in batch["rows"]:
            row = {"response": self.message(prompt)} if self.fate(prompt) == "ok" else {
                "error": {"code": 3, "message": "bad request"}}  # fmt: skip
            rows.append(row | ({"metadata": {"key": custom}} if self.keep_keys else {}))
        return 200, {"name": path, "done": True, "metadata": {"state": "BATCH_STATE_SUCCEEDED"},
                     "response": {"inlinedResponses": {"inlinedResponses": rows}}}  # fmt: skip


def serve_batches(api: FakeBatches) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["content-length"]))
            path = self.path.split("?")[0]
            answer = api.post(path, raw) if api.authorised(self.headers) else (401, {"error": {"message": CANARY}})
            if api.cut_after_submit and not path.endswith("/files"):
                self.close_connection = True
                return
            self._send(*answer)

        def do_GET(self):
            try:
                answer = api.get(self.path.split("?")[0])
            except KeyError as error:
                answer = 404, {"error": {"message": f"no such thing: {error}"}}
            self._send(*answer)

        def _send(self, status, body):
            out = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server
