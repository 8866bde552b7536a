"""Checks on requests: the Host header, headers of every answer, bodies of limited size.

A page of another site may make a browser send requests to a server on this machine, or
point a host name at it. So only known host names are answered, requests from other
origins are refused, and there is no CORS.
"""

import json
import re
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SCHEMES = ("http", "https")
"""Schemes of the page's origin: this server, or a proxy before it that encrypts."""
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]{1,5})?", re.ASCII)
BODY = 32 * 1024
"""Largest size of a request's body in bytes; the largest state takes about a fifth."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RefusedError(Exception):
    """Error: an answer in the 400s, with the state's entry that caused it, if there is
    one.
    """

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


def refusal(error: RefusedError) -> Response:
    return Response(
        json.dumps({"error": str(error), "field": error.field}),
        error.status,
        media_type="application/json",
    )


class Guard:
    """ASGI middleware that refuses unknown hosts and origins, and adds `HEADERS` to
    every answer.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in (*LOOPBACK, *hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        hosts, origin = headers.getlist("host"), headers.get("origin")
        if len(hosts) != 1 or host_name(hosts[0]) not in self.hosts:
            known = ", ".join(sorted(self.hosts))
            answer = refusal(
                RefusedError(421, f"this server answers to {known}, not to {ascii(hosts)[:80]}")
            )
            await answer(scope, receive, guarded)
        elif origin is not None and origin.lower() not in {
            f"{scheme}://{hosts[0].lower()}" for scheme in SCHEMES
        }:
            await refusal(RefusedError(403, "requests from other sites are refused"))(
                scope, receive, guarded
            )
        else:
            await self.app(scope, receive, guarded)


def host_name(host: str) -> str | None:
    """Return the name in a Host header without its port, or None if the header is
    invalid.

    >>> host_name("[::1]:8000"), host_name("localhost:8000"), host_name("[::1].evil.com")
    ('::1', 'localhost', None)
    """
    found = HOST.fullmatch(host)
    return None if found is None else (found[1] or found[2]).lower()


async def request_json(request: Request) -> Any:
    """Return the body of a request as JSON; raise an error if it is invalid or larger
    than `BODY`.
    """
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise RefusedError(415, "the body must be application/json")
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY:
                raise RefusedError(413, f"the body may have {BODY} bytes; this one has more")
    except ClientDisconnect:
        raise RefusedError(400, "the request ended before its body did") from None
    try:
        return json.loads(bytes(body), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is no JSON: {ascii(str(error))[1:-1][:100]}") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
