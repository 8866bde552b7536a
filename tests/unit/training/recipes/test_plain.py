from __future__ import annotations

import pytest
import torch

import sih
from sih.training.recipes.plain import Normal, Plain


@pytest.mark.parametrize("recipe", [Plain(), Normal()])
def test_all_weights_move_from_the_first_step_as_they_were_drawn(
    recipe: Plain, task: sih.Task
) -> None:
    config = sih.TrainConfig(lags=(1, 2, 3), heads=(1, 2, 1), dim=16, qk_dim=4)
    starts = [
        recipe.start(config.model, task, torch.Generator().manual_seed(seed), torch.device("cpu"))
        for seed in (3, 3, 4)
    ]
    model = starts[0].model
    assert list(starts[0].parameters.values()) == list(model.parameters())
    assert (model.config.num_states, model.config.length) == (task.num_states, task.length)
    first, same, other = (
        [p.detach().clone() for p in start.model.parameters()] for start in starts
    )
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    for start in starts:
        start.collect_gradients(0)
        start.update_weights()
    assert all(torch.equal(a, b) for a, b in zip(first, starts[0].model.parameters(), strict=True))


def test_the_two_draw_from_different_laws(task: sih.Task) -> None:
    """Uniform weights stay within one over the root of their inputs, normal ones do not."""
    config = sih.TrainConfig(lags=(1, 2, 3), heads=(4, 4, 4), dim=64, qk_dim=16)
    largest = []
    for recipe in (Plain(), Normal()):
        model = recipe.start(
            config.model, task, torch.Generator().manual_seed(0), torch.device("cpu")
        ).model
        assert isinstance(model, sih.Transformer)
        largest.append(
            max(
                weight.abs().max().item()
                for name, weight in model.named_parameters()
                if name[-1] == "V"
            )
        )
    assert largest[0] <= 64**-0.5 < largest[1]
