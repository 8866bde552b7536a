"""A task of one's own is a class: sampled, predicted, trained, resumed, read and drawn like the others.

The one here has a matrix for each lag. `ParentsTask` goes the same ways, and what it does not have is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

import sih
from sih.base.errors import FieldError
from sih.cli import main
from sih.task import Batch, Lagged, RowLaws, random_parents
from sih.task.laws import KnownRows
from sih.task.parents import OneHypothesis
from sih.training.config_file import digest, from_json, to_json
from sih.training.runs.run import Run
from sih.training.runs.run_names import run_name
from sih.training.runs.run_writer import RunWriter

STEPS = 200
SIZES: dict[str, Any] = {"heads": (1, 2, 1), "dim": 16, "qk_dim": 8, "batch": 16, "held_out": 64}


@dataclass(frozen=True, eq=False)
class MatrixPerLag(Lagged, OneHypothesis):
    """Token i follows token i - k by the matrix of lag k; the first tokens are uniform."""

    matrices: Float[Tensor, "lag state state"]
    lags: tuple[int, ...]
    length: int
    lag_prior: Float[Tensor, " lag"]

    @property
    def num_states(self) -> int:
        return self.matrices.shape[-1]

    @property
    def initial(self) -> Float[Tensor, " state"]:
        return torch.full((self.num_states,), 1 / self.num_states, dtype=torch.float64)

    def draw_transitions(self, first: Int[Tensor, " batch"], rng: torch.Generator) -> Tensor:
        return self.matrices[first]

    def transitions(self, batch: Batch) -> Float[Tensor, "batch state state"]:
        return self.matrices[torch.searchsorted(torch.tensor(self.lags), batch.lags)]

    def laws(self, tokens: Int[Tensor, "batch time"]) -> LawsPerLag:
        return LawsPerLag(
            [RowLaws(tokens, self.parents, P[None], self.initial) for P in self.matrices]
        )

    def memory(self) -> RowsPerLag:
        return RowsPerLag([KnownRows(P) for P in self.matrices])


@dataclass(frozen=True)
class LawsPerLag:
    rows: list[RowLaws]

    def log_probabilities(self) -> Float[Tensor, "batch time lag"]:
        each = [row.log_probabilities()[..., k] for k, row in enumerate(self.rows)]
        return torch.stack(each, dim=-1)

    def mixture(
        self, weights: Float[Tensor, "batch time lag"]
    ) -> Float[Tensor, "batch time state"]:
        only = torch.eye(len(self.rows), dtype=torch.float64).expand(*weights.shape, -1)
        laws = [row.mixture(only[..., k, :].contiguous()) for k, row in enumerate(self.rows)]
        return torch.einsum("btk,kbts->bts", weights, torch.stack(laws))


@dataclass(frozen=True)
class RowsPerLag:
    rows: list[KnownRows]

    def probability(self, hypothesis: int, parent: int, token: int) -> float:
        return self.rows[hypothesis].probability(hypothesis, parent, token)

    def learn(self, hypothesis: int, parent: int, token: int) -> None:
        pass

    def law(self, hypothesis: int, parent: int) -> list[float]:
        return self.rows[hypothesis].law(hypothesis, parent)


def toy(seed: int = 0) -> MatrixPerLag:
    matrices = [sih.random_transition_matrix(3, rng=seed + lag) for lag in range(2)]
    prior = torch.full((2,), 0.5, dtype=torch.float64)
    return MatrixPerLag(torch.stack(matrices), (1, 3), 16, prior)


def parents() -> sih.ParentsTask:
    return sih.ParentsTask(sih.random_transition_matrix(3, rng=0), random_parents(2, 16, rng=0))


TASKS: list[Callable[[], Any]] = [toy, parents]


def config(task: Any, **changes: Any) -> sih.TrainConfig:
    return sih.TrainConfig(task=task, **{**SIZES, "steps": STEPS, "evaluate_every": 100, **changes})


def trained(task: Any, folder: Path, stop_at: int | None = None, **changes: Any) -> Run:
    writer = RunWriter(config(task, **changes), folder, threads=1)
    for step in writer:
        if step.step == stop_at:
            writer.save()
            break
    return Run(folder)


def test_it_is_sampled_predicted_and_judged() -> None:
    task = toy()
    batch = sih.sample(task, 2000, rng=0)
    kl = {
        each: sih.mean_kl(sih.kl_to_truth(each(batch.tokens, task), batch, task), task)
        .mean()
        .item()
        for each in (sih.bma, sih.maximum_likelihood)
    }
    assert 0 < kl[sih.bma] < kl[sih.maximum_likelihood]
    assert sih.kl_to_truth(sih.truth(batch, task), batch, task).abs().max() < 1e-12
    for index, lag in enumerate(task.lags):  # each lag has its own matrix
        tokens = batch.tokens[batch.lags == lag]
        pairs = torch.stack([tokens[:, 3 - lag : -lag].flatten(), tokens[:, 3:].flatten()])
        counts = torch.zeros(3, 3, dtype=torch.float64)
        counts.index_put_((pairs[0], pairs[1]), torch.ones(()).double(), accumulate=True)
        assert torch.allclose(counts / counts.sum(1, keepdim=True), task.matrices[index], atol=0.03)


@pytest.mark.parametrize("make", TASKS)
def test_it_is_trained_and_resumed_to_the_same_bytes(
    make: Callable[[], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = make()
    whole = trained(task, tmp_path / "whole")
    assert not trained(task, tmp_path / "resumed", stop_at=17).finished
    trained(task, tmp_path / "resumed")
    for file in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (whole.folder / file).read_bytes() == (tmp_path / "resumed" / file).read_bytes()
    first, last = (whole.evaluations[index] for index in (0, -1))
    assert last["kl"] < 0.8 * first["kl"]
    assert first["bma"] < first["ml"]
    assert whole.model.config.num_states == 3

    read = sih.diagnose(task, sih.sample(task, 32, rng=1), model=whole.model)
    assert [head.name for head in read.heads] == ["1.1", "2.1", "2.2", "3.1"]
    assert read.kl["bma"].mean < read.kl["model"].mean
    assert "not compared with the known circuits" in repr(read)
    assert read.plot().axes
    batch = sih.sample(task, 32, rng=1)
    if hasattr(task, "lags"):
        flow = sih.evidence_flow(whole.model, task, batch)
        assert sum(flow.shares.values()) == pytest.approx(1)
    else:
        with pytest.raises(FieldError, match=r"task must be a task of lags.*; got a ParentsTask"):
            sih.evidence_flow(whole.model, task, batch)

    assert main(["runs", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert type(task).__name__.lower() in out
    assert f"a task of one's own, {type(task).__name__}" in out
    assert main(["runs", "show", str(whole.folder)]) == 0
    out = capsys.readouterr().out
    assert f"heads are not read: the task {type(task).__name__} is an object" in out
    assert "no command names it" in out
    with pytest.raises(FieldError, match="is an object, which no file holds"):
        sih.evaluate(whole)
    assert type(task).__name__ in repr(whole)


def test_it_answers_for_its_posterior() -> None:
    """The evidence is counted here by hand, by the matrix of each lag."""
    task = toy()
    tokens = sih.sample(task, 4, rng=0).tokens
    weights = sih.lag_posterior(tokens, task)
    log_p = task.laws(tokens).log_probabilities()
    assert torch.equal(weights, task.posterior(log_p))
    assert torch.equal(task.likeliest(log_p)[:, -1], weights[:, -1].argmax(dim=-1))
    by_hand = []
    for lag, P in zip(task.lags, task.matrices, strict=True):
        by_hand.append(P[tokens[:, 3 - lag : -lag], tokens[:, 3:]].log().sum(dim=1))
    expected = torch.softmax(torch.stack(by_hand, dim=1), dim=1)
    assert torch.allclose(weights[:, -1], expected, atol=1e-12)


def test_its_run_says_so_and_asks_for_it_again(tmp_path: Path) -> None:
    found = trained(toy(), tmp_path / "run", stop_at=3).config
    assert found == config(toy())
    described = json.loads((tmp_path / "run/config.json").read_text())["task"]["own"]
    assert (described["task"], described["states"]) == ("MatrixPerLag", 3)
    assert run_name(found).startswith("standard-matrixperlag-heads-1.2.1-")
    with pytest.raises(FieldError, match="MatrixPerLag is an object, which no file holds; give it"):
        RunWriter(found, tmp_path / "run", threads=1)
    with pytest.raises(ValueError, match="holds another run: own is"):
        RunWriter(config(toy(seed=7)), tmp_path / "run", threads=1)
    assert digest(config(toy(seed=7))) != digest(found)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
    assert found.replace(task=toy(), steps=5).task.build().num_states == 3


def test_train_takes_any_task() -> None:
    for task in (toy(), parents()):
        *_, last = sih.train(task=task, model="standard", **{**SIZES, "steps": 3})
        assert last.evaluation is not None
        assert last.evaluation.bma_kl < last.evaluation.ml_kl
    with pytest.raises(FieldError, match="length_schedule: task ParentsTask has no with_length"):
        sih.TrainConfig(task=parents(), steps=9, length_schedule=((3, 5),))
    short = sih.TrainConfig(task=toy(), **{**SIZES, "steps": 2}, length_schedule=((1, 8),))
    assert [step.step for step in sih.train(short)] == [0, 1, 2]
    alone = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], [[-1, -1, -1, -1]])
    with pytest.raises(FieldError, match="no token of ParentsTask has a parent"):
        sih.TrainConfig(task=alone)


def test_a_task_of_lags_and_its_config_are_trained_alike() -> None:
    named = sih.TrainConfig(lags=(1, 2), length=12, **{**SIZES, "steps": 2})
    by_name = [step.loss for step in sih.train(named)]
    by_object = [step.loss for step in sih.train(named, task=named.task.build())]
    assert by_name == by_object
