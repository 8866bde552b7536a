"""The closed form of a circuit."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import sih
from sih.circuits import circuit_weights
from sih.circuits.circuit_table import read_circuit
from sih.task import Task


def test_the_papers_form_tends_to_proposition_1(rng: torch.Generator) -> None:
    """With beta / K for beta, as long sequences make every head's count (T - k_hat) / K."""
    task = Task(sih.random_transition_matrix(4, rng=rng), (1, 2, 3), 1200)
    circuit = sih.construct(task.with_length(20), beta=20.0).circuit
    tokens = torch.randint(4, (8, 1200), generator=rng)  # no lag wins, so the weights stay open
    gap = (
        (circuit_weights(tokens, task, circuit) - sih.selective_weights(tokens, task, beta=60.0))
        .abs()
        .amax(dim=(0, 2))
    )
    assert gap[-100:].max() < 0.01
    assert gap[20:40].max() > 10 * gap[-100:].max()


def test_densities_are_accounted_for(rng: torch.Generator) -> None:
    """A pattern whose heads take different numbers of offsets: still every transition counts alike in the long run."""
    lags = next(
        lags
        for size in range(1, 9)
        for lags in itertools.combinations(range(1, 9), size)
        if len(
            {
                sih.least_heads(lags).colours.count(head)
                for head in range(sih.least_heads(lags).heads)
            }
        )
        > 1
    )
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 2000)
    circuit = sih.construct(task.with_length(60), beta=10.0).circuit
    assert len(set(circuit.second_layer.factors(1.0))) > 1
    tokens = sih.sample(task, 4, rng=rng).tokens
    even = sih.selective_weights(tokens, task, beta=10.0 * circuit.heads)
    assert (circuit_weights(tokens, task, circuit) - even)[:, -1].abs().max() < 0.02


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        *(
            ("log_zero", [1, [2]]),
            ("beta", float("nan")),
            ("lam", "x"),
            ("length", 0),
            ("length", True),
        ),
        *(
            ("sink", 1),
            ("lags", [2, 1]),
            ("lags", "12"),
            ("head_of_offset", []),
            ("head_of_offset", [0, None]),
        ),
        (
            "profile",
            {"lags": [1, 2], "length": 9, "weights": [[1.0]], "query": [[1.0]], "key": None},
        ),
    ],
)
def test_a_strangers_circuit_is_refused_in_one_line(task: Task, entry: str, value: Any) -> None:
    told = sih.construct(task).notes["circuit"]
    assert read_circuit(told).to_dict() == told
    with pytest.raises(ValueError, match=entry) as error:
        read_circuit({**told, entry: value})
    assert "\n" not in str(error.value)


def test_a_strangers_profile_is_refused_in_one_line(task: Task) -> None:
    told = sih.construct(task, target="bayes").notes["circuit"]
    profile = {"lags": [1, 2], "length": 9, "weights": [[1.0]], "query": [[1.0]], "key": None}
    with pytest.raises(ValueError, match="a profile's weights must be of shape"):
        read_circuit({**told, "profile": profile})
    other = sih.two_sided((1, 2), task.length, 1).to_dict()
    with pytest.raises(ValueError, match=r"circuit\.profile is for lags \(1, 2\)"):
        read_circuit({**told, "profile": other})


def test_all_transitions_together_bound_how_far_summed_evidence_puts_a_key_ahead(
    task: Task,
) -> None:
    circuit = sih.construct(task, evidence="sum", beta=3.0).circuit
    assert circuit.strength() == 3.0 * (task.length - task.max_lag)
