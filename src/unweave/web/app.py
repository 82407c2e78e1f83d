"""The routes: pages, runs, downloads. What may reach them is decided in `unweave.web.guards`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from unweave import __version__
from unweave.errors import InvalidInput, UnweaveError
from unweave.networks.activations import activation_names
from unweave.web.checker import Checker
from unweave.web.guards import LOGIN, REPORT_POLICY, Access, Guard
from unweave.web.limits import Limits
from unweave.web.results import AUDIT_PAGE, FILES, REPORT, is_picture_name, picture_file
from unweave.web.run_folder import RunState
from unweave.web.run_queue import AT_ONCE, Runs, UnknownRun, WrongState
from unweave.web.run_request import (
    AUDIT,
    COMPARE,
    ENDINGS,
    ENDPOINT,
    OUTPUT_ACTIVATIONS,
    TASKS,
    parse_request,
)
from unweave.web.sample import sample_network
from unweave.web.upload_stream import TooLarge, read_form
from unweave.web.views import details_of, summary_of

STATIC = Path(__file__).parent / "static"
UNPACKED_TIMES = 8
"""An upload may unpack to this many times the largest upload."""
_TEXTS = {".html": "html", ".css": "css", ".js": "javascript"}
_TYPES = {".svg": "image/svg+xml", **{end: f"text/{kind}; charset=utf-8" for end, kind in _TEXTS.items()}}
_MOST_LOGIN_BYTES = 4096  # far more than any key has
_WRONG_KEY_SECONDS = 0.5  # before a wrong key is answered, against guessing


@dataclass(frozen=True)
class PageOptions:
    """How the page is served."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8377
    key: str | None = None
    key_variable: str | None = None
    """Name of the variable that holds the key; runs do not get it."""
    max_upload_mb: float = 64.0
    at_once: int = AT_ONCE
    allow_env: tuple[str, ...] = ()
    """Names of variables whose values runs may send to an endpoint as its key."""
    limits: Limits = field(default_factory=Limits)
    """What one process may take."""


def create_app(options: PageOptions) -> FastAPI:
    """Return the application; runs begin when it starts, and stop, to be resumed, when it shuts down."""
    if not options.max_upload_mb > 0:
        raise InvalidInput(f"--max-upload-mb must be positive. Got {options.max_upload_mb} instead.")
    access = Access(options.host, options.key)
    if options.key_variable is not None and options.key_variable in options.allow_env:
        raise InvalidInput(
            f"--allow-env must not name the key of the page. Got {options.key_variable} instead."
        )
    hidden = [] if options.key_variable is None else [options.key_variable]
    runs = Runs(options.folder, options.at_once, hidden, options.allow_env, options.limits)
    most_bytes = int(options.max_upload_mb * 2**20)
    checker = Checker(UNPACKED_TIMES * most_bytes, most_memory=options.limits.memory_bytes)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(runs.start)
        await run_in_threadpool(checker.start)
        try:
            yield
        finally:
            await run_in_threadpool(checker.close)
            await run_in_threadpool(runs.close)

    # The documentation pages that FastAPI would add load scripts from elsewhere.
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    cookie_name = f"unweave_{options.port}"
    app.add_middleware(Guard, access=access, cookie_name=cookie_name)
    _add_errors(app)
    _add_pages(app, runs)
    _add_login(app, access, cookie_name)
    _add_runs(app, runs)
    _add_upload(app, runs, checker, most_bytes)

    @app.get("/api/about")
    def about() -> dict[str, Any]:
        return {
            "version": __version__,
            "max_upload_bytes": most_bytes,
            "endings": ENDINGS,
            "activations": activation_names(),
            "output_activations": OUTPUT_ACTIVATIONS,
            "at_once": options.at_once,
            "tasks": TASKS,
        }

    return app


def _add_errors(app: FastAPI) -> None:
    """Answer every error with ``{"error": sentence, "field": name or None}``."""
    codes: dict[type[Exception], int] = {UnknownRun: 404, WrongState: 409, TooLarge: 413, InvalidInput: 422}

    @app.exception_handler(UnweaveError)
    async def told(_: Request, error: UnweaveError) -> JSONResponse:
        code = next((code for kind, code in codes.items() if isinstance(error, kind)), 500)
        return JSONResponse({"error": str(error), "field": getattr(error, "field", None)}, status_code=code)

    @app.exception_handler(OSError)
    async def disk(_: Request, error: OSError) -> JSONResponse:
        reason = error.strerror or type(error).__name__
        return JSONResponse({"error": f"The server could not write its files ({reason})."}, status_code=507)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> JSONResponse:
        return JSONResponse({"error": "The request must arrive as a whole, and in time."}, status_code=408)

    @app.exception_handler(HTTPException)
    async def plain(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, status_code=error.status_code)


def _add_pages(app: FastAPI, runs: Runs) -> None:
    # Read once: a request can only name one of these, and no path of the disk.
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}

    def page(name: str) -> Response:
        return Response(files[name], media_type=_TYPES[Path(name).suffix])

    @app.get("/")
    def index() -> Response:
        return page("index.html")

    @app.get("/runs/{run_id}")
    def run(run_id: str) -> Response:
        return page("run.html")

    @app.get(LOGIN)
    def login() -> Response:
        return page("login.html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in files or name.endswith(".html"):
            raise HTTPException(404, "There is no such file.")
        return page(name)

    @app.get("/favicon.ico")
    def favicon() -> Response:
        return page("icon.svg")

    @app.get("/runs/{run_id}/report")
    def report(run_id: str) -> Response:
        name = AUDIT_PAGE if runs.get(run_id).request.task == AUDIT else REPORT
        path, policy = _result_path(runs, run_id, name), {"Content-Security-Policy": REPORT_POLICY}
        return FileResponse(path, media_type=FILES[name][1], headers=policy)

    @app.get("/runs/{run_id}/pictures/{name}")
    def picture(run_id: str, name: str) -> Response:
        if not is_picture_name(name):
            raise HTTPException(404, "There is no such picture.")
        path = runs.place(runs.get(run_id)) / picture_file(name)
        if not path.is_file():
            raise HTTPException(404, "There is no such picture.")
        return FileResponse(
            path, media_type=_TYPES[".svg"], headers={"Content-Security-Policy": REPORT_POLICY}
        )


def _add_login(app: FastAPI, access: Access, cookie_name: str) -> None:
    @app.post(LOGIN)
    async def login(request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_LOGIN_BYTES:
                break
        if not access.is_key(body.decode("utf-8", errors="replace").strip()):
            await asyncio.sleep(_WRONG_KEY_SECONDS)
            return JSONResponse({"error": "This is not the key. Check it and try again."}, status_code=401)
        response = JSONResponse({"ok": True})
        access.give_cookie(response, cookie_name, request.url.scheme == "https")
        return response


def _add_runs(app: FastAPI, runs: Runs) -> None:
    @app.get("/api/runs")
    def list_runs() -> dict[str, Any]:
        return {"runs": [summary_of(state) for state in runs.all()]}

    @app.get("/api/runs/{run_id}")
    def show(run_id: str) -> dict[str, Any]:
        return details_of(runs, runs.get(run_id))

    @app.post("/api/runs/{run_id}/cancel")
    def cancel(run_id: str) -> dict[str, Any]:
        return details_of(runs, runs.cancel(run_id))

    @app.post("/api/runs/{run_id}/resume")
    def resume(run_id: str) -> dict[str, Any]:
        return details_of(runs, runs.resume(run_id))

    @app.post("/api/runs/{run_id}/delete")
    def delete(run_id: str) -> dict[str, Any]:
        runs.delete(run_id)
        return {"ok": True}

    @app.get("/api/runs/{run_id}/files/{name}")
    def download(run_id: str, name: str) -> Response:
        path = _result_path(runs, run_id, name)
        return FileResponse(path, media_type=FILES[name][1], filename=name)  # as attachment


def _add_upload(app: FastAPI, runs: Runs, checker: Checker, most_bytes: int) -> None:
    @app.post("/api/runs")
    async def create(request: Request) -> JSONResponse:
        folder = await run_in_threadpool(runs.new_folder)
        try:
            upload = folder.path / "upload"
            kind = request.headers.get("content-type", "")
            second = folder.path / "upload-2"
            form = await read_form(request.stream(), kind, upload, most_bytes, others={"other": second})
            asked = parse_request(form.fields, form.file_name, form.other_names.get("other"))
            runs.check_variable(asked)
            found: dict[str, Any] = {}
            if asked.task == COMPARE:
                second.rename(folder.other(asked))
            else:
                second.unlink()
            if asked.kind == ENDPOINT:
                upload.unlink()
            else:
                upload.rename(folder.target(asked))
                if asked.sample:
                    await run_in_threadpool(sample_network().save, folder.target(asked))
                found = await run_in_threadpool(checker.check, folder.path, asked)
            state: RunState = await run_in_threadpool(runs.add, folder, asked, found)
            return JSONResponse(summary_of(state), status_code=201)
        except ClientDisconnect as error:
            raise InvalidInput("The form must arrive as a whole. Only its beginning arrived.") from error
        finally:
            # A run that was added has another name by now.
            await run_in_threadpool(shutil.rmtree, folder.path, True)


def _result_path(runs: Runs, run_id: str, name: str) -> Path:
    """Return the path of a file that may be downloaded: of a known run and name, and existing."""
    state = runs.get(run_id)
    if name not in FILES:
        raise HTTPException(404, "There is no such file.")
    path = runs.place(state) / name
    if not path.is_file():
        raise HTTPException(404, "This run has no such file (yet).")
    return path
