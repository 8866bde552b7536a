"""The explorer: fuzzed states, many clients at once, clients that vanish, and a soak with flat memory."""

from __future__ import annotations

import copy
import json
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torture.trial import Trial, forked

STATE: dict[str, Any] = {
    "lags": [1, 2, 3],
    "states": 4,
    "length": 40,
    "matrix": {"kind": "dirichlet", "seed": 1, "concentration": 1.0},
    "seed": 3,
    "edits": [[4, 1]],
    "models": [{"kind": "paper", "beta": 50.0}, {"kind": "bayes"}],
    "query": 9,
    "zoom": 2,
    "arcs": "2.1",
}
ODD: list[Any] = [
    *(
        None,
        True,
        "",
        "x",
        -1,
        0,
        1,
        2,
        16,
        255,
        256,
        257,
        2**53,
        1e308,
        0.01,
        1000.0,
        [],
        {},
        [1],
        [1, 2],
        [2, 1],
        [16],
    ),
    *(
        [1, 16],
        [[0, 0]],
        [[39, 3]],
        "uniform",
        "doubly-stochastic",
        "sparse",
        "near-periodic",
        "rows",
        "trained",
        "two-lags",
        "looking",
        "both",
        "mask",
    ),
    *(
        [{}] * 3,
        {"kind": "trained", "name": "../x"},
        {"rows": [[0.5, 0.5], [1, 0]]},
        "all",
        "9.9",
        "é",
        "\x00",
    ),
]
SLOW = 20.0
"""Seconds in which every answer has to be there, on a slow machine too."""
BATCH = 50


def fuzz_trials(share: float) -> Iterator[Trial]:
    for _ in range(max(1, int(2000 / BATCH * share))):
        yield _fuzz


def client_trials(share: float) -> Iterator[Trial]:
    yield _many
    yield _soak


def odd_state(draw: random.Random) -> Any:
    state = copy.deepcopy(STATE)
    for _ in range(draw.randint(1, 4)):
        at: Any = state
        key = draw.choice(list(state) or [0])
        while isinstance(at[key], dict | list) and at[key] and draw.random() < 0.7:
            at = at[key]
            key = draw.choice(list(at)) if isinstance(at, dict) else draw.randrange(len(at))
        at[key] = copy.deepcopy(draw.choice(ODD))  # a later change may be made to it
        if draw.random() < 0.05:
            return draw.choice(ODD)
    return state


def _fuzz(draw: random.Random, folder: Path) -> str:
    states = [odd_state(draw) for _ in range(BATCH)]

    def ask() -> int:
        from support.asking import JSON, Client

        from sih.explorer.server import create_app

        client = Client(create_app())
        for state in states:
            began = time.monotonic()
            body = state if draw.random() < 0.8 else {"state": state, "model": draw.choice(ODD)}
            of_a_model = isinstance(body, dict) and "model" in body
            path = draw.choice(("/api/certificate", "/api/channels")) if of_a_model else "/api/view"
            answer = client.post(path, content=json.dumps(body), headers=JSON)
            took = time.monotonic() - began
            assert answer.status_code in (200, 400, 409, 413, 422), (answer.status_code, body)
            assert took < SLOW, (took, body)
        return 0

    return forked(ask, folder, seconds=BATCH * SLOW).fault


def _many(draw: random.Random, folder: Path) -> str:
    """A hundred clients at once, a third of which vanish."""

    def ask() -> int:
        import anyio
        import httpx
        from support.asking import JSON

        from sih.explorer.server import create_app

        app, states = create_app(), [{"seed": number, "length": 64} for number in range(100)]
        codes: list[int] = []

        async def one(client: httpx.AsyncClient, number: int) -> None:
            with anyio.move_on_after(0.05 if number % 3 == 0 else 300):
                answer = await client.post(
                    "/api/view", content=json.dumps(states[number]), headers=JSON
                )
                codes.append(answer.status_code)

        async def all_of_them() -> None:
            transport = httpx.ASGITransport(app=app)
            async with (
                httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
                anyio.create_task_group() as group,
            ):
                for number in range(100):
                    group.start_soon(one, client, number)

        anyio.run(all_of_them)
        assert len(codes) >= 66, len(codes)
        assert set(codes) == {200}, set(codes)
        return 0

    return forked(ask, folder, seconds=400).fault


def _soak(draw: random.Random, folder: Path) -> str:
    """Ask for 400 views: after the first hundred, memory stays within 60 MB."""

    def ask() -> int:
        from support.asking import JSON, Client

        from sih.explorer.server import create_app

        client, after = Client(create_app()), 0
        for number in range(400):
            body = json.dumps(
                {"seed": number, "length": 64, "states": 3, "matrix": {"seed": number}}
            )
            assert client.post("/api/view", content=body, headers=JSON).status_code == 200
            if number == 100:
                after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - after
        assert grown < 60_000, f"memory grew by {grown} kB in 300 views"
        return 0

    return forked(ask, folder, seconds=400).fault
