"""The health page: for people, as JSON and metrics for machines, and `/live` for a container's own check."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from duplex_bench.lib.health.checks import Finding
from duplex_bench.stages.telemetry.exposition import shown_token

if TYPE_CHECKING:
    from fastapi import FastAPI
    from prometheus_client.core import CollectorRegistry

KEPT_S: Final = 10.0
"""A look is shared by all who ask within this time, so that asking often costs little (ours)."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"


def create_app(
    look: Callable[[], Sequence[Finding]], metrics: "CollectorRegistry", token: str | None, hosts: Sequence[str]
) -> "FastAPI":
    """The application. With a token everything but ``/live`` asks for it, as ``Authorization: Bearer ...``."""
    import jinja2
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    page = jinja2.Environment(autoescape=True).from_string(
        (files("duplex_bench.lib.health") / "page.html").read_text("utf-8")
    )
    lock = threading.Lock()
    kept: tuple[float, Sequence[Finding]] | None = None

    def latest() -> Sequence[Finding]:
        nonlocal kept
        with lock:
            if kept is None or time.monotonic() - kept[0] > KEPT_S:
                kept = (time.monotonic(), tuple(look()))
            return kept[1]

    @app.middleware("http")
    async def guarded(request: Request, call_next: RequestResponseEndpoint) -> Response:
        if request.url.path != "/live" and not shown_token(request.headers.get("authorization"), token):
            return PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response

    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))

    def _code(findings: Sequence[Finding]) -> int:
        return 503 if any(finding.state == "failing" for finding in findings) else 200

    @app.get("/live")
    def live() -> PlainTextResponse:
        return PlainTextResponse("alive\n")

    @app.get("/")
    def shown() -> HTMLResponse:
        findings = latest()
        return HTMLResponse(page.render(findings=findings), _code(findings))

    @app.get("/health.json")
    def told() -> JSONResponse:
        findings = latest()
        healthy = _code(findings) == 200
        body: dict[str, Any] = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        return JSONResponse(body, _code(findings))

    @app.get("/metrics")
    def counted() -> Response:
        lines = [
            "# HELP duplex_bench_healthy Whether a part works (1), or does not (0).",
            "# TYPE duplex_bench_healthy gauge",
            *(f'duplex_bench_healthy{{part="{one.name}"}} {int(one.state != "failing")}' for one in latest()),
        ]
        text = generate_latest(metrics) + ("\n".join(lines) + "\n").encode()
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return app
