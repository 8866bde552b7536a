r"""Training from small weights as in GPT-2: normal, with one standard deviation.

    every weight            standard deviation 0.02
    V, and W_2 of MLPs      0.02 / sqrt(2 L) in a model of L layers

V and W_2 produce a layer's addition to the residual stream. Radford et al. (2019, Sec.
2.3) scale them likewise. All weights are trained from the first step.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from sih.models import ModelShape
from sih.models.initial_weights import draw_normal
from sih.models.standard.transformer import Transformer
from sih.task import CausalTask
from sih.training.recipes.recipe import Parametrisation, Recipe

STANDARD_DEVIATION = 0.02
EMBEDDINGS = ("token", "position")


@dataclass(frozen=True)
class Gpt2(Recipe):
    """The recipe with a standard deviation of 0.02, and less in weights that write to
    the stream.
    """

    name = "gpt2"
    kinds = ("standard",)
    embedding_deviation: ClassVar[float] = STANDARD_DEVIATION
    """The standard deviation of the embeddings of tokens and positions."""

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        model = shape.build(task.num_states, task.length, init="zeros")
        assert isinstance(model, Transformer)
        for name, weight in model.named_parameters():
            draw_normal(weight, self.deviation(name, len(model.config.heads)), rng)
        return Parametrisation(model.to(device))

    def deviation(self, name: str, layers: int) -> float:
        """Return the initial standard deviation of the weight of this name."""
        if name in EMBEDDINGS:
            return self.embedding_deviation
        if name.endswith((".V", ".W2")):
            return STANDARD_DEVIATION / math.sqrt(2 * layers)
        return STANDARD_DEVIATION
