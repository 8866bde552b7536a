"""The explorer's server: a page, its modules, and the page's requests.

Quick requests never wait for slow ones: long views, certificates and channels have
separate queues. Fits run in separate processes (`fit_process.py`). Nothing is written
except fits, which `sih.two_sided` stores.
"""

import json
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sih.base.errors import FieldError
from sih.explorer.channels_view import make_channels
from sih.explorer.circuit_check import verdict
from sih.explorer.circuit_choice import UnfittedError, fit_of
from sih.explorer.fit_process import FitRefusedError, Fits
from sih.explorer.guard import Guard, RefusedError, refusal, request_json
from sih.explorer.parse_state import read_state
from sih.explorer.python_snippet import snippet
from sih.explorer.state import State, shown_circuits
from sih.explorer.trained_models import Runs, all_runs, described
from sih.explorer.view import View, make_view
from sih.explorer.view_bytes import pack
from sih.models.fast.threads import limited_threads
from sih.training.runs.run_store import RunStore

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
WORKERS = 2
"""Views computed at once; others wait, so that memory stays bounded."""
Handler = Callable[[Request], Awaitable[Response]]
Turns = Callable[[Any], anyio.Semaphore]
"""Function that returns the queue of a request, from its body."""


def create_app(hosts: tuple[str, ...] = (), fits: Fits | None = None) -> Starlette:
    """Return the ASGI application, which answers to `hosts` and to the names of the
    loopback interface.
    """
    runs = all_runs(RunStore())
    quick, slow, sure, ways = (anyio.Semaphore(count) for count in (WORKERS, 1, 1, 1))
    listed = {"circuits": list(shown_circuits()), "trained": described(runs)}

    async def models(request: Request) -> Response:
        return _json(listed)

    def views(state: State) -> anyio.Semaphore:
        return slow if state.matrix.slow else quick

    questions = {
        "/api/view": _answering(read_state, partial(_view, runs), views),
        "/api/certificate": _answering(_of_model, _certificate, lambda _: sure),
        "/api/channels": _answering(_of_model, partial(_channels, runs), lambda _: ways),
        "/api/python": _answering(read_state, _python, lambda _: quick),
        "/api/fit": _fitting(fits or Fits()),
    }
    files = static_files().items()
    routes = [
        Route("/api/models", models),
        *(Route(path, answer, methods=["POST"]) for path, answer in questions.items()),
        *(Route(path, partial(_served, *content)) for path, content in files),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])
    app.router.redirect_slashes = False
    return app


def _answering(
    read: Callable[[Any], Any], work: Callable[[Any], Response], turns: Turns
) -> Handler:
    """Return a handler that reads JSON and answers with `work` on it, in a thread
    (invalid input is a 422).
    """

    async def answer(request: Request) -> Response:
        asked = read(await request_json(request))
        async with turns(asked):
            return await anyio.to_thread.run_sync(work, asked)

    return _refusing(answer)


def _fitting(fits: Fits) -> Handler:
    """Return a handler that fits a model's circuit if necessary, and answers when it is
    done.
    """

    async def answer(request: Request) -> Response:
        state, index = _of_model(await request_json(request))

        async def needed() -> tuple[tuple[int, ...], int, int] | None:
            return await anyio.to_thread.run_sync(
                lambda: fit_of(f"models.{index}", state.choice(index), state.task())
            )

        if (fit := await needed()) is None:
            return _json({"fitted": False})
        try:
            await fits.make(*fit)
        except FitRefusedError as error:
            raise RefusedError(429, str(error), f"models.{index}.heads") from None
        if await needed() is not None:
            raise FieldError(
                f"models.{index}.heads", "the fit could not be kept: is the cache folder writable?"
            )
        return _json({"fitted": True})

    return _refusing(answer)


def _refusing(answer: Handler) -> Handler:
    """Return a handler that turns errors about the request into answers in the 400s
    that name the entry.
    """

    async def handler(request: Request) -> Response:
        try:
            return await answer(request)
        except UnfittedError as error:
            return refusal(RefusedError(409, str(error), error.field))
        except FieldError as error:
            return refusal(RefusedError(422, str(error), error.field))
        except RefusedError as error:
            return refusal(error)

    return handler


def _of_model(body: Any) -> tuple[State, int]:
    """Return a request about one model of a state."""
    if (
        not isinstance(body, dict)
        or set(body) != {"state", "model"}
        or type(body["model"]) is not int
    ):
        raise FieldError(
            "model", "ask with a state and the number of a model: {state: ..., model: 0}"
        )
    return read_state(body["state"]), body["model"]


def _view(runs: Runs, state: State) -> Response:
    return _bytes(make_view(state, runs))


def _channels(runs: Runs, asked: tuple[State, int]) -> Response:
    return _bytes(make_channels(*asked, runs))


def _certificate(asked: tuple[State, int]) -> Response:
    return _json(verdict(*asked))


def _python(state: State) -> Response:
    return Response(snippet(state), media_type="text/plain")


def _bytes(view: View) -> Response:
    return Response(pack(view), media_type="application/octet-stream")


def static_files() -> dict[str, tuple[bytes, str]]:
    """Return the page's files, content and type by path, read once, so that no request
    ever opens one.
    """
    found = {f"/{path.name}": (path.read_bytes(), TYPES[path.suffix]) for path in STATIC.iterdir()}
    return {"/": found["/index.html"], **found}


async def _served(content: bytes, kind: str, request: Request) -> Response:
    return Response(content, media_type=kind)


def _json(value: object) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address; raise a ValueError of one line if
    that fails.
    """
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


class _Server(uvicorn.Server):
    """A server that stops the current fit when it shuts down, so that nobody waits for
    it.
    """

    fits: Fits

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.fits.stop()
        super().handle_exit(sig, frame)


def serve(listening: socket.socket, hosts: tuple[str, ...] = ()) -> None:
    """Answer requests until interrupted."""
    fits = Fits()
    app = create_app(hosts, fits)
    server = _Server(
        uvicorn.Config(app, log_level="warning", access_log=False, ws="none", lifespan="off")
    )
    server.fits = fits
    with limited_threads(1):  # requests are the parallel part
        server.run(sockets=[listening])
