r"""The disentangled transformer's weights in coordinates that positions share.

Positions are one-hot, so that each A[i, j] is a weight of its own: what is learned of one says nothing of A[i+1, j+1].
Here a block of weights is a sum of tables C, looked up by what places have in common (i, j positions, s a token, N the
largest period; in every block of every A^(l,h), and of W_O likewise):

    A[i, j] = f(min(max(i - j, -N), N)) + sum_{n=2}^N g_n((i - j) mod n)      near distances, and residues of all
    A[i, s] = sum_{n=1}^N g_n(i mod n, s)                                     A[s, j] likewise
    A[s, t] = g(s, t)

A table of residues modulo n spans the harmonics of period n that the standard model's positions start from
(`sih.training.recipes.harmonic_positions`), so that a tiling of the past can be written, whatever its length: what
is learned on short
sequences holds on long ones. A is linear in C. The gradient in C is the transpose of that map applied to the gradient
in A, and training moves C; model and loss are as ever, and A is all that remains of it in the end.
"""

from __future__ import annotations

import itertools

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.models.disentangled.dense import DisentangledTransformer

SCALE = 0.05
"""The standard deviation of the tables' first entries."""
KINDS = ("token", "position")


class SharedWeights:
    """A model together with its tables.

    `tables["3/position/token"]` has those of the blocks of layer 3 between the query's positions and the key's tokens,
    (head, path, entry, path, state); `"3/position/position"` is (head, path, path, entry), `"readout/position"`
    (state, path, entry). Paths are `sih.models.disentangled.blocks`'s.
    """

    def __init__(self, model: DisentangledTransformer, max_period: int) -> None:
        if max_period < 1:
            raise ValueError(f"max_period is a whole number, at least 1; got {max_period!r}")
        self.model = model
        length = model.config.length
        self.sizes, self.last = (model.config.num_states, length), len(model.config.heads)
        times, distances = torch.arange(length), torch.arange(1 - length, length)
        self.by_position = residues(times, range(1, max_period + 1)).to(model.readout)
        near = torch.arange(-max_period, max_period + 1)
        clipped = (distances.clamp(-max_period, max_period)[:, None] == near).to(torch.float64)
        self.by_distance = torch.cat([clipped, residues(distances, range(2, max_period + 1))], dim=1).to(model.readout)
        zeros = [self._gathered(torch.zeros_like(A)) for A in model.A]
        self.tables: dict[str, nn.Parameter] = {}
        for layer, parts in enumerate(zeros, 1):
            self.tables |= {f"{layer}/{kinds}": nn.Parameter(part) for kinds, part in parts.items()}
        parts = self._gathered_readout(torch.zeros_like(model.readout))
        self.tables |= {f"readout/{kind}": nn.Parameter(part) for kind, part in parts.items()}

    @torch.no_grad()
    def draw(self, rng: torch.Generator) -> None:
        """Small random tables where `moves` is 1 and in the layers between, 0 elsewhere."""
        for name, table in self.tables.items():
            noise = torch.empty(table.shape, dtype=table.dtype).normal_(generator=rng).to(table.device)
            table.copy_(SCALE * noise * (1 if self.between(name) else self.moves(name)))
        self.spread()

    def between(self, name: str) -> bool:
        """Whether a table is of a layer between the first and the last."""
        layer = name.partition("/")[0]
        return layer != "readout" and 1 < int(layer) < self.last

    def moves(self, name: str) -> Float[Tensor, ...]:
        """1 where a table starts and where it moves at first, 0 elsewhere.

        Layer 1 compares tokens, and what it reports is where it found them, not which: no table reads a token that
        came by way of it. The readout reads what the last layer copied. The layers between stand still.
        """
        table = self.tables[name]
        result = torch.zeros_like(table)
        layer, *kinds = name.split("/")
        if layer == "readout":
            paths = self.model.stream(self.last).routes
            wanted = [path.startswith(f"{self.last}.") and _readable(path, kinds[0]) for path in paths]
            result[:, torch.tensor(wanted)] = 1
        elif layer == "1":
            result += kinds == ["token", "token"]
        elif not self.between(name):
            paths = self.model.stream(int(layer) - 1).routes
            query, key = (torch.tensor([_readable(path, kind) for path in paths], dtype=table.dtype) for kind in kinds)
            pairs = (query[:, None] * key).to(table.device)
            result += pairs[..., None] if kinds == ["position", "position"] else pairs[:, None, :, None]
        return result

    def hold(self) -> None:
        """No gradient for what does not move at first."""
        for name, table in self.tables.items():
            assert table.grad is not None
            table.grad *= self.moves(name)

    @torch.no_grad()
    def spread(self) -> None:
        """Write the model's weights: A and W_O from C."""
        for layer, A in enumerate(self.model.A, 1):
            tt, tp, pt, pp = self._blocks(A)
            table = {kinds: self.tables[f"{layer}/{'/'.join(kinds)}"] for kinds in itertools.product(KINDS, KINDS)}
            tt.copy_(table["token", "token"])
            tp.copy_(table["token", "position"] @ self.by_position.T)
            pt.copy_(torch.einsum("hpcqs,ic->hpiqs", table["position", "token"], self.by_position))
            by_distance = table["position", "position"] @ self.by_distance.T
            pp.copy_(toeplitz(by_distance).transpose(2, 3))
        token, position = self._readout_blocks(self.model.readout)
        token.copy_(self.tables["readout/token"])
        position.copy_(self.tables["readout/position"] @ self.by_position.T)

    @torch.no_grad()
    def gather(self) -> None:
        """The gradient of the tables, from that of the model's weights."""
        for layer, A in enumerate(self.model.A, 1):
            assert A.grad is not None
            for kinds, grad in self._gathered(A.grad).items():
                self.tables[f"{layer}/{kinds}"].grad = grad
        assert self.model.readout.grad is not None
        for kind, grad in self._gathered_readout(self.model.readout.grad).items():
            self.tables[f"readout/{kind}"].grad = grad

    def _gathered(self, A: Float[Tensor, "head dim dim"]) -> dict[str, Tensor]:
        tt, tp, pt, pp = self._blocks(A)
        return {
            "token/token": tt.clone(),
            "token/position": tp @ self.by_position,
            "position/token": torch.einsum("hpiqs,ic->hpcqs", pt, self.by_position),
            "position/position": diagonal_sums(pp.transpose(2, 3)) @ self.by_distance,
        }

    def _gathered_readout(self, readout: Float[Tensor, "state dim"]) -> dict[str, Tensor]:
        token, position = self._readout_blocks(readout)
        return {"token": token.clone(), "position": position @ self.by_position}

    def _blocks(self, A: Float[Tensor, "head dim dim"]) -> list[Float[Tensor, "head path _ path _"]]:
        """The parts of A by kind of query and key coordinate: token/token, token/position, ..."""
        width = sum(self.sizes)
        split = A.detach().view(A.shape[0], A.shape[1] // width, width, -1, width)
        return [block for rows in split.split(self.sizes, 2) for block in rows.split(self.sizes, 4)]

    def _readout_blocks(self, readout: Float[Tensor, "state dim"]) -> tuple[Tensor, ...]:
        token, position = readout.detach().view(readout.shape[0], -1, sum(self.sizes)).split(self.sizes, 2)
        return token, position


def residues(numbers: Int[Tensor, " number"], periods: range) -> Float[Tensor, "number entry"]:
    """1 where a number has a residue, for each residue of each period."""
    columns = [numbers % n == r for n in periods for r in range(n)]
    empty = torch.zeros(len(numbers), 0, dtype=torch.float64)
    return torch.stack(columns, dim=1).to(torch.float64) if columns else empty


def toeplitz(values: Float[Tensor, "*blocks distance"]) -> Float[Tensor, "*blocks time time"]:
    """The matrices whose entry i, j is the value at distance i - j, the values being those of 1 - T .. T - 1."""
    time = (values.shape[-1] + 1) // 2
    return values.flip(-1).unfold(-1, time, 1).flip(-2)  # row i is the window of the flipped values at T - 1 - i


def diagonal_sums(matrices: Float[Tensor, "*blocks time time"]) -> Float[Tensor, "*blocks distance"]:
    """The sums over i - j = 1 - T .. T - 1: the transpose of `toeplitz`."""
    time = matrices.shape[-1]
    # With rows reversed and T zeros behind each, a row of 2T - 1 of the same numbers starts one further to the right.
    padded = nn.functional.pad(matrices.flip(-1), (0, time)).flatten(-2)
    sums: Tensor = padded[..., : time * (2 * time - 1)].unflatten(-1, (time, 2 * time - 1)).sum(-2)
    return sums


def _readable(path: str, kind: str) -> bool:
    """Whether a block may be read at first: not a token that came by way of layer 1."""
    return kind == "position" or not any(step.startswith("1.") for step in path.split("/"))
