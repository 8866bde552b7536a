from __future__ import annotations

import pytest
import torch

import sih
from sih.construction import circuit_weights, construct
from sih.experiments import one_head
from sih.runs.run_store import RunStore
from sih.task import Task


def test_the_papers_single_head_is_a_point_of_the_family(rng: torch.Generator) -> None:
    """A: every third offset, alike; B: those offsets plus one. Summed evidence, so the circuit with a sink."""
    task = Task(sih.random_transition_matrix(4, rng=rng), (1, 2, 3), 30)
    head = one_head.MixingHead(task, rng)
    with torch.no_grad():
        every_third = torch.arange(30) % 3 == 0
        head.attend.copy_(torch.where(every_third, 1.0, -1e3))
        head.read.zero_()
        head.read[torch.arange(0, 30, 3) + 1 + head.span] = 1.0
        head.log_temper.zero_()
        head.log_beta.zero_()
        weight = torch.nn.functional.softplus(torch.tensor(1.0, dtype=torch.float64)).item()
    circuit = construct(task, heads=1, evidence="sum", beta=weight).circuit
    tokens = torch.randint(4, (5, 30), generator=rng)
    assert (head(tokens) - circuit_weights(tokens, task, circuit)).abs().max() < 1e-10


def test_descent_beats_the_papers_single_head_on_a_small_case() -> None:
    table = one_head.compute(
        one_head.OneHeadConfig(lag_sets=((1, 2, 3),), length=48, matrices=1, sequences=128, steps=400, batch=48),
        RunStore(),
    )
    (mean,) = table.mean
    assert mean["BMA"] == pytest.approx(mean["all heads, Bayes"], abs=1e-6)
    assert mean["BMA"] < mean["1 head, descent from random weights"] < mean["1 head, the paper's"]
    assert mean["1 head, Bayes on what it keeps"] < mean["1 head, the paper's"]
    assert mean["BMA"] < mean["1 head, descent from the circuit"] < mean["1 head, the paper's"]
    assert len(one_head.table(table)) == 1 + len(mean)
