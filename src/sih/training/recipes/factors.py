r"""Training of a disentangled transformer by factors: A = Q K^T, instead of A itself.

    A^(l,h) = Q^(l,h) K^(l,h)^T     Q and K are d_l x d_QK

Here d_l is the width of the stream that layer l reads, and d_QK is the model's
`qk_dim`, by default 32. Q and K start as normal numbers of standard deviation
1/sqrt(d_l). Entries of A then have standard deviation sqrt(d_QK) / d_l. This is 0.082
in layer 1 and 0.020 in layer 3 of a model with 5 states, length 64, heads [1,1,1] and
d_QK = 32. W_O starts uniform, up to one over the root of its columns, as in the recipe
`uniform`.

With dA the gradient of the loss in A, the gradients are dQ = dA K and dK = dA^T Q.
Model and loss are unchanged. A step takes as long as one that updates A. A trained
model stores A alone. A checkpoint also stores Q and K.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

from sih.models import ModelShape
from sih.models.disentangled.dense import DisentangledShape, DisentangledTransformer
from sih.models.initial_weights import draw_normal, draw_uniform
from sih.task import CausalTask
from sih.training.recipes.recipe import Parametrisation, Recipe


@dataclass(frozen=True)
class Factors(Recipe):
    """The recipe that trains factors Q and K of each A = Q K^T, of width `qk_dim`."""

    name = "factors"
    kinds = ("disentangled",)

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> "FactorParametrisation":
        model = shape.build(task.num_states, task.length, init="zeros").to(device)
        assert isinstance(model, DisentangledTransformer)
        assert isinstance(shape, DisentangledShape)
        start = FactorParametrisation(model, shape.qk_dim)
        start.draw(rng)
        return start


class FactorParametrisation(Parametrisation):
    """A model, with the factors that its matrices A are made from.

    The factors of layer 2 are `moves["2/Q"]`, (head, coordinate, width).
    `moves["readout"]` is the model's own W_O.
    """

    model: DisentangledTransformer

    def __init__(self, model: DisentangledTransformer, width: int) -> None:
        moves = {"readout": model.readout}
        for layer, A in enumerate(model.A, 1):
            heads, dim, _ = A.shape
            moves[f"{layer}/Q"] = nn.Parameter(A.new_zeros(heads, dim, width))
            moves[f"{layer}/K"] = nn.Parameter(A.new_zeros(heads, dim, width))
        super().__init__(model, moves)

    def draw(self, rng: torch.Generator) -> None:
        """Draw Q, K and W_O, and write A."""
        for name, weight in self.parameters.items():
            if name == "readout":
                draw_uniform(weight, 1 / math.sqrt(weight.shape[-1]), rng)
            else:
                draw_normal(weight, 1 / math.sqrt(weight.shape[-2]), rng)
        self.update_weights()

    @torch.no_grad()
    def collect_gradients(self, step: int) -> None:
        for layer, A in enumerate(self.model.A, 1):
            Q, K = self.parameters[f"{layer}/Q"], self.parameters[f"{layer}/K"]
            assert A.grad is not None
            Q.grad = A.grad @ K
            K.grad = A.grad.mT @ Q

    @torch.no_grad()
    def update_weights(self) -> None:
        """Write the model's matrices: A from Q and K."""
        for layer, A in enumerate(self.model.A, 1):
            A.copy_(self.parameters[f"{layer}/Q"] @ self.parameters[f"{layer}/K"].mT)
