from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import sih
from sih.base.errors import FieldError

P3 = sih.random_transition_matrix(3, rng=0)
TREES = sih.ParentsTask(P3, sih.random_parents(3, 20, rng=0, distinct=False), 20)
GRAPHS = sih.ParentsTask(P3, sih.random_parents(3, 20, rng=0), 20)


@pytest.mark.parametrize(
    ("task", "options", "field", "message"),
    [
        (
            TREES,
            {"third": "parents"},
            "third",
            "hypotheses 0 and 1 differ before and give token 4 one parent",
        ),
        (
            TREES,
            {"heads": 2},
            "heads",
            "the circuit 'paper' has no option 'heads'; its options are third, evidence",
        ),
        (TREES, {"symmetric": True}, "symmetric", r"\(it is one of 'bayes'\)"),
        (
            TREES,
            {"target": "looking"},
            "target",
            "'looking' is for lags; of a table of parents it is 'paper' or",
        ),
        (TREES, {"target": "magic"}, "target", "target is 'paper' or 'bayes'; got 'magic'"),
        (TREES, {"kind": "standard"}, "kind", "the circuit 'paper' has no option 'kind'"),
        (TREES, {"lam": 3.0}, "lam", "lam=3 is too small"),
        (TREES, {"beta": -1.0}, "beta", "a number greater than 0, at most 1e\\+15, or inf"),
        (TREES, {"target": "bayes", "temper": 0.0}, "temper", "a number greater than 0"),
        (TREES, {"dtype": torch.float16}, "dtype", "torch.float32 or torch.float64"),
        (
            sih.ParentsTask(P3, [[-1, 0, 0], [-1, -1, 0]]),
            {},
            "parents",
            "token 1 has no parent under hypothesis 1",
        ),
        (
            sih.ParentsTask(P3, sih.random_parents(3, 4, rng=0), 4),
            {"third": "slots"},
            "length",
            "length 4 is too short: with these parents the circuit is right from position 5 on",
        ),
    ],
)
def test_what_cannot_be_is_one_line(
    task: Any, options: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(FieldError, match=message) as caught:
        sih.construct_parents(task, **options)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_the_smaller_model_is_taken() -> None:
    for task, thirds in ((TREES, ("slots",)), (GRAPHS, ("slots", "parents"))):
        taken = sih.construct_parents(task)
        sizes = [
            sum(weight.numel() for weight in sih.construct_parents(task, third=third).A[2])
            for third in thirds
        ]
        assert taken.A[2].numel() == min(sizes)
    lags = sih.ParentsTask(P3, sih.Task(P3, (1, 2, 3), 20).parents(21), 20)
    assert sih.construct_parents(lags).config.heads == (1, 3, 1)  # the paper's


def test_the_limit_is_hard_selection() -> None:
    model = sih.construct_parents(TREES, beta=math.inf)
    tokens = sih.sample(TREES, 4, rng=0).tokens
    gap = (model.predict(tokens) - sih.selective(tokens, TREES, beta=math.inf))[
        :, model.circuit.rows
    ]
    assert gap.abs().max() < 1e-6
    none = sih.construct_parents(TREES, beta=None, third=None).circuit
    assert none == sih.construct_parents(TREES).circuit
