"""The web application: requests to ``ReviewDesk`` and back, the page's files, and what keeps strangers out."""

from importlib.resources import files
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Cookie, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.base import RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware

from duplex_bench.review import exports
from duplex_bench.review.access import LOOPBACK, Person, SignedIn
from duplex_bench.review.desk import CONTEXT_S, ReviewDesk
from duplex_bench.review.edits import Operation
from duplex_bench.review.errors import ConflictError, DatabaseLostError, NotAllowedError, ReviewInputError, UnknownError
from duplex_bench.review.sound import SessionSound
from duplex_bench.review.store import Edit
from duplex_bench.storage.object_store import StorageFullError

TICKET: Final = "duplex_bench_review"
# Everything comes from this server; the waveform library writes style elements, hence 'unsafe-inline' there alone.
_POLICY: Final = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; media-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_BLOCK_BYTES: Final = 1 << 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SignInBody(_Strict):
    """Who comes."""

    name: Annotated[str, Field(max_length=200)]
    token: Annotated[str, Field(max_length=500)] = ""


class OpenBody(_Strict):
    """Which copy to open."""

    session_id: str
    whose: Literal["mine", "together"]


class EditBody(_Strict):
    """One edit, made on a version."""

    edit_id: Annotated[str, Field(min_length=8, max_length=64)]
    version: int
    action: Annotated[str, Field(min_length=1, max_length=40)]
    operations: Annotated[list[Operation], Field(min_length=1, max_length=20000)]


class ImportBody(_Strict):
    """A label file."""

    edit_id: Annotated[str, Field(min_length=8, max_length=64)]
    version: int
    name: Annotated[str, Field(max_length=300)]
    text: Annotated[str, Field(max_length=20_000_000)]


class DecisionBody(_Strict):
    """A decision on a version."""

    version: int
    decision: Literal["submit", "withdraw", "approve", "return"]
    note: Annotated[str, Field(max_length=5000)] = ""


class CheckBody(_Strict):
    """A verdict on a window."""

    accepted: bool
    reason: Annotated[str, Field(max_length=2000)] = ""


class AnswerBody(_Strict):
    """A listener's answer."""

    would_speak: bool
    after_boundary_s: Annotated[float, Field(allow_inf_nan=False)] | None = None
    words: Annotated[str, Field(max_length=2000)] = ""


def create_app(desk: ReviewDesk, allowed_hosts: tuple[str, ...] = LOOPBACK) -> FastAPI:
    """The application over one review. Requests that name another host are refused (DNS rebinding)."""
    app = FastAPI(title="duplex_bench review", docs_url=None, redoc_url=None, openapi_url=None)
    signed_in = SignedIn(desk.settings)

    def person_of(ticket: Annotated[str | None, Cookie(alias=TICKET)] = None) -> Person:
        found = signed_in.person(ticket)
        if found is None:
            raise _SignedOutError("sign in first")
        return found

    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts), www_redirect=False)
    app.middleware("http")(_guarded)
    for error in (ReviewInputError, DatabaseLostError, StorageFullError):
        app.add_exception_handler(error, _explained)
    app.include_router(_entrance(desk, signed_in), prefix="/api")
    app.include_router(_labels(desk, person_of), prefix="/api")
    app.include_router(_windows(desk, person_of), prefix="/api")
    app.mount("/", StaticFiles(directory=str(files("duplex_bench.review") / "page"), html=True))
    return app


class _SignedOutError(ReviewInputError):
    status = 401  # type: ignore[assignment]


def _explained(_: Request, error: Exception) -> JSONResponse:
    told: dict[str, object] = {"error": str(error)}
    if isinstance(error, ConflictError):
        told["current_version"] = error.current_version
    return JSONResponse(told, status_code=int(getattr(error, "status", 507)))


async def _guarded(request: Request, call_next: RequestResponseEndpoint) -> Response:
    origin = request.headers.get("origin")
    if origin is not None and origin.split("://")[-1] != request.headers.get("host"):
        return JSONResponse({"error": "requests come from this page only"}, status_code=403)
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers.setdefault("Cache-Control", "no-store" if request.url.path.startswith("/api") else "no-cache")
    return response


def _entrance(desk: ReviewDesk, signed_in: SignedIn) -> APIRouter:
    router = APIRouter()

    def me(person: Person | None) -> dict[str, object]:
        return {
            "name": person.name if person else None,
            "administrator": bool(person and person.administrator),
            "blind": desk.settings.blind,
            "needs_token": desk.settings.token is not None,
            "administrators": sorted(desk.settings.administrators) if person else [],
        }

    @router.get("/me")
    def who(ticket: Annotated[str | None, Cookie(alias=TICKET)] = None) -> dict[str, object]:
        return me(signed_in.person(ticket))

    @router.post("/sign-in")
    def enter(body: SignInBody, response: Response) -> dict[str, object]:
        ticket, person = signed_in.enter(body.name, body.token)
        response.set_cookie(TICKET, ticket, httponly=True, samesite="strict")
        return me(person)

    @router.post("/sign-out")
    def leave(response: Response, ticket: Annotated[str | None, Cookie(alias=TICKET)] = None) -> dict[str, object]:
        signed_in.leave(ticket)
        response.delete_cookie(TICKET)
        return me(None)

    return router


def _labels(desk: ReviewDesk, person_of: Any) -> APIRouter:
    router = APIRouter()
    Who = Annotated[Person, Depends(person_of)]  # noqa: N806

    @router.get("/sessions")
    def sessions(person: Who) -> list[dict[str, object]]:
        return desk.sessions(person)

    @router.get("/session")
    def session(person: Who, session_id: str) -> dict[str, object]:
        return desk.session(person, session_id)

    @router.get("/session/audio.wav")
    def audio(request: Request, _: Who, session_id: str) -> Response:
        return _wav(desk.sound(session_id), request.headers.get("range"))

    @router.get("/session/peaks")
    def peaks(_: Who, session_id: str) -> Response:
        return Response(desk.sound(session_id).peaks, media_type="application/octet-stream")

    @router.get("/session/spectrogram.png")
    def spectrogram(
        _: Who,
        session_id: str,
        channel: Annotated[int, Query(ge=0, le=1)],
        start_s: Annotated[float, Query(ge=0, allow_inf_nan=False)],
        stop_s: Annotated[float, Query(gt=0, allow_inf_nan=False)],
        width: int,
        height: int,
    ) -> Response:
        picture = desk.sound(session_id).spectrogram_png(channel, start_s, stop_s, width, height)
        return Response(picture, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    @router.post("/copies")
    def open_copy(person: Who, body: OpenBody) -> dict[str, object]:
        return desk.open_copy(person, body.session_id, body.whose)

    @router.get("/copies/{copy_id}")
    def copy(person: Who, copy_id: int) -> dict[str, object]:
        return desk.told(person, desk.copy(person, copy_id))

    @router.post("/copies/{copy_id}/edits")
    def edit(person: Who, copy_id: int, body: EditBody) -> dict[str, object]:
        return desk.edit(person, copy_id, Edit(body.edit_id, body.version, body.action, tuple(body.operations)))

    @router.get("/copies/{copy_id}/history")
    def history(person: Who, copy_id: int, after_version: int = 0) -> list[dict[str, Any]]:
        desk.copy(person, copy_id)
        return desk.store.history(copy_id, after_version)

    @router.post("/copies/{copy_id}/decisions")
    def decide(person: Who, copy_id: int, body: DecisionBody) -> dict[str, object]:
        return desk.decide(person, copy_id, body.version, body.decision, body.note)

    @router.post("/copies/{copy_id}/import")
    def take_in(person: Who, copy_id: int, body: ImportBody) -> dict[str, object]:
        return desk.take_in(person, copy_id, body.edit_id, body.version, body.name, body.text)

    @router.get("/copies/{copy_id}/export")
    def give_out(person: Who, copy_id: int, suffix: str) -> Response:
        name, text = desk.give_out(person, copy_id, suffix)
        plain = "".join(letter if letter.isascii() and letter not in '"\\;' else "_" for letter in name)
        return PlainTextResponse(text, headers={"Content-Disposition": f'attachment; filename="{plain}"'})

    return router


def _windows(desk: ReviewDesk, person_of: Any) -> APIRouter:
    router = APIRouter()
    Who = Annotated[Person, Depends(person_of)]  # noqa: N806

    @router.get("/windows")
    def windows(person: Who) -> list[dict[str, object]]:
        return desk.windows(person)

    @router.get("/windows/{point_id}/audio.wav")
    def window_audio(_: Who, point_id: str) -> Response:
        sound, boundary_s = desk.window_sound(point_id, future=True)
        return _wav(sound, None, {"X-Boundary-S": f"{boundary_s:.6f}"})

    @router.post("/windows/{point_id}/check")
    def check(person: Who, point_id: str, body: CheckBody) -> dict[str, object]:
        desk.check_window(person, point_id, body.accepted, body.reason)
        return {"stored": True}

    @router.get("/listening")
    def listening(person: Who) -> dict[str, object]:
        return {**desk.listening(person), "context_s": CONTEXT_S}

    @router.get("/listening/{point_id}/audio.wav")
    def past(_: Who, point_id: str) -> Response:
        sound, _boundary_s = desk.window_sound(point_id, future=False)
        return _wav(sound, None)

    @router.post("/listening/{point_id}")
    def answer(person: Who, point_id: str, body: AnswerBody) -> dict[str, object]:
        desk.answer(person, point_id, body.would_speak, body.after_boundary_s, body.words)
        return {"stored": True}

    @router.get("/tables/{name}")
    def table(person: Who, name: str, form: Literal["json", "csv"] = "json") -> Response:
        if not person.administrator:
            raise NotAllowedError("agreement tables name people: only an administrator sees them")
        if name not in exports.NAMES:
            raise UnknownError(f"there is no table {name!r}; choose one of {', '.join(exports.NAMES)}")
        rows = exports.table(desk, name)
        if form == "json":
            return JSONResponse(rows)
        head = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return PlainTextResponse(exports.csv(rows), media_type="text/csv", headers=head)

    return router


def _wav(sound: SessionSound, wanted: str | None, headers: dict[str, str] | None = None) -> Response:
    """The WAV file or the part of it that a Range header asks for."""
    total = sound.n_bytes
    more = {"Accept-Ranges": "bytes", **(headers or {})}
    if wanted is None or not wanted.startswith("bytes=") or "," in wanted:
        return Response(sound.wav(0, total), media_type="audio/wav", headers=more)
    first, _, last = wanted.removeprefix("bytes=").strip().partition("-")
    if not (first.isdigit() or last.isdigit()) or not (first + last).isdigit():
        return Response(status_code=416, headers={"Content-Range": f"bytes */{total}"})
    start = int(first) if first else max(0, total - int(last))
    stop = min(int(last) + 1 if first and last else total, total, start + _BLOCK_BYTES)
    if start >= stop:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{total}"})
    more["Content-Range"] = f"bytes {start}-{stop - 1}/{total}"
    return Response(sound.wav(start, stop), status_code=206, media_type="audio/wav", headers=more)
