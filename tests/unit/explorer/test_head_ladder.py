from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sih
from sih.explorer.circuit_choice import resolve
from sih.explorer.head_ladder import ladder
from sih.explorer.parse_state import read_state


def steps(value: dict[str, Any]) -> list[dict[str, Any]]:
    state = read_state(value)
    return ladder(state.models[0], resolve("models.0", state.models[0], state.task()))


@pytest.mark.parametrize(
    ("lags", "built"),
    [
        ([1, 2], ["mixed", "unmixed"]),
        ([1, 2, 3], ["partial", "mixed", "unmixed"]),
        ([3, 5, 7], ["partial", "mixed", "unmixed"]),
        ([1, 2, 4, 8], ["partial"] * 4 + ["unmixed"]),
        ([4], ["unmixed"]),
    ],
)
def test_each_number_of_heads_is_called_what_it_builds(lags: list[int], built: list[str]) -> None:
    found = steps({"lags": lags, "length": 30, "models": [{"kind": "bayes"}]})
    assert [step["heads"] for step in found] == [*range(1, len(built) + 1)]
    assert [step["built"] for step in found] == built
    assert len(built) == sih.least_heads(tuple(lags)).heads
    for step in found:  # and it is so
        circuit = sih.construct(
            read_state({"lags": lags, "length": 30}).task(), target="bayes", heads=step["heads"]
        ).circuit
        assert circuit.heads == step["heads"]
        assert (circuit.profile is not None) == (step["built"] == "mixed")
        assert (-1 in circuit.head_of_offset) == (step["built"] == "partial")


def test_what_goes_unused_and_what_is_approximate_is_said() -> None:
    paper = steps({"length": 30})
    assert paper[0]["words"] == "the paper's form, 2/3 of the past unused"
    assert paper[2]["words"] == "the paper's form, nothing lost"
    sih.two_sided((1, 2, 3), 20, 1)
    both = steps({"length": 20, "models": [{"kind": "both", "heads": 3}]})
    assert [step["built"] for step in both] == ["both", "mixed", "unmixed"]
    worst = sih.two_sided((1, 2, 3), 20, 1).residual.max().item()
    assert both[0]["words"] == f"read from both sides, approximate: residual up to {worst:.2g}"


def test_what_is_not_fitted_yet_or_never_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (
        "to be fitted"
        in steps({"length": 21, "lags": [1, 2, 4], "models": [{"kind": "both", "heads": 4}]})[0][
            "words"
        ]
    )
    large = {"lags": [1, 2, 3, 4, 5, 6, 7], "models": [{"kind": "both", "heads": 7}]}
    assert "too many lags to fit" in steps(large)[0]["words"]


def test_circuits_without_a_slider_are_told_too() -> None:
    assert (
        "read at the key" in steps({"lags": [1, 3], "models": [{"kind": "two-lags"}]})[0]["words"]
    )
    (looking,) = steps({"length": 30, "models": [{"kind": "looking"}]})
    assert looking["heads"] == 2
    assert "one head fewer" in looking["words"]
    (relative,) = steps({"length": 5, "models": [{"kind": "relative-bayes"}]})
    assert relative["heads"] == 1
    assert "any set of lags, at any length" in relative["words"]
