"""The Bayes-optimal circuit as a standard transformer of a width that does not grow with the length."""

import math

import pytest
import torch

import sih
from sih.circuits.bayes import BayesOptions
from sih.circuits.narrow import NarrowBayesCircuit, _lag_mask, first_depth, third_depth
from sih.circuits.position_forms import column


def task_of(lags: tuple[int, ...], length: int, states: int = 3, seed: int = 0) -> sih.Task:
    P = sih.random_transition_matrix(states, rng=torch.Generator().manual_seed(seed))
    prior = torch.arange(1, len(lags) + 1, dtype=torch.float64)
    return sih.Task(P, lags, length, lag_prior=prior / prior.sum())


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize(
    "lags", [(1,), (1, 2), (2, 5), (1, 2, 3), (1, 3, 4), (2, 4, 7), (1, 2, 4, 8)], ids=str
)
def test_a_mask_is_zero_at_the_lags_and_deep_elsewhere(lags: tuple[int, ...], shift: int) -> None:
    """Also far beyond its longest wave, which is 32 times as long as the lags reach."""
    length, depth = 700, 10.0
    circuit = NarrowBayesCircuit.resolve(task_of(lags, length), BayesOptions(), torch.float64)
    form = _lag_mask(circuit, depth, shift, {lags[-1]: -0.5})
    columns = {f: column(f, length) for pair in form.terms for f in pair}
    row = length - 1
    scores = form.values(columns)[row].tolist()
    for key in range(length):
        z = row - key + shift
        if z in lags:
            assert scores[key] == pytest.approx(-0.5 if z == lags[-1] else 0.0, abs=1e-9)
        else:
            assert scores[key] <= -depth + 1e-9


@pytest.mark.parametrize("lags", [(1, 2), (2, 5), (1, 2, 3), (1, 3, 4), (3, 5, 7), (2,)], ids=str)
def test_it_is_verified_and_near_the_posterior(lags: tuple[int, ...]) -> None:
    task = task_of(lags, 40)
    model = sih.construct(task, target="bayes", kind="standard")
    found = sih.verify(model, task)
    assert found.ok
    assert found.posterior_error is not None
    assert found.posterior_error < 1e-7
    assert {each.site for each in found.comparisons} >= {
        "1.1/attention",
        "1.2/attention",
        "2.1/attention",
        "output",
    }
    tokens = sih.sample(task, 8, rng=torch.Generator().manual_seed(1)).tokens
    exact = sih.bma(tokens, task)
    for path in ("plain", "fused"):
        assert (model.predict(tokens, path=path) - exact)[:, lags[-1] - 1 :].abs().max() < 1e-7


@pytest.mark.parametrize(("lags", "heads"), [((1, 2), None), ((1, 2, 3), 2), ((1, 2, 3), 3)])
def test_the_width_does_not_grow_with_the_length(lags: tuple[int, ...], heads: int | None) -> None:
    models = [
        sih.construct(task_of(lags, n), target="bayes", kind="standard", heads=heads)
        for n in (16, 200)
    ]
    widths = {(model.config.dim, model.config.qk_dim) for model in models}
    assert len(widths) == 1
    assert max(widths) < (40, 24)


def test_float32_is_near_the_posterior_too() -> None:
    model = sih.construct(
        task_of((1, 2, 3), 64), target="bayes", kind="standard", dtype=torch.float32
    )
    found = sih.verify(model)
    assert found.ok
    assert found.posterior_error is not None
    assert found.posterior_error < 2e-3


def test_probabilities_of_zero_are_no_obstacle() -> None:
    task = sih.Task([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.6, 0.0, 0.4]], (1, 2, 3), 32)
    assert sih.verify(sih.construct(task, target="bayes", kind="standard"), task).ok


@pytest.mark.parametrize(
    "weight",
    [
        "layers.0.Q",
        "layers.0.V",
        "layers.1.Q",
        "layers.1.V",
        "layers.2.Q",
        "layers.2.V",
        "position",
        "readout",
    ],
)
def test_mutations_fail(weight: str) -> None:
    task = task_of((1, 2, 3), 32)
    model = sih.construct(task, target="bayes", kind="standard")
    model.get_parameter(weight).mul_(1.01)
    assert not sih.verify(model, task).ok


def test_a_flipped_head_and_a_dropped_one_fail() -> None:
    task = task_of((1, 2, 3), 32)
    for layer, factor in ((0, -1.0), (1, 0.0)):
        model = sih.construct(task, target="bayes", kind="standard")
        model.each_layer()[layer].V[1].mul_(factor)
        assert not sih.verify(model, task).ok


def test_logits_of_the_copied_token_are_logarithms() -> None:
    task = task_of((1, 2), 24)
    laws = [
        sih.construct(task, target="bayes", kind=kind, readout="logit")
        for kind in ("standard", "disentangled")
    ]
    tokens = sih.sample(task, 4, rng=torch.Generator().manual_seed(1)).tokens
    first, second = (model.predict(tokens)[:, 1:] for model in laws)
    assert (first - second).abs().max() < 1e-6


def test_it_is_saved_and_loaded_with_its_circuit(tmp_path: object) -> None:
    model = sih.construct(task_of((1, 2, 3), 24), target="bayes", kind="standard")
    sih.save(model, f"{tmp_path}/model")
    loaded = sih.load(f"{tmp_path}/model")
    assert loaded.circuit == model.circuit
    assert sih.verify(loaded).ok


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "paper"}, "kind='standard' is for target='bayes'"),
        ({"target": "bayes", "heads": 1}, r"lags \(1, 2, 3\) take heads=3; got heads=1"),
        ({"target": "bayes", "symmetric": False}, "needs symmetric=True, reading='query'"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sih.construct(task_of((1, 2, 3), 24), kind="standard", **options)  # type: ignore[call-overload]


def test_kinds_are_named() -> None:
    with pytest.raises(ValueError, match="kind"):
        sih.construct(task_of((1, 2), 24), kind="wide")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("lags", "length"), [((1, 2), 3), ((1, 2), 4), ((1, 2), 5), ((2, 5), 6)], ids=str
)
def test_the_shortest_sequences(lags: tuple[int, ...], length: int) -> None:
    """A head that sees one transition, or none at all; and evidence so small that the mask's rounding shows."""
    task = task_of(lags, length)
    model = sih.construct(task, target="bayes", kind="standard", heads=2)
    assert sih.verify(model, task).ok
    tokens = torch.cartesian_prod(*[torch.arange(3)] * length)
    assert (model.predict(tokens) - sih.bma(tokens, task))[:, lags[-1] - 1 :].abs().max() < 1e-7


def test_no_token_makes_up_for_the_first_mask() -> None:
    task = sih.Task([[1 - 1e-30, 1e-30], [0.5, 0.5]], (1, 2), 16)
    circuit = NarrowBayesCircuit.resolve(task, BayesOptions(temper=1.0), torch.float64)
    assert first_depth(task, circuit) >= 64 + 30 * math.log(10)


@pytest.mark.parametrize(("heads", "differ"), [(3, 1.0), (2, 2 * 3 / 8 + 1 / 4 * 2 * 96)])
def test_no_evidence_makes_up_for_the_third_mask(heads: int, differ: float) -> None:
    """As its docstring has it, for 17 transitions; with 2 heads c = 1/4, r = 3/8, span = 2 and Q = 32 * 3."""
    task = sih.Task([[0.8, 0.2], [0.3, 0.7]], (1, 2, 3), 20, [0.2, 0.3, 0.5])
    circuit = NarrowBayesCircuit.resolve(task, BayesOptions(heads=heads), torch.float64)
    spread = math.log(0.7 / 0.2)
    evidence = 17 * 3 / 2 * spread * math.exp(circuit.temper * spread)
    wanted = 64 - math.log(0.2) + evidence * differ
    assert third_depth(task, circuit, torch.float64) == pytest.approx(wanted, rel=1e-12)
