from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import JSON, OF_A_MODEL, QUESTIONS, Client
from support.views import unpack

from sih.explorer import server
from sih.explorer.server import bind, create_app
from sih.explorer.state import State
from sih.explorer.view import View, make_view

CLIENT = Client(create_app())


def test_the_page_and_all_it_loads_come_from_here() -> None:
    page = CLIENT.get("/")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    assert "<script>" not in page.text
    assert "style=" not in page.text
    for name in ("app.js", "style.css", "icon.svg", "state.js"):
        assert CLIENT.get(f"/{name}").status_code == 200
    assert "://" not in page.text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/app.js", "/app.js/", "/app.js%00"],
)
def test_paths_open_no_files(path: str) -> None:
    assert CLIENT.get(path).status_code == 404


def test_methods_that_are_not_meant_are_refused() -> None:
    assert CLIENT.get("/api/view").status_code == 405
    assert CLIENT.post("/").status_code == 405
    assert CLIENT.ask("PUT", "/api/view", content="{}").status_code == 405


def test_bad_input_says_which_entry() -> None:
    answer = CLIENT.post("/api/view", json={"lags": [9], "length": 9})
    assert answer.status_code == 422
    assert answer.json()["field"] == "length"
    assert "largest lag, 9" in answer.json()["error"]


def test_questions_are_answered() -> None:
    view = unpack(CLIENT.post("/api/view", json={"length": 20}).content)
    assert view.arrays["tokens"].shape == (20,)
    assert view.arrays["attention/0"].shape == (5, 20, 20)
    assert (
        CLIENT.post("/api/certificate", json={"state": {"length": 20}, "model": 0}).json()["ok"]
        is True
    )
    assert "sih.construct(task)" in CLIENT.post("/api/python", json={}).text
    assert "standard-1.2.3" in [
        model["name"] for model in CLIENT.get("/api/models").json()["trained"]
    ]


def test_a_fit_is_asked_for_made_elsewhere_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = {"length": 22, "models": [{"kind": "both"}]}
    asked = {"state": state, "model": 0}
    for path, body in (("/api/view", state), ("/api/channels", asked), ("/api/certificate", asked)):
        answer = CLIENT.post(path, json=body)
        assert answer.status_code == 409
        assert answer.json()["field"] == "models.0.heads"
    assert (
        "sih.construct(task, target='bayes', heads=1, reading='both')"
        in CLIENT.post("/api/python", json=state).text
    )
    assert CLIENT.post("/api/fit", json=asked).json() == {"fitted": True}
    assert len(list(tmp_path.rglob("two-sided-*.json"))) == 1
    assert CLIENT.post("/api/fit", json=asked).json() == {"fitted": False}
    assert CLIENT.post("/api/view", json=state).status_code == 200
    assert unpack(CLIENT.post("/api/channels", json=asked).content).header["heads"] == ["2.1"]


@pytest.mark.parametrize("path", OF_A_MODEL)
def test_questions_about_a_model_name_the_entry_at_fault(path: str) -> None:
    for body, field in (
        ({"model": 0}, "model"),
        ({"state": {}, "model": "0"}, "model"),
        ({"state": {}, "model": 3}, "models"),
        ({"state": {"models": [{"kind": "both", "heads": 0}]}, "model": 0}, "models.0.heads"),
        (
            {"state": {"lags": [1, 2, 3, 4, 5, 6, 7], "models": [{"kind": "both"}]}, "model": 0},
            "models.0.heads",
        ),
        ({"state": {"models": [{"kind": "trained", "name": "../x"}]}, "model": 0}, "models.0"),
    ):
        answer = CLIENT.post(path, json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["field"] == field


def test_a_matrix_that_is_slow_to_balance_keeps_no_view_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two that are not done before six views are: they take turns of their own, one after the other."""
    client = Client(create_app())
    slow = [
        {"length": 20, "matrix": {"kind": "doubly-stochastic", "concentration": 0.4, "seed": n}}
        for n in (8, 9)
    ]
    views_done, at_once = threading.Event(), threading.Semaphore(1)
    done: list[str] = []

    def made(state: State, runs: Any) -> View:
        if not state.matrix.slow:
            return make_view(state, runs)
        assert at_once.acquire(blocking=False), "one after the other"
        assert views_done.wait(60), "views overtake what is slow"
        found = make_view(state, runs)
        at_once.release()
        return found

    async def ask(http: httpx.AsyncClient, name: str, state: dict[str, Any]) -> None:
        assert (await http.post("/api/view", json=state)).status_code == 200
        done.append(name)
        if done.count("quick") == 6:
            views_done.set()

    async def all_at_once() -> None:
        transport = httpx.ASGITransport(app=client.app)
        async with (
            httpx.AsyncClient(transport=transport, base_url=client.base) as http,
            anyio.create_task_group() as group,
        ):
            for state in slow:
                group.start_soon(ask, http, "slow", state)
            await anyio.sleep(0.05)
            for n in range(6):
                group.start_soon(ask, http, "quick", {"length": 20, "seed": n})

    monkeypatch.setattr(server, "make_view", made)
    anyio.run(all_at_once)
    assert done == ["quick"] * 6 + ["slow"] * 2


NUMBERS = st.integers(-3, 20) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
MODELS = st.lists(
    st.dictionaries(
        st.sampled_from(["kind", "name", "heads", "lam", "beta", "temper", "looking", "evidence"]),
        st.sampled_from(
            [
                "paper",
                "mask",
                "bayes",
                "two-lags",
                "fewer",
                "looking",
                "trained",
                "standard-1.2.3",
                "sum",
            ]
        )
        | NUMBERS
        | ANYTHING,
    ),
    max_size=3,
)
MATRICES = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(
            [
                "dirichlet",
                "uniform",
                "doubly-stochastic",
                "sparse",
                "near-periodic",
                "sticky",
                "rows",
            ]
        )
        | ANYTHING,
        "seed": NUMBERS,
        "concentration": st.floats(0.005, 2000) | ANYTHING,
        "rows": st.lists(
            st.lists(st.sampled_from([0, 0.25, 0.5, 0.75, 1]), min_size=2, max_size=2), max_size=3
        )
        | ANYTHING,
    },
)
NEARLY_STATES = st.fixed_dictionaries(
    {"length": st.integers(2, 30) | ANYTHING},
    optional={
        "lags": st.lists(st.integers(1, 9), max_size=4).map(lambda lags: sorted(set(lags)))
        | ANYTHING,
        "states": st.integers(1, 11) | ANYTHING,
        "matrix": MATRICES | ANYTHING,
        "seed": NUMBERS,
        "edits": st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=4) | ANYTHING,
        "models": MODELS | ANYTHING,
        "query": NUMBERS,
        "revealed": ANYTHING,
        "zoom": NUMBERS,
        "arcs": ANYTHING,
        "race": ANYTHING,
        "speed": NUMBERS,
        "offset": NUMBERS,
    },
)


@given(st.sampled_from(QUESTIONS), ANYTHING | NEARLY_STATES)
def test_no_question_breaks_the_server(path: str, value: Any) -> None:
    body = {"state": value, "model": 0} if path in OF_A_MODEL else value
    answer = CLIENT.post(path, content=json.dumps(body), headers=JSON)
    assert answer.status_code in (200, 400, 413, 422)
    if answer.status_code != 200:
        told = answer.json()
        assert told["error"]
        assert "\n" not in told["error"]
        assert "Traceback" not in told["error"]


@given(st.binary(max_size=300), st.sampled_from(QUESTIONS))
def test_no_bytes_break_the_server(body: bytes, path: str) -> None:
    assert (
        400 <= CLIENT.post(path, content=body, headers=JSON).status_code < 500
        or body.strip() == b"{}"
    )


def test_clients_that_vanish_leave_no_trace() -> None:
    """Half a body, none of the answer read, the connection reset: nothing is printed, and the next is answered."""
    command = [sys.executable, "-m", "sih.cli", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        found = re.search(r":(\d+)/", server.stdout.readline())
        assert found
        place, body = ("127.0.0.1", int(found[1])), b'{"length": 200}'
        for path in ("view", "channels", "fit"):
            head = f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(body)}\r\n\r\n"
            for sent, reset in (
                (head.encode() + body[:5], False),
                (head.encode() + body, False),
                (head.encode(), True),
            ):
                with socket.create_connection(place) as client:
                    client.sendall(sent)
                    if reset:
                        client.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
        assert httpx.get(f"http://127.0.0.1:{place[1]}/api/models", timeout=60).status_code == 200
        assert (
            httpx.post(f"http://127.0.0.1:{place[1]}/api/view", json={}, timeout=60).status_code
            == 200
        )
        server.terminate()
        said = server.communicate(timeout=60)
    assert said == ("", "")


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="--port") as found:
            bind("127.0.0.1", taken.getsockname()[1])
        assert "\n" not in str(found.value)
    with pytest.raises(ValueError, match="65535"):
        bind("127.0.0.1", 70000)
    bind("127.0.0.1", 0).close()
