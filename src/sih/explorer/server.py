"""The explorer's server: a page, its modules, and three questions that the page asks. Nothing is ever written."""

import json
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sih.checks import FieldError
from sih.explorer.circuit_check import verdict
from sih.explorer.guard import Guard, RefusedError, refusal, request_json
from sih.explorer.parse_state import read_state
from sih.explorer.python_snippet import snippet
from sih.explorer.state import SHOWN
from sih.explorer.trained_models import Runs, all_runs, described
from sih.explorer.view import make_view
from sih.explorer.view_bytes import pack
from sih.models.kernels.threads import limited_threads
from sih.runs.run_store import RunStore

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
WORKERS = 2
"""Views computed at once; the others wait their turn, so that memory stays bounded however many come."""
Handler = Callable[[Request], Awaitable[Response]]


def create_app(hosts: tuple[str, ...] = ()) -> Starlette:
    """Make the ASGI application, which answers to `hosts` besides the names of the loopback interface."""
    runs = all_runs(RunStore())
    quick, slow = anyio.Semaphore(WORKERS), anyio.Semaphore(1)  # certificates do not keep views waiting
    listed = {"circuits": list(SHOWN), "trained": described(runs)}

    async def models(request: Request) -> Response:
        return _json(listed)

    routes = [
        Route("/api/models", models),
        Route("/api/view", _answering(partial(_view, runs), quick), methods=["POST"]),
        Route("/api/certificate", _answering(_certificate, slow), methods=["POST"]),
        Route("/api/python", _answering(_python, quick), methods=["POST"]),
        *(Route(path, partial(_served, *content)) for path, content in static_files().items()),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])
    app.router.redirect_slashes = False
    return app


def _answering(work: Callable[[Any], Response], turns: anyio.Semaphore) -> Handler:
    """Make a handler that reads JSON and answers with `work` on it, in a thread, in its turn (bad input is a 422)."""

    async def handler(request: Request) -> Response:
        try:
            body = await request_json(request)
            async with turns:
                return await anyio.to_thread.run_sync(work, body)
        except FieldError as error:
            return refusal(RefusedError(422, str(error), error.field))
        except RefusedError as error:
            return refusal(error)

    return handler


def _view(runs: Runs, body: Any) -> Response:
    return Response(pack(make_view(read_state(body), runs)), media_type="application/octet-stream")


def _certificate(body: Any) -> Response:
    if not isinstance(body, dict) or set(body) != {"state", "model"} or type(body["model"]) is not int:
        raise FieldError("model", "ask with a state and the number of a model: {state: ..., model: 0}")
    return _json(verdict(read_state(body["state"]), body["model"]))


def _python(body: Any) -> Response:
    return Response(snippet(read_state(body)), media_type="text/plain")


def static_files() -> dict[str, tuple[bytes, str]]:
    """Read the page's files once, so that no request ever opens one: content and type by path."""
    found = {f"/{path.name}": (path.read_bytes(), TYPES[path.suffix]) for path in STATIC.iterdir()}
    return {"/": found["/index.html"], **found}


async def _served(content: bytes, kind: str, request: Request) -> Response:
    return Response(content, media_type=kind)


def _json(value: object) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens there, or raise a ValueError of one line."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port is a number from 0 (any free one) to 65535; got {port}")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host} port {port}: {error.strerror}; try another --port, 0 for any free one"
        ) from None
    return listening


def serve(listening: socket.socket, hosts: tuple[str, ...] = ()) -> None:
    """Answer requests until interrupted."""
    config = uvicorn.Config(create_app(hosts), log_level="warning", access_log=False, ws="none", lifespan="off")
    with limited_threads(1):  # the requests are the parallel part
        uvicorn.Server(config).run(sockets=[listening])
