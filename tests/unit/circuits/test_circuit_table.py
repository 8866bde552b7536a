"""What may be asked of a circuit, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import sys
from typing import Any

import pytest
import torch

import sih
from sih.base.errors import FieldError
from sih.circuits import CIRCUITS
from sih.circuits.bayes import BayesCircuit, BayesOptions
from sih.circuits.circuit_table import circuit_options
from sih.task import Task


def test_fewer_heads_say_what_they_leave_out() -> None:
    task = Task([[0.9, 0.1], [0.4, 0.6]], (1, 2, 3), 30)
    circuit = sih.construct(task, heads=2).circuit
    assert circuit.heads == 2
    assert sorted(circuit.head_of_offset) == [-1, 0, 1]  # one offset in three is left to no head


@pytest.mark.parametrize(
    ("lags", "length", "options", "message"),
    [
        ((1, 2, 3), 40, {"target": "two-lags"}, r"for two lags, e.g. \(1, 3\); got \(1, 2, 3\)"),
        (
            (1, 3),
            40,
            {"target": "two-lags", "heads": 2},
            "no option 'heads' .*its options are lam, beta, temper",
        ),
        ((1, 3), 40, {"third": "mask"}, "one residue each and no sink, not for the pattern"),
        ((1, 2), 40, {"third": "mask", "sink": True}, "not with a sink"),
        ((1, 2), 40, {"evidence": "sum", "sink": False}, "needs the sink"),
        ((1, 2), 40, {"heads": 0}, "at least 1; got 0"),
        ((1, 2), 40, {"beta": -1.0}, "beta must be a number greater than 0"),
        (
            (1, 2),
            40,
            {"beta": 1e300},
            r"beta must be a number greater than 0, at most 1e\+15, or inf .*; got 1e\+300",
        ),
        ((1, 2), 40, {"lam": math.inf}, r"lam must be a number greater than 0, at most 1e\+15"),
        ((1, 2), 40, {"temper": 2e15}, r"temper must be a number greater than 0, at most 1e\+15"),
        (
            (1, 2),
            40,
            {"target": "looking", "looking": True},
            "looking must be a number greater than 0, at most 10",
        ),
        ((1, 2), 40, {"temper": 0.0}, "temper must be a number greater than 0"),
        ((1, 2), 40, {"lam": -3.0}, "lam must be a number greater than 0"),
        ((1, 2), 40, {"lam": 10.0}, r"lam=10 is too small.*use lam >= 1\d\d"),
        (
            (1, 2),
            40,
            {"symmetric": True},
            r"no option 'symmetric' \(it is one of 'bayes'\); its options are third",
        ),
        (
            (1, 2),
            40,
            {"target": "bayes", "beta": 3.0},
            "'bayes' has no option 'beta' .*its options are heads, lam, temper",
        ),
        ((1, 2), 40, {"dtype": torch.float16}, "torch.float32 or torch.float64"),
        ((1, 2, 3, 8), 12, {}, "length 12 is too short"),
    ],
)
def test_bad_requests_get_one_clear_line(
    lags: tuple[int, ...], length: int, options: dict[str, Any], message: str, rng: torch.Generator
) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, length)
    with pytest.raises(ValueError, match=message) as caught:
        sih.construct(task, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["target='three'", "evidence='max'", "third='key'"])
def test_unknown_words_get_one_clear_line(option: str) -> None:
    """In a process without the tests' type checker, as a user would meet it."""
    code = f"import sih; sih.construct(sih.Task([[0.9, 0.1], [0.4, 0.6]], (1, 2), 30), {option})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert re.search(
        r"FieldError: (target is '|evidence must be one of|third must be one of).*; got '",
        done.stderr.splitlines()[-1],
    )


def test_a_tiny_entry_asks_for_stronger_masks() -> None:
    task = Task([[1 - 1e-200, 1e-200], [0.5, 0.5]], (1, 2), 20)
    with pytest.raises(ValueError, match="lam=200 is too small"):
        sih.construct(task, lam=200.0)
    assert sih.verify(sih.construct(task), task).ok


FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("paper", {"lam": -3.0}, "lam"),
    ("paper", {"beta": 0.0}, "beta"),
    ("two-lags", {"temper": math.inf}, "temper"),
    ("bayes", {"temper": -1.0}, "temper"),
    ("bayes", {"lam": math.nan}, "lam"),
    ("paper", {"evidence": "sum", "sink": False}, "sink"),
    ("bayes", {"beta": 100.0}, "beta"),
    ("bayes", {"third": "position"}, "third"),
    ("two-lags", {"evidence": "sum"}, "evidence"),
    ("paper", {"colour": "red"}, "colour"),
]


@pytest.mark.parametrize(("target", "options", "field"), FIELDS, ids=str)
def test_options_check_themselves_and_names_the_field(
    target: str, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(FieldError) as caught:
        circuit_options(CIRCUITS, target, options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("lags", "length", "options", "field"),
    [
        ((1, 2, 3), 40, {"target": "two-lags"}, "target"),
        ((1, 2), 40, {"lam": 10.0}, "lam"),
        ((1, 2), 40, {"heads": 0}, "heads"),
        ((1, 3), 40, {"third": "mask"}, "third"),
        ((1, 2, 3, 8), 12, {}, "length"),
        ((1, 2), 40, {"dtype": torch.float16}, "dtype"),
    ],
)
def test_what_a_task_does_not_allow_names_the_field(
    lags: tuple[int, ...], length: int, options: dict[str, Any], field: str, rng: torch.Generator
) -> None:
    with pytest.raises(FieldError) as caught:
        sih.construct(Task(sih.random_transition_matrix(3, rng=rng), lags, length), **options)
    assert caught.value.field == field


@pytest.mark.parametrize("target", CIRCUITS)
def test_an_option_left_out_and_none_are_the_same(target: str, rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 3), 30)
    none: dict[str, Any] = {
        option.name: None
        for kind in CIRCUITS.values()
        for option in dataclasses.fields(kind.Options)
    }
    plain = sih.construct(task, target=target).circuit
    assert plain.target == target
    assert sih.construct(task, target=target, **none).circuit == plain
    kind = CIRCUITS[target]
    assert kind.resolve(task, kind.Options(), torch.float64) == plain


def test_bayes_takes_the_fewest_heads_that_its_bound_allows(rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(4, rng=rng)

    def heads(length: int, dtype: torch.dtype = torch.float64, **options: Any) -> int:
        task = Task(P, (1, 2, 3), length)
        return BayesCircuit.resolve(task, BayesOptions(**options), dtype).heads

    assert heads(64) == 2
    assert heads(64, torch.float32) == 3  # too few digits to mix
    assert heads(2048) == 3  # rounding grows as the cube of the length
    assert heads(64, lam=2e7) == 3  # masks of one's own choice that the parabola would pass
    assert heads(64, temper=0.01) == 3  # no bound is proved for an exponent of one's own choice
    assert heads(64, heads=2) == heads(64, torch.float32, heads=2) == 2
    assert heads(64, heads=3) == heads(64, heads=9) == 3
    assert heads(64, heads=1) == 1
    sparse = Task(sih.random_sparse(4, rng=rng, nonzero=2), (1, 2, 3), 64)
    assert (
        BayesCircuit.resolve(sparse, BayesOptions(), torch.float64).heads == 3
    )  # e^-100 takes the digits
