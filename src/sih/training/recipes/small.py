"""Training of a disentangled transformer from very small normal weights.

Their standard deviation is 1e-4. At first every score is close to 0, so that each head
attends to its past uniformly. All weights are trained from the first step.
"""

from dataclasses import dataclass

import torch

from sih.models import ModelShape
from sih.models.initial_weights import draw_normal
from sih.task import CausalTask
from sih.training.recipes.recipe import Parametrisation, Recipe

STANDARD_DEVIATION = 1e-4


@dataclass(frozen=True)
class Small(Recipe):
    """The recipe with a standard deviation of 1e-4 for every weight."""

    name = "small"
    kinds = ("disentangled",)

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        model = shape.build(task.num_states, task.length, init="zeros")
        for weight in model.parameters():
            draw_normal(weight, STANDARD_DEVIATION, rng)
        return Parametrisation(model.to(device))
