r"""SOAP: Adam in the eigenbasis of Shampoo's factors (Vyas et al., 2024).

For a gradient G, a matrix, with orthogonal U and V that diagonalise running means of G
G^T and G^T G,

    M <- b1 M + (1 - b1) G          S <- b2 S + (1 - b2) (U^T G V)^2          W <- W - rate U (U^T M V / sqrt(S)) V^T

with Adam's correction of the means' start. U and V are renewed at intervals, by one
step of orthogonal iteration. A weight of three axes or more is a matrix for each index
of its first axis, for example a head. The rest of its axes are divided into two halves.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

LARGEST = 1024
"""An axis longer than this keeps its own coordinates."""
EPSILON = 1e-8


class Soap(torch.optim.Optimizer):
    """The optimiser SOAP.

    Its state is made of tensors from the start, and can be saved at any step.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        lr: float = 5e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        renew_every: int = 5,
    ) -> None:
        super().__init__(list(weights), {"lr": lr, "betas": betas, "renew_every": renew_every})
        for weight in self.param_groups[0]["params"]:
            matrices = as_matrices(weight.detach())
            sides = {
                side: _identity(matrices, axis) for side, axis in (("left", -2), ("right", -1))
            }
            zero = {name: torch.zeros_like(matrices) for name in ("mean", "square")}
            factors = {f"{side}_factor": torch.zeros_like(basis) for side, basis in sides.items()}
            counts = {name: torch.zeros(()) for name in ("step", "renewals")}
            self.state[weight] = {
                **counts,
                **zero,
                **factors,
                **{f"{side}_basis": U for side, U in sides.items()},
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, as_matrices(weight.grad), group)

    def _move(
        self, weight: Tensor, G: Float[Tensor, "head row column"], group: dict[str, Any]
    ) -> None:
        state, (b1, b2) = self.state[weight], group["betas"]
        state["step"] += 1
        count = int(state["step"])
        U, V = state["left_basis"], state["right_basis"]
        mean, square = (
            state["mean"].lerp_(G, 1 - b1),
            state["square"].lerp_(_turned(G, U, V).square(), 1 - b2),
        )
        size = group["lr"] * math.sqrt(1 - b2**count) / (1 - b1**count)
        change = _turned(_turned(mean, U, V) / (square.sqrt() + EPSILON), U.mT, V.mT)
        weight.sub_(size * change.reshape(weight.shape))
        for side, outer in (("left", G @ G.mT), ("right", G.mT @ G)):
            if (factor := state[f"{side}_factor"]).numel():
                factor.lerp_(outer, 1 - b2)
        if (count == 1 or count % group["renew_every"] == 0) and G.any():
            self._renew(state)

    def _renew(self, state: dict[str, Tensor]) -> None:
        """Turn both bases towards the factors' eigenvectors.

        The first time they are set to the eigenvectors themselves.
        """
        first = not state["renewals"]
        state["renewals"] += 1
        for side, axis in (("left", -2), ("right", -1)):
            factor, basis = state[f"{side}_factor"], state[f"{side}_basis"]
            if not factor.numel():
                continue
            if first:
                basis.copy_(torch.linalg.eigh(factor).eigenvectors.flip(-1))
                continue
            image = factor @ basis
            order = (basis * image).sum(dim=-2).argsort(dim=-1, descending=True, stable=True)
            basis.copy_(torch.linalg.qr(image.gather(-1, order.unsqueeze(-2).expand_as(image))).Q)
            square, along = state["square"], order.unsqueeze(-1 if axis == -2 else -2)
            square.copy_(square.gather(axis, along.expand_as(square)))


def as_matrices(weight: Tensor) -> Float[Tensor, "head row column"]:
    """Return a weight's entries as matrices, one for each index of the first of three
    axes or more.
    """
    if weight.dim() < 3:
        return weight.reshape(1, -1, weight.shape[-1] if weight.dim() else 1)
    middle = (weight.dim() + 2) // 2
    return weight.reshape(weight.shape[0], math.prod(weight.shape[1:middle]), -1)


def _turned(
    X: Float[Tensor, "head row column"], U: Tensor, V: Tensor
) -> Float[Tensor, "head row column"]:
    """Return U^T X V, where an empty basis stands for the identity."""
    X = U.mT @ X if U.numel() else X
    return X @ V if V.numel() else X


def _identity(
    matrices: Float[Tensor, "head row column"], axis: int
) -> Float[Tensor, "head size size"]:
    """Return an axis' own coordinates as its first basis.

    It is empty if the axis is too long.
    """
    length = matrices.shape[axis]
    size = length if length <= LARGEST else 0
    basis = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
    return basis.expand(len(matrices), -1, -1).clone()
