"""A construction against itself, and against models that differ from it in one known way."""

from __future__ import annotations

import pytest
import torch

import sih
from sih import DisentangledTransformer
from sih.attention.distances import Agreement, compare, measured
from sih.attention.reference_circuit import Reference, run_reference


def agreement(model: sih.Transformer | DisentangledTransformer, built: Reference) -> Agreement:
    with torch.no_grad():
        trace = model.trace(built.batch.tokens)
    return compare(trace.attention, trace.scores, built)


@pytest.fixture
def built(task: sih.Task, rng: torch.Generator) -> Reference:
    return run_reference(task, sih.sample(task, 24, rng=rng))


@pytest.fixture
def model(task: sih.Task) -> DisentangledTransformer:
    return sih.construct(task)


def test_the_construction_agrees_with_itself(
    built: Reference, model: DisentangledTransformer
) -> None:
    found = agreement(model, built)
    assert found.variation == {layer: pytest.approx((0, 0), abs=1e-4) for layer in ("1", "2", "3")}
    assert found.correlation["lags"] == pytest.approx((1, 0), abs=1e-6)
    assert found.correlation["tokens"] == pytest.approx((1, 0), abs=1e-6)
    assert 0 < found.correlation["causal"][0] < 0.5  # the mask is most of a score
    assert found.second["positions"] == pytest.approx((1, 0), abs=1e-6)
    assert (
        0.99 < found.second["offset"][0] < 1
    )  # not 1: a row's share of allowed keys, and so its mean, depends on i
    assert found.parents == pytest.approx((1, 0), abs=1e-6)
    assert found.shares["candidates"] == pytest.approx((1, 0), abs=1e-6)
    assert found.shares["selected"] == pytest.approx(found.shares["constructed"], abs=1e-4)


def test_shares_are_the_selective_weights_and_the_posterior(
    built: Reference, model: DisentangledTransformer
) -> None:
    """From the closed form of the circuit, a sequence at a time; the last position is not counted."""
    task, batch = built.task, built.batch
    found = agreement(model, built)
    weights = sih.circuit_weights(batch.tokens, task, model.circuit)
    posterior = sih.lag_posterior(batch.tokens, task)
    first = model.circuit.first_exact_position
    for name, law in (("selected", weights), ("posterior", posterior)):
        own = [
            [
                law[n, i, task.lags.index(int(batch.lags[n]))].item()
                for i in range(first, task.length - 1)
            ]
            for n in range(24)
        ]
        means = torch.tensor([sum(row) / len(row) for row in own], dtype=torch.float64)
        assert found.shares[name][0] == pytest.approx(means.mean().item(), abs=1e-4)
        assert found.shares[name][1] == pytest.approx(means.std().item() / 24**0.5, abs=1e-4)
        along = torch.tensor(own, dtype=torch.float64).mean(dim=0)
        shown = found.by_position[name][first - (task.max_lag - 1) :]
        assert shown == pytest.approx(along.tolist(), abs=1e-4)
    for k in task.lags:
        own_lag = weights[batch.lags == k, first:-1, task.lags.index(k)].mean().item()
        assert found.selected_by_lag[str(k)][0] == pytest.approx(own_lag, abs=1e-4)


def test_heads_in_another_order_make_no_difference(
    built: Reference, model: DisentangledTransformer
) -> None:
    before = agreement(model, built).variation["2"]
    model.A[1].data = model.A[1].data[[2, 0, 1]]
    assert agreement(model, built).variation["2"] == pytest.approx(before, abs=1e-6)


def test_a_first_layer_that_looks_away_is_anticorrelated(
    built: Reference, model: DisentangledTransformer
) -> None:
    model.block("1.1", "token", "token").neg_()
    found = agreement(model, built)
    assert found.correlation["lags"][0] == pytest.approx(-1, abs=1e-6)
    assert found.correlation["tokens"][0] == pytest.approx(-1, abs=1e-6)
    assert found.variation["1"][0] > 0.1
    assert found.parents == pytest.approx((1, 0), abs=1e-6)


def test_a_model_of_zeros_is_as_far_as_uniform_attention(task: sih.Task, built: Reference) -> None:
    flat = DisentangledTransformer(task.num_states, task.length, (1, 3, 1), init="zeros")
    found = agreement(flat, built)
    for layer in ("1", "2", "3"):
        assert found.variation[layer] == pytest.approx(found.uniform[layer], abs=1e-6)
    # A row of layer 2 has a third of the tokens after max_lag, all alike: the rest is what uniform attention misses.
    rows = range(built.rows.start, task.length - 1)
    counts = [[len(range(i - h, task.max_lag - 1, -3)) for i in rows] for h in range(3)]
    missed = [1 - count / (i + 1) for row in counts for count, i in zip(row, rows, strict=True)]
    assert found.uniform["2"][0] == pytest.approx(sum(missed) / len(missed), abs=1e-6)


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (1, 3, 1, 1)])
def test_other_depths_are_compared_by_first_and_last_layer(
    task: sih.Task, built: Reference, heads: tuple[int, ...]
) -> None:
    model = sih.Transformer(task.num_states, task.length, dim=16, qk_dim=8, heads=heads)
    found = agreement(model, built)
    assert sorted(found.variation) == ["1", "3"]
    assert found.second == {}
    assert found.heads == heads
    assert 0 < found.shares["selected"][0] < found.shares["candidates"][0] < 1
    with pytest.raises(ValueError, match="at least 2 layers"):
        agreement(
            sih.Transformer(task.num_states, task.length, dim=16, qk_dim=8, heads=(1,)), built
        )


def test_the_last_position_is_not_counted(task: sih.Task, built: Reference) -> None:
    """What a model does where it was never trained must not matter."""
    model = sih.Transformer(task.num_states, task.length, dim=16, qk_dim=8, heads=(1, 3, 1))
    before = agreement(model, built)
    with torch.no_grad():
        model.position[-1] += 100
    after = agreement(model, built)
    assert after.variation == before.variation
    assert after.correlation == before.correlation
    for what, shares in after.by_position.items():
        assert torch.equal(shares, before.by_position[what])


def test_standard_errors() -> None:
    mean, error = measured(torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64))
    assert mean == 3
    assert error == pytest.approx((14 / 3) ** 0.5 / 2)
