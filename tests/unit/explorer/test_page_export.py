from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.views import unpack

from sih.explorer.channels_view import make_channels
from sih.explorer.page_export import bundle, export_page, fitting, record, saved_page
from sih.explorer.parse_state import read_state
from sih.explorer.python_snippet import snippet
from sih.explorer.trained_models import all_runs
from sih.explorer.view import make_view
from sih.training.runs.run_store import RunStore

RUNS = all_runs(RunStore())
SMALL = read_state({"length": 24, "lags": [1, 3], "states": 3})


@pytest.fixture(scope="module")
def saved() -> dict[str, Any]:
    return record(SMALL, 2, RUNS)


def test_a_saved_page_holds_the_views_that_a_server_would_send(saved: dict[str, Any]) -> None:
    assert saved["seeds"] == [SMALL.seed, SMALL.seed + 1]
    for number, entry in enumerate(saved["models"]):
        state = read_state(
            {"length": 24, "lags": [1, 3], "states": 3, "seed": 20, "models": [entry["choice"]]}
        )
        found = unpack(gzip.decompress(base64.b64decode(saved["views"][f"1.{number}"])))
        wanted = make_view(state, RUNS)
        assert found.header["lag"] == wanted.header["lag"]
        assert all(
            np.array_equal(found.arrays[name], array) for name, array in wanted.arrays.items()
        )
        assert entry["certificate"]["ok"]
        channels = unpack(gzip.decompress(base64.b64decode(saved["channels"][f"1.{number}"])))
        computed = make_channels(state, 0, RUNS)
        assert channels.header == computed.header
        assert all(
            np.array_equal(channels.arrays[name], array) for name, array in computed.arrays.items()
        )
        assert saved["python"][f"1.{number}"] == snippet(state)


def test_every_pair_of_models_has_its_python(saved: dict[str, Any]) -> None:
    count = len(saved["models"])
    assert len(saved["python"]) == 2 * count * (1 + count)


def test_models_that_fit_are_listed_once() -> None:
    small = [(choice.kind, choice.heads) for choice in fitting(SMALL, RUNS)]
    assert small[:5] == [
        ("paper", None),
        ("fewer", None),
        ("two-lags", None),
        ("bayes", None),
        ("looking", None),
    ]
    assert small[5:7] == [("relative", None), ("relative-bayes", None)]
    assert small[7:] == [("bayes", 2)], (
        "one head mixes both lags; with two nothing does; both sides add nothing"
    )
    three = [
        (choice.kind, choice.heads)
        for choice in fitting(read_state({"length": 20}), RUNS)
        if not choice.trained
    ]
    assert three[-5:] == [
        ("both", None),
        ("relative", None),
        ("relative-bayes", None),
        ("bayes", 1),
        ("bayes", 3),
    ]
    first = [choice.name or choice.kind for choice in fitting(read_state({}), RUNS)]
    assert first[:4] == [
        "paper",
        "position",
        "fewer",
        "bayes",
    ]  # for contiguous lags the paper's circuit is the mask form
    assert "standard-1.2.3" in first
    assert "standard-1.3" not in first


def test_the_script_is_whole_and_the_policy_allows_only_it(saved: dict[str, Any]) -> None:
    page = saved_page(saved)
    assert not re.search(r"^(import|export) ", bundle("app"), re.M)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    (data,) = re.findall(r'id="saved">(.*?)</script>', page, re.S)
    assert json.loads(data) == json.loads(json.dumps(saved))
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        export_page(tmp_path / name, SMALL, 1)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_bad_requests_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.html; got"):
        export_page(tmp_path / "page.txt", SMALL, 1)
    with pytest.raises(ValueError, match="from 1 to 64; got 0"):
        export_page(tmp_path / "page.html", SMALL, 0)
    assert list(tmp_path.iterdir()) == []
