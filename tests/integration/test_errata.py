"""One test for each line of docs/errata.md: the printed form fails, the corrected form holds."""

from __future__ import annotations

import itertools

import pytest
import torch
from support.printed_matrices import A2_134
from torch import Tensor

import sih
from sih.construction import circuit_weights
from sih.paper.errata import A3_13, BETA, LAM, printed, task


def index(length: int) -> tuple[Tensor, Tensor]:
    """The paper's i and j, counted from 1, as a column and a row."""
    return torch.arange(1, length + 1)[:, None], torch.arange(1, length + 1)[None, :]


def test_1_alternative_third_layer() -> None:
    """Printed B^(3,h): (i - j - h + 1) mod K = 0. Corrected: (i - j + h) mod K = 0."""
    chain = task((1, 2, 3), 24)
    i, j = index(24)
    for sign, shift, holds in ((-1, 1, False), (1, 0, True)):
        model = sih.construct(chain, third="position")
        for h in (1, 2, 3):
            model.block("3.1", f"2.{h}/1.1/position", "position").copy_(
                BETA * ((i - j + sign * h + shift) % 3 == 0)
            )
        assert sih.verify(model, chain).ok is holds


@pytest.mark.parametrize("lags", [(2, 5), (3, 4), (2, 4), (4, 9)], ids=str)
def test_2_two_lags_single_head(lags: tuple[int, int]) -> None:
    """Printed B^(3): ((i - j - 1) mod 2d) < d. Corrected: ((i - j + 1 - 2 k_min) mod 2d) < d."""
    chain = task(lags, 40)
    low, d = lags[0], lags[1] - lags[0]
    i, j = index(40)
    for shift in (-1, 1 - 2 * low):
        model = sih.construct(chain, target="two-lags")
        plus = (i - j + shift) % (2 * d) < d
        model.block("3.1", "position", "2.1/1.1/position").copy_(
            torch.where(plus, BETA, -BETA) * (j < i)
        )
        same = (-1 - (1 - 2 * low)) % (2 * d) == 0  # where the printed form says the same thing
        assert sih.verify(model, chain).ok is (same or shift != -1)


def test_3_signs_of_index_differences() -> None:
    """The appendix has j - i in the set of lags; that is above the diagonal, where nothing may be attended to."""
    chain = task((1, 2, 3), 24)
    i, j = index(24)
    for gap, holds in ((j - i, False), (i - j, True)):
        model = sih.construct(chain)
        mask = torch.isin(gap, torch.tensor([1, 2, 3]))
        model.block("1.1", "position", "position").copy_(torch.where(mask, LAM, -LAM))
        assert sih.verify(model, chain).ok is holds


@pytest.mark.parametrize("lam", [500.0, 50_000.0])
def test_4_early_rows(lam: float) -> None:
    """A row of the second layer without an allowed key is drawn as zeros; it is uniform, however strong the mask."""
    chain = task((1, 2, 3), 24)
    tokens = sih.sample(chain, 4, rng=torch.Generator().manual_seed(0)).tokens
    attention = sih.construct(chain, lam=lam).trace(tokens).attention[1]
    for head, ready in enumerate((3, 4, 5)):
        for row in range(ready):
            assert torch.allclose(
                attention[:, head, row, : row + 1], torch.tensor(1 / (row + 1), dtype=torch.float64)
            )
    resting = sih.construct(chain, sink=True).trace(tokens).attention[1]
    assert torch.allclose(resting[:, :, :3, 0], torch.ones(4, 3, 3, dtype=torch.float64))


def test_5_proposition_1s_weights() -> None:
    """Printed: beta / (T - k_hat) times one sum. The weights give beta / n_h(i) to each head's own sum."""
    chain = task((1, 2, 3), 15)
    tokens = torch.randint(4, (32, 15), generator=torch.Generator().manual_seed(0))
    model = sih.construct(chain)
    i = torch.arange(model.circuit.first_exact_position, 15)
    attention = model.trace(tokens).attention[2][:, 0]
    found = torch.stack([attention[:, i, i - k + 1] for k in chain.lags], dim=-1)
    as_printed = sih.selective_weights(tokens, chain, beta=3 * BETA)[:, i]
    assert (found - circuit_weights(tokens, chain, model.circuit)[:, i]).abs().max() < 1e-10
    assert (found - as_printed).abs().max() > 0.1
    exact = sih.construct(chain, sink=True, beta=3 * BETA)  # with a sink it holds to the letter
    attention = exact.trace(tokens).attention[2][:, 0]
    assert (
        torch.stack([attention[:, i, i - k + 1] for k in chain.lags], dim=-1) - as_printed
    ).abs().max() < 1e-10


def test_6_head_count_for_any_lags() -> None:
    """Printed: k_hat - min(K + 1) heads always do. Meant: k_hat - min(K) + 1."""
    sets = [c for size in (2, 3, 4) for c in itertools.combinations(range(1, 8), size)]
    assert all(sih.least_heads(lags).heads <= max(lags) - min(lags) + 1 for lags in sets)
    assert sih.least_heads((1, 2, 3)).heads > 3 - min(k + 1 for k in (1, 2, 3))


def test_7_the_lag_is_uniform_over_the_set() -> None:
    """Eq. (1) draws k from 1 .. k_hat; for {1, 3} that would make a third of the sequences lag 2."""
    chain = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 3), length=5)
    lags = sih.sample(chain, 20_000, rng=torch.Generator().manual_seed(0)).lags
    assert not (lags == 2).any()
    assert abs((lags == 3).double().mean().item() - 1 / 2) < 5 * 0.5 / 20_000**0.5


def test_8_the_first_layer_of_the_examples() -> None:
    """A^(1) for {1, 3} is printed with +lambda at (3, 1), (3, 3), (4, 2), ...: that is A^(3), attending to itself."""
    chain = task((1, 3), 10)
    as_printed = printed(
        "---------- ---------- +-+------- -+-+------ --+-+----- ---+-+---- ----+-+--- -----+-+-- ------+-+- -------+-+"
    )
    assert torch.equal(as_printed, A3_13)
    model = sih.construct(chain)
    i, j = index(10)
    corrected = torch.where(torch.isin(i - j, torch.tensor([1, 3])), LAM, -LAM).double()
    assert torch.equal(model.block("1.1", "position", "position"), corrected)
    assert sih.verify(model, chain).ok
    model.block("1.1", "position", "position").copy_(as_printed)
    assert not sih.verify(model, chain).ok


def test_9_the_fourth_head_of_the_example() -> None:
    """A^(2,4) for {1, 3, 4} lacks +lambda at (12, 5): offset 7 is 3 modulo 4 like offset 3, which is there."""
    chain = task((1, 3, 4), 12)
    model = sih.construct(chain, third="position")
    block = model.block("2.4", "position", "position")
    assert (block != A2_134[3]).nonzero().tolist() == [[11, 4]]
    assert sih.verify(model, chain).ok
    block.copy_(A2_134[3])
    assert not sih.verify(model, chain).ok


def test_10_where_layer_1_stores() -> None:
    """Printed: p-tilde_{i,k} goes to element S + T - k of token i. It goes to S + i - k, as said some lines earlier."""
    chain = task((1, 2, 3), 12)
    tokens = sih.sample(chain, 1, rng=torch.Generator().manual_seed(0)).tokens
    block = sih.construct(chain).trace(tokens).stream("1.1/position")[0]
    for i in range(3, 12):
        assert block[i, [i - 1, i - 2, i - 3]].sum().item() == pytest.approx(1)
    assert block[5, [11, 10, 9]].abs().max() < 1e-12


def test_11_which_positions_layer_2_may_use() -> None:
    """The text asks for j >= k_hat (from 1), the formula for j > k_hat. Token k_hat is stationary: it must stay out."""
    chain = task((1, 2, 3), 24)
    model = sih.construct(chain)
    i, j = index(24)
    for h in (1, 2, 3):
        allowed = (i >= j) & (j >= 3) & ((i - j) % 3 == h - 1)
        model.block(f"2.{h}", "position", "position").copy_(torch.where(allowed, LAM, -LAM))
    assert not sih.verify(model, chain).ok
