"""Circuits whose channel is known, and counterfactual sequences."""

import pytest
import torch

import sih
from sih.beyond.evidence_paths.channel_shares import other_lags, picked, read_channels
from sih.task import Task


def test_circuits_lose_by_the_channel_that_was_written_alone(task: Task) -> None:
    batch, reference = sih.sample(task, 40, rng=1), sih.sample(task, 64, rng=2)
    for options, live, idle in (
        ({}, "values", "attention"),
        ({"target": "looking"}, "attention", "values"),
    ):
        circuit = sih.construct(task, **options)  # type: ignore[call-overload]
        found = read_channels(circuit, task, batch, reference, torch.Generator().manual_seed(3))
        assert found.added[idle][0] == pytest.approx(0, abs=1e-6)
        assert found.added[live][0] > 0.05
        assert found.kl["both"][0] == pytest.approx(found.kl[live][0], abs=1e-6)
        own, donors = found.picks[live]
        assert donors > 0.8 > 0.3 > own
        assert found.picks[idle][0] > 0.8
        channel = "looked" if live == "attention" else "carried"
        assert found.shares[channel][0] > 0.9
        assert sum(head[channel] for head in found.by_head.values()) == pytest.approx(
            found.shares[channel][0]
        )
        assert found.kl["intact"][0] == pytest.approx(
            sih.mean_kl(sih.kl_to_truth(circuit.predict(batch.tokens), batch, task), task)
            .mean()
            .item()
        )


def test_layer_1_at_the_keys_matters_to_the_looking_circuit_alone(task: Task) -> None:
    batch = sih.sample(task, 30, rng=1)
    for options, needed in (({}, False), ({"target": "looking"}, True)):
        circuit = sih.construct(task, **options)  # type: ignore[call-overload]
        found = read_channels(circuit, task, batch, batch, torch.Generator().manual_seed(3))
        assert (found.added["layer 1 at keys"][0] > 0.05) == needed


def test_a_counterfactual_has_another_lag(task: Task) -> None:
    batch = sih.sample(task, 200, rng=1)
    others = other_lags(batch, task, torch.Generator().manual_seed(0))
    assert others.tokens.shape == batch.tokens.shape
    assert not (others.lags == batch.lags).any()
    assert {int(lag) for lag in others.lags[batch.lags == 2]} == {1, 3}
    pick = picked(sih.construct(task, target="bayes").trace(others.tokens), task)
    assert (pick == others.lags[:, None]).double().mean() > 0.9  # they are of the lag they say


def test_a_model_of_two_layers_has_no_channel(task: Task) -> None:
    batch, model = sih.sample(task, 4, rng=1), sih.Transformer(5, 32, heads=(1, 2))
    with pytest.raises(ValueError, match=r"between the first and the last; got heads \(1, 2\)"):
        read_channels(model, task, batch, batch, torch.Generator())


def test_the_variation_of_a_head_is_that_of_its_attention_from_its_mean(task: Task) -> None:
    """In loops, over the queries past max_lag that have a next token: how far data move where a head looks."""
    batch, reference = sih.sample(task, 6, rng=1), sih.sample(task, 8, rng=2)
    model = sih.Transformer(5, 32, heads=(1, 2, 1), rng=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    found = read_channels(model, task, batch, reference, torch.Generator().manual_seed(3))
    for head in ("2.1", "2.2"):
        attention, others = (
            model.trace(one.tokens)[f"{head}/attention"].tolist() for one in (batch, reference)
        )
        far = [
            sum(abs(row[i][j] - sum(other[i][j] for other in others) / 8) for j in range(32)) / 2
            for row in attention
            for i in range(3, 31)
        ]
        assert found.by_head[head]["variation"] == pytest.approx(sum(far) / len(far))
        assert found.by_head[head]["variation"] > 0.01
