"""Requests to an application without a network between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
from starlette.applications import Starlette

QUESTIONS = ("/api/view", "/api/certificate", "/api/channels", "/api/python", "/api/fit")
OF_A_MODEL = ("/api/certificate", "/api/channels", "/api/fit")
JSON = {"content-type": "application/json"}


class Client:
    """Calls an application as a server would; an exception in it fails the test."""

    def __init__(self, app: Starlette, base: str = "http://127.0.0.1:8377") -> None:
        self.app, self.base = app, base

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def once() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=self.base) as client:
                return await client.request(method, path, **options)

        return anyio.run(once)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("POST", path, **options)


async def chunks(body: bytes, size: int = 4096) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for start in range(0, len(body), size):
        yield body[start : start + size]
