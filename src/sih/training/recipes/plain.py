"""Training as in the paper: weights drawn at random, all of them moved from the first step.

Embeddings are standard normal, other weights uniform up to one over the root of their inputs; or all normal, with
variance one over their inputs.
"""

from dataclasses import dataclass

import torch

from sih.models import ModelShape
from sih.task import CausalTask
from sih.training.recipes.recipe import Parametrisation, Recipe


@dataclass(frozen=True)
class Plain(Recipe):
    """Draws weights uniformly."""

    name = "uniform"

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        return Parametrisation(
            shape.build(task.num_states, task.length, init=self.name, rng=rng).to(device)
        )


@dataclass(frozen=True)
class Normal(Plain):
    """Draws weights from normal distributions."""

    name = "normal"
    kinds = ("standard", "relative")
