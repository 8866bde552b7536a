"""SOAP against its definition, written out with NumPy, a matrix at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from sih.training import soap
from sih.training.soap import Soap, as_matrices

RATE, BETAS, EVERY = 0.1, (0.9, 0.8), 3


def by_definition(start: np.ndarray, gradients: list[np.ndarray]) -> np.ndarray:
    """The weight after all gradients: every basis by NumPy's own eigen- and QR decompositions."""
    weight, (rows, columns) = start.copy(), start.shape
    M, S, L, R = (
        np.zeros_like(weight),
        np.zeros_like(weight),
        np.zeros((rows, rows)),
        np.zeros((columns, columns)),
    )
    U, V, begun = np.eye(rows), np.eye(columns), False
    for count, G in enumerate(gradients, start=1):
        M = BETAS[0] * M + (1 - BETAS[0]) * G
        S = BETAS[1] * S + (1 - BETAS[1]) * (U.T @ G @ V) ** 2
        mean, square = M / (1 - BETAS[0] ** count), S / (1 - BETAS[1] ** count)
        scale = np.sqrt(1 - BETAS[1] ** count)
        weight -= RATE * U @ ((U.T @ mean @ V) / (np.sqrt(square) + soap.EPSILON / scale)) @ V.T
        L, R = (BETAS[1] * old + (1 - BETAS[1]) * new for old, new in ((L, G @ G.T), (R, G.T @ G)))
        if (count == 1 or count % EVERY == 0) and G.any():
            if not begun:
                U, V, begun = np.linalg.eigh(L)[1][:, ::-1], np.linalg.eigh(R)[1][:, ::-1], True
                continue
            rank_left, rank_right = (
                np.argsort(-np.diag(Q.T @ F @ Q), kind="stable") for Q, F in ((U, L), (V, R))
            )
            U, V = np.linalg.qr((L @ U)[:, rank_left])[0], np.linalg.qr((R @ V)[:, rank_right])[0]
            S = S[rank_left][:, rank_right]
    return weight


@pytest.mark.parametrize("frozen", [0, 4])
def test_updates_are_those_of_the_definition_for_each_head(frozen: int) -> None:
    rng = np.random.default_rng(frozen)
    start, gradients = rng.normal(size=(2, 4, 3)), rng.normal(size=(11, 2, 4, 3))
    gradients[:frozen] = 0  # a weight that a recipe holds still at first
    weight = nn.Parameter(torch.from_numpy(start.copy()))
    moved = Soap([weight], RATE, BETAS, EVERY)
    for gradient in gradients:
        weight.grad = torch.from_numpy(gradient.copy())
        moved.step()
    for head in range(2):
        expected = by_definition(start[head], list(gradients[:, head]))
        np.testing.assert_allclose(weight.detach().numpy()[head], expected, rtol=0, atol=1e-9)


def test_a_turned_problem_takes_a_turned_way() -> None:
    """Once the bases have been renewed, SOAP does not depend on the coordinates: on a quadratic, turned or not."""
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64)).Q
    scale = torch.tensor([1.0, 3.0, 10.0, 100.0], dtype=torch.float64)
    ends = []
    for basis in (torch.eye(4, dtype=torch.float64), turn):
        curvature = basis @ torch.diag(scale) @ basis.T
        weight = nn.Parameter(basis @ torch.ones(4, 2, dtype=torch.float64))
        moved = Soap([weight], 0.02, (0.9, 0.9), 1)
        for _ in range(150):
            weight.grad = curvature @ weight.detach()
            moved.step()
        ends.append((weight * (curvature @ weight)).sum().item())
    assert max(ends) < 0.05 * 2 * scale.sum().item()
    assert ends[0] == pytest.approx(ends[1], rel=0.5)


def test_axes_are_halved_and_long_ones_keep_their_coordinates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes = {
        (7,): (1, 1, 7),
        (5, 4): (1, 5, 4),
        (2, 5, 4): (2, 5, 4),
        (2, 3, 4, 5): (2, 12, 5),
        (1, 2, 3, 4, 5): (1, 6, 20),
    }
    assert {shape: tuple(as_matrices(torch.zeros(shape)).shape) for shape in shapes} == shapes
    monkeypatch.setattr(soap, "LARGEST", 3)
    weight = nn.Parameter(torch.zeros(2, 4, 3))
    state = Soap([weight]).state[weight]
    assert state["left_basis"].numel() == 0
    assert state["right_basis"].shape == (2, 3, 3)
    weight.grad = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    optimiser = Soap([weight])
    for _ in range(6):
        optimiser.step()
    assert weight.detach().abs().min() > 0
