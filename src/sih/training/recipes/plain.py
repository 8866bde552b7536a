"""Training as in the paper: random weights, all trained from the first step.

Embeddings are standard normal, and other weights uniform up to one over the root of
their inputs. Or all weights are normal, with variance one over their inputs.
"""

from dataclasses import dataclass

import torch

from sih.models import ModelShape
from sih.task import CausalTask
from sih.training.recipes.recipe import Parametrisation, Recipe


@dataclass(frozen=True)
class Plain(Recipe):
    """The recipe with uniform weights."""

    name = "uniform"

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        return Parametrisation(
            shape.build(task.num_states, task.length, init=self.name, rng=rng).to(device)
        )


@dataclass(frozen=True)
class Normal(Plain):
    """The recipe with normal weights."""

    name = "normal"
    kinds = ("standard", "relative")
