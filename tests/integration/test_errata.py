"""One test for each line of docs/errata.md: the printed form fails, the corrected form holds."""

from __future__ import annotations

import itertools

import pytest
import torch
from support.printed_matrices import A2_134
from torch import Tensor

import sih
from sih.circuits import circuit_weights
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


def test_13_proposition_1_needs_a_transition() -> None:
    """With T = k_hat the weights are exp(beta 0/0). One token later they are those of the circuit."""
    chain = task((1, 2, 3), 24)
    tokens = sih.sample(chain, 8, rng=0).tokens
    weights = {}
    for length in (3, 4):  # T, in the paper's count
        p = torch.stack([chain.P[tokens[:, 3 - k], tokens[:, 3]] for k in (1, 2, 3)], dim=-1)
        p_norm = (p / p.sum(dim=-1, keepdim=True))[:, None][:, : length - 3]
        weights[length] = torch.softmax(BETA * p_norm.sum(dim=1) / (length - 3), dim=-1)
    assert weights[3].isnan().all()
    constructed = sih.construct(chain, sink=True, beta=BETA)
    third = constructed.trace(tokens)["3.1/attention"][:, 3]
    assert torch.allclose(weights[4], third[:, [3, 2, 1]], atol=1e-12)


def test_14_claim_1_is_about_tokens_that_follow_others() -> None:
    """At i = k_hat the largest lag would look at a token 0. Past it the claim holds, here at i = 4."""
    lags, P = (1, 2), task((1, 2), 8).P
    looked_at = torch.arange(1, 9)[None, :] - torch.tensor(lags)[:, None]  # i - k, from 1
    assert looked_at[:, 1].tolist() == [1, 0]
    assert (looked_at[:, 2:] >= 1).all()
    pi = sih.stationary_distribution(P)
    found = torch.zeros(2, 2, dtype=torch.float64)  # true lag, lag
    for true, tokens in itertools.product((0, 1), itertools.product(range(len(P)), repeat=4)):
        chance = pi[tokens[0]] * pi[tokens[1]]
        for i in (2, 3):
            chance = chance * P[tokens[i - lags[true]], tokens[i]]
        p = torch.stack([P[tokens[3 - k], tokens[3]] for k in lags])
        found[true] += chance * p / p.sum()
    assert torch.allclose(found, sih.claim_expectations(P, lags=lags), atol=1e-12)
    assert (found.diagonal() >= found.fliplr().diagonal()).all()


def test_15_maximum_likelihood_is_the_limit_of_low_temperature() -> None:
    """Large beta, a low temperature, takes the largest mean; small beta, a high one, weighs all lags alike."""
    chain = task((1, 2, 3), 24)
    tokens = sih.sample(chain, 32, rng=0).tokens
    cold, hot = (sih.selective_weights(tokens, chain, beta=beta)[:, 3:] for beta in (1e9, 1e-9))
    some = sih.selective_weights(tokens, chain, beta=1.0)[:, 3:]
    assert torch.equal(cold.argmax(dim=-1), some.argmax(dim=-1))
    assert cold.max(dim=-1).values.median() == 1
    assert torch.allclose(hot, torch.full_like(hot, 1 / 3), atol=1e-8)


def test_16_the_diagonals_of_the_first_layer() -> None:
    """For {1, 3, 4} the text has diagonals 2, 3 and 4, counted from 1; those are the lags 1, 2 and 3."""
    chain = task((1, 3, 4), 12)
    i, j = index(12)
    for diagonals, holds in (((2, 3, 4), False), ((2, 4, 5), True)):
        model = sih.construct(chain, third="position")
        mask = torch.isin(i - j + 1, torch.tensor(diagonals))
        model.block("1.1", "position", "position").copy_(torch.where(mask, LAM, -LAM))
        assert sih.verify(model, chain).ok is holds


@pytest.mark.parametrize("lags", [(1, 3), (2, 5)], ids=str)
def test_17_the_second_layer_for_two_lags(lags: tuple[int, int]) -> None:
    """Printed: 0 where i < k_hat or j < k_hat. Corrected: also where i or j is k_hat. 0 masks as -lambda does."""
    chain = task(lags, 24)
    i, j = index(24)
    d = lags[1] - lags[0]
    in_period = (i >= j) & ((i - j) % (2 * d) < d)
    for first, off, holds in (
        (lags[1], 0.0, False),
        (lags[1], -LAM, False),
        (lags[1] + 1, 0.0, True),
        (lags[1] + 1, -LAM, True),
    ):
        model = sih.construct(chain, target="two-lags")
        allowed = in_period & (i >= first) & (j >= first)
        model.block("2.1", "position", "position").copy_(torch.where(allowed, LAM, off))
        assert sih.verify(model, chain).ok is holds
