from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import sih
from sih.circuits import construct, verify
from sih.circuits.circuit_table import read_circuit
from sih.circuits.verification import adversarial
from sih.heads.profiles import Profile
from sih.task import Task

WAYS: list[dict[str, Any]] = [
    {"third": "mask"},
    {"third": "position"},
    {"heads": 1},
    {"evidence": "sum", "beta": 3.0},
    {"sink": True},
    {"target": "bayes"},
    {"beta": float("inf")},
]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_an_honest_circuit_passes(options: dict[str, Any], dtype: torch.dtype, task: Task) -> None:
    model = construct(task, dtype=dtype, **options)
    found = verify(model, task)
    assert found.ok
    assert found.max_error == max(each.error for each in found.comparisons)
    assert found.first_exact_position == model.circuit.first_exact_position
    assert found.sequences["of the task"] == 16
    if dtype == torch.float64 and model.circuit.target == "paper" and model.circuit.beta < 1e6:
        assert found.max_error < 1e-8


BLOCKS = [
    ("1.1", "token", "token"),
    ("1.1", "position", "position"),
    ("2.1", "position", "position"),
    ("2.3", "position", "position"),
    ("3.1", "position", "position"),
    ("3.1", "2.1/1.1/position", "position"),
    ("3.1", "2.2/1.1/position", "position"),
]


@pytest.mark.parametrize("block", BLOCKS, ids="-".join)
@pytest.mark.parametrize(
    "options",
    [{"third": "position"}, {"evidence": "sum", "beta": 3.0}, {"target": "bayes", "heads": 3}],
    ids=str,
)
def test_a_block_with_its_sign_flipped_fails(
    block: tuple[str, str, str], options: dict[str, Any], task: Task
) -> None:
    model = construct(task, **options)
    model.block(*block).neg_()
    assert not verify(model, task).ok


def test_a_circuit_that_mixes_fails_with_a_sign_a_frequency_or_a_head_changed(task: Task) -> None:
    options: dict[str, Any] = {"target": "bayes", "heads": 2}
    built = construct(task, **options)
    profile = built.circuit.profile
    assert profile is not None
    assert verify(built, task).ok
    for layer, head in [
        ("1.1", "token"),
        ("1.2", "token"),
        ("2.1", "position"),
        ("2.2", "position"),
    ]:
        model = construct(task, **options)
        model.block(layer, head, head).neg_()
        assert not verify(model, task).ok
    for held in ("2.1/1.1", "2.2/1.2"):
        model = construct(task, **options)
        model.block("3.1", f"{held}/position", "position").neg_()
        assert not verify(model, task).ok
        model.block("3.1", f"{held}/position", "position").zero_()
        assert not verify(model, task).ok
    model = construct(
        task, **options
    )  # the frequency pi by a hundredth more, in weights and read, of the second head
    o = torch.arange(profile.weights.shape[1], dtype=torch.float64)
    n = torch.arange(profile.query.shape[1], dtype=torch.float64) - profile.span
    weights, query = profile.weights.clone(), profile.query.clone()
    weights[1], wave = 1 + 0.9 * torch.cos(3.17 * o), query[1].abs().max() * torch.cos(3.17 * n)
    query = torch.stack([query[0] + query[1] - wave, wave])
    wrong = Profile(profile.lags, profile.length, weights, query)
    replace(built.circuit, profile=wrong).write(model, task, "probability")
    assert not verify(model, task).ok
    model.circuit = replace(
        built.circuit, profile=wrong
    )  # weights and closed form agree, and are no posterior
    found = verify(model, task)
    assert found.max_error <= found.tolerance
    assert found.bound is None or found.bound > 1e-3
    assert wrong.residual.max() > 0.01


def test_a_tolerance_that_says_nothing_is_not_ok(rng: torch.Generator) -> None:
    """Mixed heads in float32: where digits run out nothing is verified, and where they do not, mutations fail."""
    P = sih.random_transition_matrix(4, rng=rng)
    options: dict[str, Any] = {"target": "bayes", "dtype": torch.float32}
    blind = verify(construct(Task(P, (1, 2), 96), heads=1, **options))
    assert blind.max_error <= blind.tolerance
    assert blind.tolerance >= 0.5
    assert blind.vacuous
    assert blind.reason is not None
    assert blind.reason.startswith("float32 has too few digits for scores so large")
    assert "reason='float32 has too few digits" in repr(blind)
    assert not blind.ok
    model = construct(Task(P, (2, 4, 6), 40), heads=2, **options)
    assert verify(model).ok
    assert verify(model).reason is None
    for block in [("3.1", "2.1/1.1/position", "position"), ("2.1", "position", "position")]:
        model.block(*block).neg_()
        assert not verify(model).ok
        model.block(*block).neg_()


LEAST: list[dict[str, Any]] = [
    {"beta": 3.0},
    {"beta": 3.0, "sink": True},
    {"temper": 100.0},
    {"target": "bayes"},
    {"target": "bayes", "temper": 1000.0},
]


@pytest.mark.parametrize("options", LEAST, ids=str)
@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 5)])
def test_the_weakest_masks_that_are_taken_are_verified(
    options: dict[str, Any], lags: tuple[int, ...]
) -> None:
    """What they let through is in the tolerance, and a mask taken away is not."""
    task = Task(sih.random_transition_matrix(3, rng=4), lags, 24)
    with pytest.raises(ValueError, match=r"lam=0.001 is too small") as refusal:
        construct(task, lam=1e-3, **options)
    model = construct(task, lam=float(str(refusal.value).split()[-1]), **options)
    found = verify(model)
    assert found.ok, found
    assert found.tolerance < 1e-3
    model.block("1.1", "position", "position").zero_()
    assert not verify(model).ok


@pytest.mark.parametrize(
    "strengths", [{"temper": 1e3}, {"temper": 40.0, "looking": 10.0}, {"temper": 1e15}]
)
def test_looking_without_weight_for_the_sink_is_refused(strengths: dict[str, Any]) -> None:
    task = Task(sih.random_transition_matrix(3, rng=4), (2, 5), 24)
    with pytest.raises(
        ValueError, match=r"^temper times looking is at most the length, 24, .*; got temper"
    ):
        construct(task, target="looking", **({"looking": 1.0} | strengths))
    assert verify(construct(task, target="looking", temper=24.0, looking=1.0)).ok


def test_masks_of_the_hard_limit_leave_digits(task: Task) -> None:
    """A mask that adds 1e8 to every wanted score would round log p away, and the tolerance would be near 1."""
    model = construct(task, beta=math.inf)
    assert model.circuit.lam > 1e7
    assert model.block("1.1", "position", "position").max() == 0
    assert verify(model).tolerance < 1e-5


def test_a_wrong_readout_a_swapped_index_a_dropped_head_fail(task: Task) -> None:
    model = construct(task)
    model.readout_block("3.1/token").copy_(task.P)  # transposed
    found = verify(model, task)
    assert not found.ok
    assert found.worst.site == "output"

    model = construct(task)
    block = model.block("2.2", "position", "position")
    block.copy_(block.roll(1, dims=1))
    assert not verify(model, task).ok

    model = construct(task)
    model.block("3.1", "2.3/1.1/position", "2.3/position").zero_()
    assert not verify(model, task).ok


def test_one_entry_is_enough(task: Task) -> None:
    model = construct(task, third="position")
    model.block("3.1", "2.1/1.1/position", "position")[5, 6] += 5.0
    found = verify(model, task)
    assert not found.ok
    assert found.worst.site == "3.1/attention"
    assert found.worst.first == model.circuit.first_exact_position <= found.worst.position


def test_not_a_number_fails(task: Task) -> None:
    model = construct(task)
    model.block("1.1", "token", "token")[0, 0] = float("nan")
    assert not verify(model, task).ok


def test_zeros_in_the_matrix(rng: torch.Generator) -> None:
    task = Task(sih.random_sparse(4, rng=rng, nonzero=2), (1, 2, 3), 40)
    ways: list[dict[str, Any]] = [
        {"third": "mask"},
        {"evidence": "sum", "beta": 3.0},
        {"target": "bayes", "heads": 3},
    ]
    ways.append({"target": "bayes", "heads": 2})  # lags mix
    for options in ways:
        found = verify(construct(task, **options), task)
        assert found.ok
        assert set(found.sequences) == {"of the task", "least likely"}  # all of them possible
        assert found.posterior_error is None or found.posterior_error < 1e-4


def test_adversarial_sequences_are_of_the_task_s_shape(task: Task, rng: torch.Generator) -> None:
    for rows in adversarial(task, rng).values():
        assert rows.shape[1] == task.length
        assert rows.min() >= 0
        assert rows.max() < task.num_states


def test_a_loaded_model_is_verified_by_its_notes_alone(task: Task, tmp_path: Path) -> None:
    built = construct(task)
    sih.save(built, tmp_path / "m")
    model = sih.load(tmp_path / "m")
    assert model.circuit == read_circuit(model.notes["circuit"]) == built.circuit
    found = verify(model)
    assert found == verify(built, task)
    assert found.ok
    model.notes, model.circuit = {}, None
    with pytest.raises(ValueError, match=r"has no circuit; for a trained model use sih\.diagnose"):
        verify(model, task)
    model.notes = {"circuit": {"lags": [1, 2], "head_of_offset": [0]}, "task": {}}
    with pytest.raises(ValueError, match="notes hold no circuit") as caught:
        verify(model)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_is_refused(task: Task) -> None:
    model = construct(task)
    with pytest.raises(ValueError, match="do not fit"):
        verify(model, task.with_length(20))
    model.notes["task"]["length"] = 20
    with pytest.raises(ValueError, match="do not fit"):
        sih.circuit_edges(model)


@pytest.mark.parametrize("target", ["paper", "bayes"])
@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"lam": 1e30},
        {"lam": math.inf},
        {"beta": math.inf},
        {"beta": 1e300, "lam": 1e15},
        {"temper": 1e300},
    ],
)
def test_nothing_that_a_file_says_makes_empty_weights_a_circuit(
    target: str, claims: dict[str, float], task: Task, tmp_path: Path
) -> None:
    built = construct(task, target=target)
    for weight in built.parameters():
        weight.zero_()
    built.notes["circuit"].update(claims)
    sih.save(built, tmp_path / "m")
    if math.inf in claims.values():
        with pytest.raises(ValueError, match="finite"):
            sih.load(tmp_path / "m")
        return
    assert not verify(sih.load(tmp_path / "m")).ok


def test_a_tolerance_in_the_notes_is_refused(task: Task, tmp_path: Path) -> None:
    built = construct(task)
    built.notes["circuit"]["rounding"] = 10.0
    sih.save(built, tmp_path / "m")
    with pytest.raises(ValueError, match="rounding"):
        verify(sih.load(tmp_path / "m"))
