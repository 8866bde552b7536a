from __future__ import annotations

import pytest
from support.asking import JSON, QUESTIONS, Client, chunks

from sih.explorer.guard import BODY
from sih.explorer.server import create_app

CLIENT = Client(create_app())


@pytest.mark.parametrize("path", ["/", "/app.js", "/nothing", "/api/models"])
def test_every_answer_has_the_strict_policy(path: str) -> None:
    headers = CLIENT.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8377",
        "",
        "localhost@evil",
        "[evil]",
        "[::1].evil.com",
        "127.0.0.1:80:evil",
    ],
)
def test_unknown_hosts_are_refused(host: str) -> None:
    for path in ("/", "/api/models"):
        answer = CLIENT.get(path, headers={"host": host})
        assert answer.status_code == 421
        assert "127.0.0.1" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost", "LOCALHOST:1", "[::1]:8377"])
def test_the_loopback_is_known_by_all_its_names(host: str) -> None:
    assert CLIENT.get("/", headers={"host": host}).status_code == 200


def test_further_hosts_are_known_if_told() -> None:
    client = Client(create_app(hosts=("lab.example",)), "http://lab.example")
    assert client.get("/").status_code == 200


def test_other_sites_may_not_ask() -> None:
    ask = {**JSON, "origin": "https://evil.example"}
    assert CLIENT.post("/api/view", content="{}", headers=ask).status_code == 403
    assert (
        CLIENT.ask(
            "OPTIONS", "/api/view", headers={**ask, "access-control-request-method": "POST"}
        ).status_code
        == 403
    )
    own = {**JSON, "origin": "http://127.0.0.1:8377"}
    assert CLIENT.post("/api/view", content='{"length": 20}', headers=own).status_code == 200
    assert (
        CLIENT.post("/api/view", content="{}", headers={"content-type": "text/plain"}).status_code
        == 415
    )


@pytest.mark.parametrize("path", QUESTIONS)
def test_large_bodies_are_refused_whether_or_not_they_say_so(path: str) -> None:
    large = b"[" + b"0," * BODY + b"0]"
    assert CLIENT.post(path, content=large, headers=JSON).status_code == 413
    assert (
        CLIENT.post(path, content=chunks(large), headers=JSON).status_code == 413
    )  # in chunks, of no stated length


NO_JSON = [
    b"",
    b"{",
    b"nonsense",
    b"\xff\xfe",
    b"NaN",
    b'{"seed": Infinity}',
    b"[" * 20_000,
    b"1" * 5000,
    b'"\\ud800"',
]


@pytest.mark.parametrize("path", QUESTIONS)
@pytest.mark.parametrize("body", NO_JSON, ids=range(len(NO_JSON)))
def test_what_is_no_json_or_no_state_is_a_clear_refusal(path: str, body: bytes) -> None:
    answer = CLIENT.post(path, content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "origin", ["evil://127.0.0.1:8377", "127.0.0.1:8377", "null", "http://127.0.0.1:8377/"]
)
def test_an_origin_is_a_scheme_and_the_host_asked(origin: str) -> None:
    asked = {**JSON, "host": "127.0.0.1:8377"}
    assert (
        CLIENT.post("/api/view", content="{}", headers={**asked, "origin": origin}).status_code
        == 403
    )
    ours = {**asked, "origin": "http://127.0.0.1:8377"}
    assert CLIENT.post("/api/view", content="[]", headers=ours).status_code == 422
