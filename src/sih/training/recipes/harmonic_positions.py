"""Training of a standard transformer with separate positions, output and tokens.

The coordinates of the residual stream start in three parts, `parts(dim, N)`, like the
blocks of the disentangled transformer:

    positions   F_i = sqrt(2) cos(2 pi m/n i), sqrt(2) sin(2 pi m/n i) for the fractions m/n <= 1/2 with n <= N
    output      a quarter of them; all that W_O reads
    tokens      E_s ~ N(0, 1) on the others
    layer 1     Q, K read tokens and V reads positions
    between     Q, K, V read positions, if the recipe has `parts_steps`
    the rest    uniform, as otherwise

All other weights start at zero, and may be learned. The residue of a distance i - j
modulo any n <= N is a bilinear form of F_i and F_j. A tiling of the past consists of
such residues. The first layer starts as the one kind of head that can learn to weigh
the lags by P: it compares tokens and reports their positions. Without this start it
becomes a copy of the previous token instead. Tokens that the last layer does not copy
do not reach the output, and neither does the current token. So the last layer has to
select.

The layers between have two options. They are frozen while the first and the last layer
find their roles (`frozen_steps`). Or they read the positions that the first layer
reports, and no tokens (`parts_steps`). Then no layer can copy a token for the last
layer to compare. That shortcut works at once, if poorly, and prevents the first layer
from being found.

While sequences are shorter than the model's length, positions keep their initial
values. So positions not seen yet fit the weights learned on the others.
"""

import dataclasses
import math
from dataclasses import dataclass
from types import EllipsisType
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError, check_steps
from sih.base.record import Count
from sih.models import ModelShape
from sih.models.standard.transformer import Transformer, TransformerShape
from sih.task import CausalTask
from sih.training.recipes.recipe import Fields, Parametrisation, Recipe, StagedRecipe
from sih.training.task_config import TaskPart

Place = tuple[EllipsisType | slice, ...]
"""Entries of a weight, as an index."""


@dataclass(frozen=True)
class HarmonicPositions(StagedRecipe):
    """The recipe with harmonic positions and restricted roles at first."""

    name = "harmonic"
    kinds = ("standard",)
    settings: ClassVar[Fields] = {**StagedRecipe.settings, "steps": 3600, "learning_rate": 5e-3}
    with_soap: ClassVar[Fields] = {
        **StagedRecipe.with_soap,
        "steps": 2000,
        "batch": 128,
        "learning_rate": 1e-2,
        "frozen_steps": 0,
        "parts_steps": None,
    }
    most_frozen = 400

    parts_steps: Count | None = 0
    """Steps during which every layer but the last is restricted to its role, none
    frozen. None: three in ten."""

    def resolve(self, shape: ModelShape, task: TaskPart, steps: int) -> Recipe:
        fitted = super().resolve(shape, task, steps)
        assert isinstance(shape, TransformerShape)
        assert isinstance(fitted, HarmonicPositions)
        parts(shape.dim, self.max_period)
        kept = 3 * steps // 10 if self.parts_steps is None else self.parts_steps
        check_steps("parts_steps", kept, steps)
        return dataclasses.replace(fitted, parts_steps=kept)

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        model = shape.build(task.num_states, task.length, init="uniform", rng=rng)
        assert isinstance(model, Transformer)
        set_parts(model, self)
        return HarmonicParametrisation(model.to(device), self)


class HarmonicParametrisation(Parametrisation):
    """A standard model with weights that are frozen or restricted at first.

    Tokens, readout and layers are restricted to their initial roles. During
    `frozen_steps` the layers between the first and the last are frozen. Their moments
    are 0, too, so that Adam does not change them.
    """

    model: Transformer

    def __init__(self, model: Transformer, recipe: HarmonicPositions) -> None:
        super().__init__(model)
        self.recipe = recipe

    def collect_gradients(self, step: int) -> None:
        recipe, length = self.recipe, self.model.config.length
        if recipe.length_at(step, length) < length:
            self.model.position.grad = None
        frozen, kept = recipe.frozen_steps or 0, recipe.parts_steps or 0
        if step < max(frozen, kept):
            for weight, zero in left_out(self.model, recipe):
                assert weight.grad is not None
                weight.grad[zero] = 0
        if step < frozen:
            for layer in self.model.each_layer()[1:-1]:
                layer.zero_grad()


def harmonics(length: int, max_period: int) -> Float[Tensor, "time harmonic"]:
    """Return the positions' coordinates, with mean square 1 (n = 2 has the cosine
    alone, which is +-1).
    """
    times = torch.arange(length, dtype=torch.float64)
    columns = []
    for n in range(2, max_period + 1):
        for m in (m for m in range(1, n // 2 + 1) if math.gcd(m, n) == 1):
            angle = 2 * math.pi * m / n * times
            columns += (
                [angle.cos()]
                if n == 2
                else [math.sqrt(2) * angle.cos(), math.sqrt(2) * angle.sin()]
            )
    return torch.stack(columns, dim=1) if columns else torch.zeros(length, 0, dtype=torch.float64)


def parts(dim: int, max_period: int) -> tuple[slice, slice, slice]:
    """Return the coordinates of positions, of the output and of tokens."""
    count, output = harmonics(1, max_period).shape[1], dim // 4
    if not 0 < count < dim - output:
        wanted = "max_period is at least 2 and leaves coordinates to the tokens"
        raise FieldError("max_period", f"{wanted}; {max_period} takes {count} of dim={dim}")
    return slice(count), slice(count, count + output), slice(count + output, dim)


@torch.no_grad()
def set_parts(model: Transformer, recipe: HarmonicPositions) -> None:
    """Change freshly drawn weights to those above.

    Rows of F and E have length sqrt(d), as if they were normal.
    """
    dim, max_period = model.config.dim, recipe.max_period
    positions, output, tokens = parts(dim, max_period)
    F = harmonics(model.config.length, max_period)
    model.position.zero_()
    model.position[:, positions] = math.sqrt(dim / F.shape[1]) * F.to(model.position.dtype)
    model.token.mul_(math.sqrt(dim / (dim - tokens.start)))
    model.readout.mul_(math.sqrt(dim / (output.stop - output.start)))
    for weight, zero in left_out(model, recipe):
        weight[zero] = 0


def left_out(model: Transformer, recipe: HarmonicPositions) -> list[tuple[Tensor, Place]]:
    """Return the weights with a restricted role, and their entries that start at 0."""
    positions, output, tokens = parts(model.config.dim, recipe.max_period)
    every = slice(None)
    on_positions: Place = (..., positions, every)
    elsewhere: Place = (..., slice(positions.stop, None), every)
    layers = model.each_layer()
    first, between = layers[0], layers[1:-1] if recipe.parts_steps else []
    of_first = [(first.Q, on_positions), (first.K, on_positions), (first.V, elsewhere)]
    of_between = [
        (weight, elsewhere) for layer in between for weight in (layer.Q, layer.K, layer.V)
    ]
    return [
        *of_first,
        *of_between,
        (model.token, (..., slice(tokens.start))),
        (model.readout, (..., slice(output.start))),
        (model.readout, (..., slice(output.stop, None))),
    ]
