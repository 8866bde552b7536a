from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from support.asking import Client

from sih.explorer import fit_process
from sih.explorer.fit_process import FitRefusedError, Fits
from sih.explorer.server import create_app

ASKED = {"state": {"length": 23, "models": [{"kind": "both"}]}, "model": 0}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_fit_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_process, "PATIENCE", 0.05)
    answer = Client(create_app()).post("/api/fit", json=ASKED)
    assert answer.status_code == 429
    assert answer.json()["field"] == "models.0.heads"
    assert answer.json()["error"] == "the fit took more than 0.05 seconds and was given up"


def test_more_than_a_few_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_process, "WAITING", -1)
    answer = Client(create_app()).post("/api/fit", json=ASKED)
    assert answer.status_code == 429
    assert "ask again later" in answer.json()["error"]


def test_told_to_stop_it_ends_what_runs_and_refuses_what_waits(empty_cache: Path) -> None:
    """Three ask: the first is ended, the second never begins, the third comes too late; all within a second."""
    said: list[str] = []

    async def ask(fits: Fits) -> None:
        try:
            await fits.make((1, 2, 3, 4, 5), 128, 1)
        except FitRefusedError as error:
            said.append(str(error))

    async def story() -> float:
        fits = Fits()
        async with anyio.create_task_group() as group:
            group.start_soon(ask, fits)
            group.start_soon(ask, fits)
            while fits.running is None:
                await anyio.sleep(0.01)
            began = time.monotonic()
            fits.stop()
            group.start_soon(ask, fits)
        return time.monotonic() - began

    assert anyio.run(story) < 5
    assert sorted(said) == [
        "the explorer is ending",
        "the explorer is ending",
        "the fit was stopped",
    ]
    assert not list(empty_cache.rglob("two-sided-*"))


def test_a_fit_that_cannot_be_kept_is_said(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_cache / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(empty_cache / "file"))
    answer = Client(create_app()).post(
        "/api/fit", json={"state": {"length": 12, "models": [{"kind": "both"}]}, "model": 0}
    )
    assert answer.status_code == 422
    assert "cache folder" in answer.json()["error"]
