"""A layer written anew from the account: of the looking circuit, of which the account is true, nothing is lost."""

import pytest
import torch

import sih
from sih.analysis.layer_swaps import swap_costs, swapped_layers
from sih.task import Task


def test_what_the_account_is_true_of_survives_it(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 40)
    model = sih.construct(task, target="looking", temper=0.5, looking=0.5)
    batch, reference = sih.sample(task, 30, rng=1), sih.sample(task, 60, rng=2)
    found = swap_costs(model, task, batch, reference)
    intact = sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean().item()
    for what in ("layer 1", "layer 2", "layer 2 by residues"):
        assert found[what][0] == pytest.approx(intact, rel=1e-6)
    assert found["layer 3"][0] < 1.2 * intact + 0.005  # it leaves the newest transition out


def test_what_it_is_not_true_of_is_lost(task: Task) -> None:
    """The paper's circuit carries: its second layer looks by positions alone, and a filter of phases reads nothing."""
    model = sih.construct(task)
    before = [weight.clone() for weight in model.parameters()]
    batch, reference = sih.sample(task, 20, rng=1), sih.sample(task, 40, rng=2)
    costs = swap_costs(model, task, batch, reference)
    intact = sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean().item()
    assert costs["layer 2"][0] == pytest.approx(intact)
    assert costs["layer 3"][0] > intact + 0.05
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    with pytest.raises(ValueError, match=r"heads \(1, H, 1\); got \(1, 1\)"):
        swapped_layers(sih.DisentangledTransformer(5, 32, (1, 1)), task, batch.tokens)
