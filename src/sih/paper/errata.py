r"""Errata: the printed form, the corrected form, and the places where the printed form
fails.

Each is a line of docs/errata.md, by its number; `tests/integration/test_errata.py`
proves them. The failure is that of the circuit with this matrix in its weights: the
distance of its prediction from the closed form, by position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.circuits import circuit_weights, construct
from sih.models.disentangled.dense import DisentangledTransformer
from sih.predictors.evidence import mixture
from sih.results.experiment import Experiment, Seeded
from sih.task import Task, sample
from sih.task.matrices import random_transition_matrix

LAM, BETA = 500.0, 100.0

LEVELS = {"+": LAM, "-": -LAM, "0": 0.0, "1": BETA, "m": -BETA}
"""Meaning of the signs in a printed matrix: +lambda, -lambda, nothing, beta, -beta."""

LAMBDA, SIGN, HEADS, SHARE = "mask", "sign", "heads", "share"
"""Kinds of entries, which choose the colours of a matrix."""

Pairs = list[tuple[Tensor, DisentangledTransformer]]
"""The printed and the corrected matrix, each with the circuit that has it in its
weights."""


def printed(rows: str) -> Tensor:
    """Return a matrix from its rows of signs."""
    return torch.tensor([[LEVELS[c] for c in row] for row in rows.split()], dtype=torch.float64)


def task(lags: tuple[int, ...], length: int) -> Task:
    """Return an example task: four states and some matrix."""
    return Task(random_transition_matrix(4, rng=torch.Generator().manual_seed(0)), lags, length)


# App. "Construction for any set of lags": A^(1) for lags {1, 3}, and A^(2,4) for lags {1, 3, 4}.
A3_13 = printed(
    "---------- ---------- +-+------- -+-+------ --+-+----- ---+-+---- ----+-+--- -----+-+-- ------+-+- -------+-+"
)

A2_134_LAST = printed(
    "------------ ------------ ------------ ------------ ------------ ------------ "
    "------------ ----+------- -----+------ ------+----- -------+---- --------+---"
)


@dataclass(frozen=True)
class ErrataConfig(Seeded):
    sequences: int = 64


@dataclass(frozen=True, eq=False)
class MatrixErratum:
    """A matrix as printed and as corrected, with the errors of both.

    Entries are -1, 0, 1 for masks and signs, the head, or a share of attention. Errors
    are at the positions `first`, `first` + 1, ... (from 1, as in the paper).
    """

    number: int
    title: str
    kind: str
    printed: Float[Tensor, "row column"]
    corrected: Float[Tensor, "row column"]
    first: int
    printed_error: Float[Tensor, " position"]
    corrected_error: Float[Tensor, " position"]


@dataclass(frozen=True, eq=False)
class Errata:
    """The errata that concern matrices."""

    errata: tuple[MatrixErratum, ...]


def compute(config: ErrataConfig, store: object) -> Errata:
    """Return the errors of the circuits with each form of a matrix in their weights."""
    return Errata((*_third_layers(config), *_masks(config), *_statements(config)))


def _third_layers(config: ErrataConfig) -> Iterator[MatrixErratum]:
    """Return errata 1 and 2: the blocks B of the third layer."""
    chain = task((1, 2, 3), 16)
    i, j = _index(16)
    pairs = []
    for sign, shift in ((-1, 1), (1, 0)):
        model = construct(chain, third="position", lam=LAM, beta=BETA)
        rules = [(i - j + sign * h + shift) % 3 == 0 for h in (1, 2, 3)]
        for h, rule in enumerate(rules, 1):
            model.block("3.1", f"2.{h}/1.1/position", "position").copy_(BETA * rule)
        pairs.append((sum(h * rule for h, rule in enumerate(rules, 1)) * (i < j), model))
    yield _compared(config, 1, r"$B^{(3,h)}$, $\{1,2,3\}$", HEADS, pairs, chain)

    chain = task((2, 5), 20)
    i, j = _index(20)
    pairs = []
    for shift in (-1, 1 - 2 * 2):  # d = 5 - 2
        model = construct(chain, target="two-lags", lam=LAM, beta=BETA)
        signs = torch.where((i - j + shift) % 6 < 3, 1, -1) * (j < i)
        model.block("3.1", "position", "2.1/1.1/position").copy_(BETA * signs)
        pairs.append((signs, model))
    yield _compared(config, 2, r"two lags, $B^{(3)}$, $\{2,5\}$", SIGN, pairs, chain)


def _masks(config: ErrataConfig) -> Iterator[MatrixErratum]:
    """Return errata 3, 8, 9 and 11: the allowed pairs of positions."""
    i, j = _index(16)
    lags = torch.tensor((1, 2, 3))
    signs = [torch.isin(gap, lags) for gap in (j - i, i - j)]
    yield _masked(config, 3, r"$A^{(1)}$, $\{1,2,3\}$", "1.1", signs, task((1, 2, 3), 16))
    i, j = _index(10)
    rows = [A3_13 > 0, torch.isin(i - j, torch.tensor((1, 3)))]
    yield _masked(config, 8, r"$A^{(1)}$, $\{1,3\}$", "1.1", rows, task((1, 3), 10))
    i, j = _index(12)
    fourth = [A2_134_LAST > 0, (i >= j) & (j > 4) & ((i - j) % 4 == 3)]
    yield _masked(config, 9, r"$A^{(2,4)}$, $\{1,3,4\}$", "2.4", fourth, task((1, 3, 4), 12))
    i, j = _index(16)
    first = [(i >= j) & (j >= start) & ((i - j) % 3 == 0) for start in (3, 4)]
    yield _masked(config, 11, r"$A^{(2,1)}$, $\{1,2,3\}$", "2.1", first, task((1, 2, 3), 16))


def _statements(config: ErrataConfig) -> Iterator[MatrixErratum]:
    """Return errata 4 and 10: a row of attention, and the address at which layer 1
    stores, against the circuit.
    """
    chain = task((1, 2, 3), 12)
    i, j = _index(12)
    tokens = _tokens(config, chain)
    trace = construct(chain, lam=LAM, beta=BETA).trace(tokens)
    allowed = ((i >= j) & (j > 3) & ((i - j) % 3 == 0)).double()
    drawn = allowed / allowed.sum(dim=1, keepdim=True).clamp_min(1)
    uniform = torch.where(drawn.sum(dim=1, keepdim=True) > 0, drawn, (j <= i).double() / i)
    errors = [(trace.attention[1][:, 0] - said).abs().amax(dim=(0, 2)) for said in (drawn, uniform)]
    yield _erratum(4, r"$\mathcal{A}^{(2,1)}$, $\{1,2,3\}$", SHARE, [drawn, uniform], 1, errors)

    stored = trace.stream("1.1/position")[..., :12]
    places = [(i > 3) & (12 - j >= 1) & (12 - j <= 3), (i > 3) & (i - j >= 1) & (i - j <= 3)]
    lost = [1 - (stored * place).sum(dim=-1).amin(dim=0)[3:] for place in places]
    yield _erratum(10, r"where layer 1 stores, $\{1,2,3\}$", SHARE, places, 4, lost)


def _masked(
    config: ErrataConfig, number: int, title: str, head: str, allowed: list[Tensor], chain: Task
) -> MatrixErratum:
    """Return two versions of a head's position block, +lambda where allowed."""
    pairs = []
    for mask in allowed:
        model = construct(chain, third="position" if number == 9 else None, lam=LAM, beta=BETA)
        model.block(head, "position", "position").copy_(torch.where(mask, LAM, -LAM))
        pairs.append((torch.where(mask, 1, -1), model))
    return _compared(config, number, title, LAMBDA, pairs, chain)


def _compared(
    config: ErrataConfig, number: int, title: str, kind: str, pairs: Pairs, chain: Task
) -> MatrixErratum:
    """Return the comparison of two versions of a matrix by their circuits' predictions."""
    matrices, models = zip(*pairs, strict=True)
    errors = [failure(model, _tokens(config, chain), chain) for model in models]
    return _erratum(
        number, title, kind, list(matrices), models[0].circuit.first_exact_position + 1, errors
    )


def _erratum(
    number: int, title: str, kind: str, matrices: list[Tensor], first: int, errors: list[Tensor]
) -> MatrixErratum:
    """Return an erratum from two matrices and their errors, the printed one's first in
    each list.
    """
    (printed, corrected), (wrong, right) = (
        [found.double() for found in pair] for pair in (matrices, errors)
    )
    return MatrixErratum(number, title, kind, printed, corrected, first, wrong, right)


def failure(model: DisentangledTransformer, tokens: Tensor, chain: Task) -> Tensor:
    """Return the largest total variation of the prediction from the closed form, at
    each position where it holds.
    """
    expected = mixture(circuit_weights(tokens, chain, model.circuit), tokens, chain)
    distance = (model.predict(tokens) - expected).abs().sum(dim=-1) / 2
    return distance[:, model.circuit.first_exact_position :].amax(dim=0)


def _tokens(config: ErrataConfig, chain: Task) -> Tensor:
    return sample(chain, config.sequences, rng=config.rng()).tokens


def _index(length: int) -> tuple[Tensor, Tensor]:
    """Return the paper's i and j, counted from 1, as a column and a row."""
    return torch.arange(1, length + 1)[:, None], torch.arange(1, length + 1)[None, :]


EXPERIMENT = Experiment("errata", ErrataConfig(), Errata, compute)
