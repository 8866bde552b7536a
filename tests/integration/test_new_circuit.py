"""A circuit is a file and a line: this file adds one, and nothing else knows of it.

The toy trusts the newest transition alone and has two layers. Layer 2 reads what layer
1 found at the query, $E_{i,k} = \\beta \\tilde p_{i,k}$, and copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

import sih
from sih.base.errors import FieldError
from sih.beyond.diagnosis.resemblance import resemblances
from sih.circuits import CIRCUITS, steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.circuit_table import read_circuit
from sih.circuits.mask_strength import with_masks
from sih.circuits.positions import gaps
from sih.circuits.rounding import rounding_bounds
from sih.circuits.strengths import Strength
from sih.cli import main
from sih.explorer.circuit_check import verdict
from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import all_runs
from sih.explorer.view import make_view
from sih.task import Task
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True)
class NewestOptions(CircuitOptions):
    """What may be asked of the toy."""

    beta: Strength = 10.0
    """Inverse temperature of the last layer."""
    doubled: bool = False
    """Count the newest transition twice."""


@dataclass(frozen=True, kw_only=True)
class NewestCircuit(Circuit):
    """The numbers of the toy."""

    target: ClassVar[str] = "newest"
    Options: ClassVar[type[CircuitOptions]] = NewestOptions

    @classmethod
    def resolve(cls, task: Task, options: NewestOptions, dtype: torch.dtype) -> NewestCircuit:
        beta = 2 * options.beta if options.doubled else options.beta
        return with_masks(cls(lags=task.lags, length=task.length, beta=beta), task, None)

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        steps.attend_to_parents(blocks, task, self)
        newest = self.beta * (gaps(self.length) == -1)
        blocks.block("2.1", "1.1/position", "position").copy_(newest)
        blocks.block("2.1", "position", "position").copy_(steps.candidate_scores(self))
        steps.copy_law(blocks, task, self, readout, head="2.1")

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        return torch.softmax(self.beta * steps.evidence(tokens, task, self), dim=-1)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        yield from steps.expect_parents(tokens, task, self)
        yield from steps.expect_copies(tokens, task, self, head="2.1")

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        return rounding_bounds(self, dtype)

    def strength(self) -> float:
        return self.beta

    @property
    def model_heads(self) -> tuple[int, int]:
        return 1, 1

    @property
    def first_exact_position(self) -> int:
        return self.max_lag

    def describe(self) -> Iterator[str]:
        return self.lines("reads the newest transition alone")


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setitem(CIRCUITS, NewestCircuit.target, NewestCircuit)
    return Task(sih.random_transition_matrix(4, rng=0), (1, 3, 4), length=24)


def test_it_is_written_and_verified(task: Task) -> None:
    model = sih.construct(task, target="newest")
    found = sih.verify(model)
    assert model.config.heads == (1, 1)
    assert found.ok
    assert found.max_error < 1e-12
    assert [each.site for each in found.comparisons] == ["1.1/attention", "2.1/attention", "output"]


def test_a_wrong_weight_is_found(task: Task) -> None:
    model = sih.construct(task, target="newest")
    model.block("2.1", "1.1/position", "position").mul_(1.001)
    assert not sih.verify(model).ok


def test_its_last_layer_is_held_to_a_loop_over_the_definition(task: Task) -> None:
    model, tokens = sih.construct(task, target="newest"), sih.sample(task, 2, rng=1).tokens
    attention = model.trace(tokens)["2.1/attention"]
    for b, row in enumerate(tokens.tolist()):
        for i in range(4, 24):
            p = [task.P[row[i - k], row[i]].item() for k in task.lags]
            odds = torch.tensor([10.0 * each / sum(p) for each in p]).exp()
            wanted = (odds / odds.sum()).tolist()
            found = [attention[b, i, i - k + 1].item() for k in task.lags]
            assert found == pytest.approx(wanted, abs=1e-6)


def test_it_is_saved_and_read_from_notes(task: Task, tmp_path: Path) -> None:
    model = sih.construct(task, target="newest", beta=3.0)
    sih.save(model, tmp_path / "toy")
    assert sih.load(tmp_path / "toy").circuit == model.circuit
    with pytest.raises(FieldError, match=r"circuit\.beta must be a number greater than 0.*got -3"):
        read_circuit({**model.notes["circuit"], "beta": -3})


def test_its_options_are_flags(
    task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["construct", "--lags", "1", "3", "--length", "20", "--out", str(tmp_path / "toy")]
    assert main([*words, "--target", "newest", "--beta", "3", "--doubled"]) == 0
    printed = capsys.readouterr().out
    assert "lags 1 3, target newest\nreads the newest transition alone\nlam 500, beta 6" in printed
    certificate = json.loads((tmp_path / "toy" / "certificate.json").read_text())
    assert certificate["ok"]
    assert main(["verify", str(tmp_path / "toy")]) == 0
    assert main([*words, "--doubled"]) == 2
    assert "it is one of 'newest'" in capsys.readouterr().err
    assert main(["construct", "--help"]) == 0
    assert "Count the newest transition twice" in capsys.readouterr().out


def test_it_has_its_place_in_the_explorer(task: Task) -> None:
    state = read_state({"lags": [1, 3], "length": 24, "models": [{"kind": "newest", "beta": 3}]})
    view = make_view(state, all_runs(RunStore()))
    (said,) = view.header["models"]
    assert said["heads"] == (1, 1)
    assert [step["heads"] for step in said["ladder"]] == [1]
    assert view.arrays["attention/0"].shape == (2, 24, 24)
    assert verdict(state, 0)["ok"]


def test_what_it_carries_is_told_and_models_of_two_layers_are_compared_with_it(task: Task) -> None:
    model = sih.construct(task, target="newest")
    edges = {f"{edge.source} -> {edge.reader}" for edge in sih.circuit_edges(model)}
    assert {"2.1/token -> 2/stream", "1.1/position -> 2.1/query"} <= edges
    tokens = sih.sample(task, 4, rng=1).tokens
    nearest = resemblances(model.trace(tokens).attention, tokens, task)[0]
    assert nearest.circuit == "newest"
    assert nearest.distance < 1e-9


def test_a_foreign_option_is_one_clear_line(task: Task) -> None:
    with pytest.raises(FieldError, match=r"'newest' has no option 'third'.*it is one of 'paper'"):
        sih.construct(task, target="newest", third="mask")


def test_it_has_no_picture_of_heads_that_share_the_past(task: Task) -> None:
    assert repr(sih.construct(task, target="newest").circuit).startswith("NewestCircuit(lags=(1, 3")
    with pytest.raises(ValueError, match="do not share out the past"):
        sih.construct(task, target="newest").circuit.plot()
