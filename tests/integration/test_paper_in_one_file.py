"""The paper in one file computes what the package computes."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import sih

FILE = Path(__file__).parents[2] / "examples" / "paper_in_one_file.py"
LAGS, LENGTH = (1, 2, 3), 24


@pytest.fixture(scope="module")
def paper() -> ModuleType:
    spec = importlib.util.spec_from_file_location("paper_in_one_file", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def task() -> sih.Task:
    return sih.Task(sih.random_uniform(5, rng=3), lags=LAGS, length=LENGTH)


@pytest.fixture(scope="module")
def batch(task: sih.Task) -> sih.Batch:
    return sih.sample(task, size=64, rng=4)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() < 1e-12)


def test_it_needs_torch_and_matplotlib_alone_and_fits_on_a_few_pages() -> None:
    source = FILE.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {name.name for node in imports for name in node.names} | {n.module for n in froms}
    assert {str(name).split(".")[0] for name in names} == {"math", "torch", "matplotlib"}
    lines = source.splitlines()
    assert len(lines) <= 250
    assert max(map(len, lines)) <= 100


def test_matrix_and_stationary_law(paper: ModuleType) -> None:
    P = paper.random_matrix(5, torch.Generator().manual_seed(3))
    assert torch.equal(P, sih.random_uniform(5, rng=3))
    assert same(paper.stationary(P), sih.stationary_distribution(P))


def test_the_same_sequences(paper: ModuleType, task: sih.Task, batch: sih.Batch) -> None:
    tokens, lag = paper.sample(task.P, LAGS, LENGTH, 64, torch.Generator().manual_seed(4))
    assert torch.equal(tokens, batch.tokens)
    assert torch.equal(lag, batch.lags)


def test_predictors(paper: ModuleType, task: sih.Task, batch: sih.Batch) -> None:
    tokens, P = batch.tokens, task.P
    bayes = paper.bayes_average(tokens, P, LAGS)
    assert same(paper.log_likelihood(tokens, P, LAGS), sih.lag_log_likelihood(tokens, task))
    assert same(bayes, sih.bma(tokens, task))
    assert same(paper.maximum_likelihood(tokens, P, LAGS), sih.maximum_likelihood(tokens, task))
    truth = paper.truth(tokens, batch.lags, P, LAGS)
    assert same(truth, sih.truth(batch, task))
    assert same(paper.kl(truth, bayes), sih.kl_to_truth(bayes, batch, task))


def test_the_disentangled_transformer(paper: ModuleType, batch: sih.Batch) -> None:
    model = paper.DisentangledTransformer(5, LENGTH, (1, 2, 1))
    theirs = sih.DisentangledTransformer(
        5, LENGTH, (1, 2, 1), temperature=1.0, dtype=torch.float64, rng=0
    )
    for ours, A in zip(model.A, theirs.A, strict=True):
        ours.copy_(A.detach())
    model.W_O.copy_(theirs.readout.detach())
    with torch.no_grad():
        assert same(model(batch.tokens), theirs(batch.tokens))
    names = theirs.stream(2).names
    assert tuple(model.sizes[2]) == names
    for query, key in itertools.product(names, names):
        assert torch.equal(model.block("3.1", query, key), theirs.block("3.1", query, key))


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 2), (2, 3, 4)])
def test_the_weights_of_proposition_1(paper: ModuleType, lags: tuple[int, ...]) -> None:
    task = sih.Task(sih.random_uniform(4, rng=1), lags=lags, length=LENGTH)
    model = paper.proposition_1(task.P, lags, LENGTH)
    theirs = sih.construct(task, third="mask", heads=len(lags), lam=500.0)
    for ours, A in zip(model.A, theirs.A, strict=True):
        assert same(ours, A)
    assert same(model.W_O, theirs.readout)
    tokens = sih.sample(task, size=8, rng=2).tokens
    assert same(model(tokens), theirs.predict(tokens))


def test_the_first_ten_losses_of_training(paper: ModuleType) -> None:
    """Tokens and initial weights are the same, sums are taken in another order: 1e-6."""
    config = sih.TrainConfig(
        lags=LAGS, length=LENGTH, heads=(1, 3, 1), steps=10, batch=32, seed=5, matrix_law="uniform"
    )
    rng = torch.Generator().manual_seed(5)
    model = paper.Transformer(5, LENGTH, (1, 3, 1), rng)
    ours = paper.train(model, config.task.steady().P, LAGS, 10, 32, 1e-3, rng)
    losses = [step.loss for step in sih.train(config) if step.loss is not None]
    assert list(ours) == pytest.approx(losses, rel=1e-6)
    assert losses[-1] != losses[0]


def test_the_figure(
    paper: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, small in {"STEPS": 2, "BATCH": 4}.items():
        monkeypatch.setattr(paper, name, small)
    paper.main()
    assert (tmp_path / "paper_in_one_file.png").stat().st_size > 10_000
    means = dict(line.split(": mean KL ") for line in capsys.readouterr().out.splitlines())
    best, ml, circuit, untrained = map(float, means.values())
    assert best < ml < untrained
    assert best < circuit < untrained
    assert "sih" not in {name for name in vars(paper) if sys.modules.get(name) is not None}
