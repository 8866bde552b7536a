r"""Training of a disentangled transformer with weights tied across positions.

Positions are one-hot, so each A[i, j] is a weight of its own: training one changes
nothing in A[i+1, j+1]. Here a block of weights is a sum of tables C, looked up by
common properties of positions. Below, i and j are positions, s a token and N the
largest period. It holds in every block of every A^(l,h), and of W_O likewise:

    A[i, j] = f(min(max(i - j, -N), N)) + sum_{n=2}^N g_n((i - j) mod n)      near distances, and residues of all
    A[i, s] = sum_{n=1}^N g_n(i mod n, s)                                     A[s, j] likewise
    A[s, t] = g(s, t)

A table of residues modulo n spans the harmonics of period n with which the standard
model's positions start (`sih.training.recipes.harmonic_positions`). So a tiling of the
past can be expressed, whatever its length, and weights learned on short sequences also
serve long ones. A is linear in C. The gradient in C is the transpose of that map
applied to the gradient in A, and training changes C. Model and loss are unchanged, and
only A remains in the end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.models import ModelShape
from sih.models.disentangled.dense import DisentangledTransformer
from sih.task import CausalTask
from sih.training.recipes.recipe import Fields, Parametrisation, StagedRecipe

SCALE = 0.05
"""Standard deviation of the tables' initial entries."""


@dataclass(frozen=True)
class TiedTables(StagedRecipe):
    """The recipe that trains tables shared by positions, some of them at first."""

    name = "harmonic"
    kinds = ("disentangled",)
    settings: ClassVar[Fields] = {
        **StagedRecipe.settings,
        "steps": 3000,
        "learning_rate": 5e-2,
        "stored": "float16",
    }
    with_soap: ClassVar[Fields] = {**StagedRecipe.with_soap, "steps": 1600}
    stages = ((2, 5, 32), (11, 15, 64))
    most_frozen = 200

    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> "TiedParametrisation":
        model = shape.build(task.num_states, task.length).to(device)
        assert isinstance(model, DisentangledTransformer)
        start = TiedParametrisation(model, self.max_period, self.frozen_steps or 0)
        start.draw(rng)
        return start


class TiedParametrisation(Parametrisation):
    """A model with the tables that its weights are made from.

    `moves["3/position/token"]` has those of the blocks of layer 3 between the query's
    positions and the key's tokens, (head, path, entry, path, state).
    `"3/position/position"` is (head, path, path, entry), and `"readout/position"` is
    (state, path, entry). Paths are those of `sih.models.disentangled.blocks`.
    """

    model: DisentangledTransformer

    def __init__(
        self, model: DisentangledTransformer, max_period: int, frozen_steps: int = 0
    ) -> None:
        self.frozen_steps, length = frozen_steps, model.config.length
        self.sizes, self.last = (model.config.num_states, length), len(model.config.heads)
        times, distances = torch.arange(length), torch.arange(1 - length, length)
        self.by_position = residues(times, range(1, max_period + 1)).to(model.readout)
        near = nn.functional.one_hot(
            distances.clamp(-max_period, max_period) + max_period, 2 * max_period + 1
        )
        self.by_distance = torch.cat(
            [near, residues(distances, range(2, max_period + 1))], dim=1
        ).to(model.readout)
        zeros = self._collected(map(torch.zeros_like, model.A), torch.zeros_like(model.readout))
        super().__init__(model, {name: nn.Parameter(table) for name, table in zeros.items()})

    @torch.no_grad()
    def draw(self, rng: torch.Generator) -> None:
        """Draw small random tables where `moves_at_first`, and in the layers between,
        with 0 elsewhere.
        """
        for name, table in self.parameters.items():
            noise = (
                torch.empty(table.shape, dtype=table.dtype).normal_(generator=rng).to(table.device)
            )
            table.copy_(SCALE * noise * (1 if self.between(name) else self.moves_at_first(name)))
        self.update_weights()

    def between(self, name: str) -> bool:
        """Return whether a table belongs to a layer between the first and the last."""
        layer = name.partition("/")[0]
        return layer != "readout" and 1 < int(layer) < self.last

    def moves_at_first(self, name: str) -> Float[Tensor, "..."]:
        """Return the mask of a table's entries that are trained at first.

        Layer 1 compares tokens and reports their positions, not the tokens: no table
        reads a token through layer 1. The readout reads the last layer's copies. The
        layers between are frozen.
        """
        table = self.parameters[name]
        result = torch.zeros_like(table)
        layer, *kinds = name.split("/")
        if layer == "readout":
            paths = self.model.stream(self.last).routes
            wanted = [
                path.startswith(f"{self.last}.") and _readable(path, kinds[0]) for path in paths
            ]
            result[:, torch.tensor(wanted)] = 1
        elif layer == "1":
            result += kinds == ["token", "token"]
        elif not self.between(name):
            paths = self.model.stream(int(layer) - 1).routes
            query, key = (
                torch.tensor([_readable(path, kind) for path in paths], dtype=table.dtype)
                for kind in kinds
            )
            pairs = (query[:, None] * key).to(table.device)
            result += (
                pairs[..., None] if kinds == ["position", "position"] else pairs[:, None, :, None]
            )
        return result

    def collect_gradients(self, step: int) -> None:
        self.table_gradients()
        if step < self.frozen_steps:
            self.freeze_gradients()

    def freeze_gradients(self) -> None:
        """Set the gradient of frozen entries to zero."""
        for name, table in self.parameters.items():
            assert table.grad is not None
            table.grad *= self.moves_at_first(name)

    @torch.no_grad()
    def update_weights(self) -> None:
        """Write the model's weights: A and W_O from C."""
        for layer, A in enumerate(self.model.A, 1):
            tt, tp, pt, pp = self._blocks(A)
            tt.copy_(self.parameters[f"{layer}/token/token"])
            tp.copy_(self.parameters[f"{layer}/token/position"] @ self.by_position.T)
            pt.copy_(
                torch.einsum(
                    "hpcqs,ic->hpiqs", self.parameters[f"{layer}/position/token"], self.by_position
                )
            )
            by_distance = self.parameters[f"{layer}/position/position"] @ self.by_distance.T
            pp.copy_(toeplitz(by_distance).transpose(2, 3))
        token, position = self._readout_blocks(self.model.readout)
        token.copy_(self.parameters["readout/token"])
        position.copy_(self.parameters["readout/position"] @ self.by_position.T)

    @torch.no_grad()
    def table_gradients(self) -> None:
        """Compute the gradient of the tables from that of the model's weights."""
        weights = (self.model.readout, *self.model.A)
        readout, *A = (weight.grad for weight in weights if weight.grad is not None)
        for name, grad in self._collected(A, readout).items():
            self.parameters[name].grad = grad

    def _collected(
        self, A: Iterable[Float[Tensor, "_ _ _"]], readout: Float[Tensor, "state dim"]
    ) -> dict[str, Tensor]:
        """Return the transpose of `write` applied to A and W_O, or to their
        gradients.
        """
        found = {}
        for layer, weights in enumerate(A, 1):
            tt, tp, pt, pp = self._blocks(weights)
            found[f"{layer}/token/token"] = tt.clone()
            found[f"{layer}/token/position"] = tp @ self.by_position
            found[f"{layer}/position/token"] = torch.einsum("hpiqs,ic->hpcqs", pt, self.by_position)
            found[f"{layer}/position/position"] = (
                diagonal_sums(pp.transpose(2, 3)) @ self.by_distance
            )
        token, position = self._readout_blocks(readout)
        return {
            **found,
            "readout/token": token.clone(),
            "readout/position": position @ self.by_position,
        }

    def _blocks(
        self, A: Float[Tensor, "head dim dim"]
    ) -> list[Float[Tensor, "head path _ path _"]]:
        """Return A split by kind of query and key coordinate: token/token,
        token/position, ...
        """
        width = sum(self.sizes)
        split = A.detach().view(A.shape[0], A.shape[1] // width, width, -1, width)
        return [block for rows in split.split(self.sizes, 2) for block in rows.split(self.sizes, 4)]

    def _readout_blocks(self, readout: Float[Tensor, "state dim"]) -> tuple[Tensor, ...]:
        token, position = (
            readout.detach().view(readout.shape[0], -1, sum(self.sizes)).split(self.sizes, 2)
        )
        return token, position


def residues(numbers: Int[Tensor, " number"], periods: range) -> Float[Tensor, "number entry"]:
    """Return the one-hot residue of each number, for each period."""
    columns = [numbers % n == r for n in periods for r in range(n)]
    return (
        torch.stack(columns, dim=1).to(torch.float64)
        if columns
        else torch.zeros(len(numbers), 0).double()
    )


def toeplitz(values: Float[Tensor, "*blocks distance"]) -> Float[Tensor, "*blocks time time"]:
    """Return matrices with the value of distance i - j at i, j.

    The values are those of distances 1 - T .. T - 1.
    """
    time = (values.shape[-1] + 1) // 2
    return (
        values.flip(-1).unfold(-1, time, 1).flip(-2)
    )  # row i is the window of the flipped values at T - 1 - i


def diagonal_sums(
    matrices: Float[Tensor, "*blocks time time"],
) -> Float[Tensor, "*blocks distance"]:
    """Return a matrix's sums over i - j = 1 - T .. T - 1, the transpose of
    `toeplitz`.
    """
    time = matrices.shape[-1]
    # Rows are reversed, with T zeros after each. Read in rows of 2T - 1, each starts one further right.
    padded = nn.functional.pad(matrices.flip(-1), (0, time)).flatten(-2)
    sums: Tensor = padded[..., : time * (2 * time - 1)].unflatten(-1, (time, 2 * time - 1)).sum(-2)
    return sums


def _readable(path: str, kind: str) -> bool:
    """Return whether a block may be read at first: no token through layer 1."""
    return kind == "position" or not any(step.startswith("1.") for step in path.split("/"))
