r"""Least squares for the weights and reads of mixed heads.

$F_o$ (`sih.heads.profiles`) is bilinear. In coordinates orthogonal to 1, $J F_o J - J$
is $r_o = \sum_h \sum_{a,c} u_h(o + a)\,g_h(o + c)\,W_{ac} - I$ with one array W for all
offsets, where g are the reads of either side. For given u the reads are a linear
problem. The weights follow by variable projection: a Levenberg-Marquardt step in (log
u, g) from the best g, with damping on u and hardly any on g. An unknown interacts only
with those less than 2 max_lag places away, so the normal equations are block
tridiagonal. All starts run at once, as a batch.
"""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

STEEPEST = 2.0
"""Largest change of a log u in a step."""
WIDEST = 12.0
"""The largest |log u|."""
PULLS = (1e3, 1.0, 1.0)
"""Factors of `ridge` for the weights and for the reads of either side. `ridge` is a
small pull towards u = 1 and g = 0, which settles undetermined unknowns."""


class ReadProblem:
    """The least squares problem for lags, a number of heads and a number of offsets.

    Weights (head, place) and reads (side, head, place), of query and key, have one axis
    of places: offset or index n is at place n + pad. The residual at offset o has the
    weight `importance[o]`.
    """

    def __init__(
        self, lags: tuple[int, ...], heads: int, importance: Float[Tensor, " offset"]
    ) -> None:
        self.lags, self.heads, self.offsets = lags, heads, len(importance)
        self.pad = lags[-1] - 1
        self.size = self.pad + self.offsets + lags[-1]
        self.here = slice(self.pad, self.pad + self.offsets)
        self.basis, self.root = orthogonal_to_ones(len(lags)), importance.sqrt()[:, None]
        self.target = torch.eye(len(lags) - 1, dtype=torch.float64).flatten()
        weights = sorted({1 - k for k in lags} | {0})
        differences = sorted({b - a for a in lags for b in lags})
        self.W = torch.zeros(
            len(weights), len(differences) + len(lags), len(self.target), dtype=torch.float64
        )
        for (a, k), (b, other) in itertools.product(enumerate(lags), repeat=2):
            entry = torch.outer(self.basis[a], self.basis[b]).flatten()
            self.W[weights.index(0), differences.index(other - k)] += entry
            self.W[weights.index(1 - k), len(differences) + b] += entry
        place = self.pad + torch.arange(self.offsets)[:, None]
        self.at_weights, self.at_query = (
            place + torch.tensor(weights),
            place + torch.tensor(differences),
        )
        self.at_key = place + torch.tensor(lags)
        # Unknowns by place, then kind, then head, in blocks so long that an offset's are in at most two.
        places = torch.cat([3 * self.at_weights, 3 * self.at_query + 1, 3 * self.at_key + 2], dim=1)
        self.columns = (places[:, None, :] * heads + torch.arange(heads)[:, None]).flatten(1)
        self.unknowns, self.block = self.size * 3 * heads, 3 * heads * (2 * lags[-1] - 1)
        self.blocks = -(-self.unknowns // self.block)
        row, column = self.columns[:, :, None], self.columns[:, None, :]
        number = row.div(self.block, rounding_mode="floor")
        below = number - column.div(self.block, rounding_mode="floor")
        flat = (
            (2 * number + below) * self.block + row % self.block
        ) * self.block + column % self.block
        self.flat = torch.where(
            below >= 0, flat, 2 * self.blocks * self.block**2
        ).flatten()  # the rest by symmetry

    def widened(
        self, weights: Float[Tensor, "*start head offset"]
    ) -> Float[Tensor, "*start head place"]:
        """Return weights at their places, with 0 elsewhere."""
        return torch.nn.functional.pad(weights, (self.pad, self.size - self.pad - self.offsets))

    def residual(
        self, u: Float[Tensor, "*start head place"], g: Float[Tensor, "*start side head place"]
    ) -> Float[Tensor, "*start offset entry"]:
        """Return J F_o J - J at every offset, in coordinates orthogonal to 1."""
        near, read = u[..., self.at_weights], self._near(g)
        return torch.einsum("...hoa,...hoc,acr->...or", near, read, self.W) - self.target

    def matrices(
        self, u: Float[Tensor, "head place"], g: Float[Tensor, "side head place"]
    ) -> Float[Tensor, "offset lag lag"]:
        """Return J F_o J at every offset."""
        rest = len(self.lags) - 1
        inside = (self.residual(u, g) + self.target).view(-1, rest, rest)
        return self.basis @ inside @ self.basis.T

    def cost(
        self,
        u: Float[Tensor, "start head place"],
        g: Float[Tensor, "start side head place"],
        ridge: float,
    ) -> Float[Tensor, " start"]:
        """Return the cost that `fitted` minimises: the weighted squared residual, and
        the pulls.
        """
        fit = ((self.residual(u, g) * self.root) ** 2).sum(dim=(1, 2))
        return fit + ridge * ((g**2).sum(dim=(1, 2, 3)) + PULLS[0] * (_log(u) ** 2).sum(dim=(1, 2)))

    def step(
        self,
        u: Float[Tensor, "start head place"],
        g: Float[Tensor, "start side head place"],
        ridge: float,
        damping: Float[Tensor, " start"] | None,
    ) -> tuple[Float[Tensor, "start head place"], Float[Tensor, "start side head place"]]:
        """Return the Levenberg-Marquardt step in (log u, g).

        Without damping it is the step to the best g for this u.
        """
        starts, near = len(u), u[..., self.at_weights]
        by_weights = torch.einsum("shoc,acr->shoar", self._near(g), self.W) * near[..., None]
        r = (by_weights.sum(dim=(1, 3)) - self.target) * self.root
        by_reads = torch.einsum("shoa,acr->shocr", near, self.W)
        moved = torch.zeros_like(by_weights) if damping is None else by_weights
        jacobian = (
            torch.cat([moved, by_reads], dim=3).transpose(1, 2).flatten(2, 3)
            * self.root[:, :, None]
        )
        matrix = torch.zeros(starts, 2 * self.blocks * self.block**2 + 1, dtype=torch.float64)
        matrix.index_add_(1, self.flat, (jacobian @ jacobian.mT).flatten(1))
        matrix = matrix[:, :-1].view(starts, self.blocks, 2, self.block, self.block)
        pulls = ridge * torch.tensor(PULLS, dtype=torch.float64)[:, None, None]
        damped = torch.tensor([1.0, 1e-3, 1e-3], dtype=torch.float64)[:, None, None]
        strength = torch.zeros(starts, dtype=torch.float64) if damping is None else damping
        extra = (pulls + damped * strength[:, None, None, None]).expand(
            starts, 3, self.heads, self.size
        )
        matrix[:, :, 0].diagonal(dim1=-2, dim2=-1).add_(self._in_blocks(extra, fill=1.0))
        slope = self._in_blocks(pulls * torch.cat([_log(u)[:, None], g], dim=1), fill=0.0)
        slope.view(starts, -1).index_add_(
            1, self.columns.flatten(), (jacobian @ r[..., None]).flatten(1)
        )
        found = -solve_blocks(matrix[:, :, 0], matrix[:, 1:, 1], slope)
        by_kind = (
            found.flatten(1)[:, : self.unknowns]
            .view(starts, self.size, 3, self.heads)
            .permute(0, 2, 3, 1)
        )
        return by_kind[:, 0], by_kind[:, 1:]

    def _near(
        self, g: Float[Tensor, "*start side head place"]
    ) -> Float[Tensor, "*start head offset column"]:
        return torch.cat(
            [g[..., 0, :, :][..., self.at_query], g[..., 1, :, :][..., self.at_key]], dim=-1
        )

    def _in_blocks(
        self, values: Float[Tensor, "start kind head place"], fill: float
    ) -> Float[Tensor, "start block row"]:
        flat = values.permute(0, 3, 1, 2).flatten(1)
        padded = torch.nn.functional.pad(
            flat, (0, self.blocks * self.block - self.unknowns), value=fill
        )
        return padded.view(len(values), self.blocks, self.block)


def fitted(
    problem: ReadProblem,
    weights: Float[Tensor, "start head offset"],
    reads: Float[Tensor, "start side head place"] | None,
    iterations: int,
    ridge: float,
) -> tuple[
    Float[Tensor, "start head offset"],
    Float[Tensor, "start side head place"],
    Float[Tensor, " start"],
]:
    """Return weights, reads and costs after the iterations, by rising cost.

    Each start has its weights, and the given reads or the best ones.
    """
    u = problem.widened(weights)
    if reads is None:
        g = torch.zeros(len(u), 2, problem.heads, problem.size, dtype=torch.float64)
        g = g + problem.step(u, g, ridge, None)[1]
    else:
        g = reads
    cost, damping = problem.cost(u, g, ridge), torch.full((len(u),), 1e-2, dtype=torch.float64)
    for _ in range(iterations):
        log_step, read_step = problem.step(u, g, ridge, damping)
        log_u = (_log(u) + log_step.clamp(-STEEPEST, STEEPEST)).clamp(-WIDEST, WIDEST)
        tried_u, tried_g = torch.where(u > 0, log_u.exp(), 0.0), g + read_step
        tried = problem.cost(tried_u, tried_g, ridge)
        better = tried <= cost  # false where the factorisation failed
        u = torch.where(better[:, None, None], tried_u, u)
        g = torch.where(better[:, None, None, None], tried_g, g)
        cost = torch.where(better, tried, cost)
        damping = torch.where(better, damping / 4, damping * 4).clamp(1e-9, 1e7)
    order = cost.argsort(stable=True)
    return u[order][..., problem.here], g[order], cost[order]


def solve_blocks(
    diagonal: Float[Tensor, "start block row row"],
    below: Float[Tensor, "start lower row row"],
    right: Float[Tensor, "start block row"],
) -> Float[Tensor, "start block row"]:
    """Return the solution of a positive block-tridiagonal system, by Cholesky.

    Given are the diagonal and the blocks below it. If the system is not positive, the
    result is not a solution.
    """
    factors: list[Tensor] = []
    links: list[Tensor] = []
    forward: list[Tensor] = []
    for n in range(diagonal.shape[1]):
        rest, value = diagonal[:, n], right[:, n, :, None]
        if n:
            links.append(
                torch.linalg.solve_triangular(
                    factors[-1].mT, below[:, n - 1], upper=True, left=False
                )
            )
            rest, value = rest - links[-1] @ links[-1].mT, value - links[-1] @ forward[-1]
        factors.append(torch.linalg.cholesky_ex(rest).L)
        forward.append(torch.linalg.solve_triangular(factors[-1], value, upper=False))
    found = [torch.zeros_like(forward[-1])]
    for n in reversed(range(len(factors))):
        value = forward[n] - (links[n].mT @ found[-1] if n < len(links) else 0.0)
        found.append(torch.linalg.solve_triangular(factors[n].mT, value, upper=True))
    return torch.cat(found[:0:-1], dim=-1).mT


def orthogonal_to_ones(count: int) -> Float[Tensor, "count rest"]:
    """Return an orthonormal basis of the vectors with entries that sum to 0."""
    columns = torch.ones(count, count - 1, dtype=torch.float64).triu()
    columns[range(1, count), range(count - 1)] = -torch.arange(1, count, dtype=torch.float64)
    return columns.div(columns.norm(dim=0))


def _log(u: Float[Tensor, "*start place"]) -> Float[Tensor, "*start place"]:
    return torch.where(u > 0, u, 1.0).log()
