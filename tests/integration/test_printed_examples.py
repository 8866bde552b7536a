"""The matrices the paper prints, entry by entry, against the blocks that `construct` writes.

What the paper prints wrongly is in test_errata.py.
"""

from __future__ import annotations

import pytest
import torch
from support.printed_matrices import (
    A1_123,
    A2_13,
    A2_123,
    A2_134,
    A3_123,
    A3_134,
    B_13,
    B_123,
    B_134,
    B_TWO,
)

import sih
from sih.paper.errata import A3_13, BETA, LAM, printed, task


def test_contiguous_lags_mask_form() -> None:
    model = sih.construct(task((1, 2, 3), 10), third="mask", lam=LAM, beta=BETA)
    assert torch.equal(model.block("1.1", "position", "position"), A1_123)
    for head, A in enumerate(A2_123, 1):
        assert torch.equal(model.block(f"2.{head}", "position", "position"), A)
        assert torch.equal(
            model.block("3.1", f"2.{head}/1.1/position", f"2.{head}/position"), B_123
        )
    assert torch.equal(model.block("3.1", "position", "position"), A3_123)
    log_P = task((1, 2, 3), 10).P.log()
    assert torch.equal(model.block("1.1", "token", "token"), log_P.T)
    assert torch.equal(model.readout_block("3.1/token"), task((1, 2, 3), 10).P.T)


def test_contiguous_lags_nothing_else_is_set() -> None:
    model = sih.construct(task((1, 2, 3), 10), third="mask", lam=LAM, beta=BETA)
    named = {
        ("1.1", "token", "token"),
        ("1.1", "position", "position"),
        ("3.1", "position", "position"),
    }
    for head in "123":
        named |= {
            (f"2.{head}", "position", "position"),
            ("3.1", f"2.{head}/1.1/position", f"2.{head}/position"),
        }
    for name, query, key in named:
        model.block(name, query, key).zero_()
    model.readout_block("3.1/token").zero_()
    assert all((weight == 0).all() for weight in model.parameters())


def test_contiguous_lags_position_form() -> None:
    """App. "Alternative third layer": the first head's B is the printed matrix."""
    model = sih.construct(task((1, 2, 3), 10), third="position", lam=LAM, beta=BETA)
    assert torch.equal(model.block("3.1", "2.1/1.1/position", "position"), B_123)
    assert torch.equal(model.block("3.1", "position", "position"), A3_123)


def test_lags_1_3() -> None:
    model = sih.construct(task((1, 3), 10), lam=LAM, beta=BETA)
    for head, A in enumerate(A2_13, 1):
        assert torch.equal(model.block(f"2.{head}", "position", "position"), A)
    assert torch.equal(model.block("3.1", "2.1/1.1/position", "position"), B_13)
    ours = model.block("3.1", "position", "position")
    assert torch.equal(
        ours[2:], A3_13[2:]
    )  # the first max_lag - 1 rows are drawn empty and not used


def test_lags_1_3_4() -> None:
    model = sih.construct(task((1, 3, 4), 12), third="position", lam=LAM, beta=BETA)
    for head, A in enumerate(A2_134, 1):
        rows = slice(
            0, 11 if head == 4 else 12
        )  # the last row of head 4 lacks an entry: test_errata.py
        assert torch.equal(model.block(f"2.{head}", "position", "position")[rows], A[rows])
    assert torch.equal(model.block("3.1", "2.1/1.1/position", "position"), B_134)
    assert torch.equal(model.block("3.1", "position", "position")[3:11], A3_134[3:])


def test_two_lags_single_head() -> None:
    model = sih.construct(task((1, 3), 10), target="two-lags", lam=LAM, beta=BETA)
    assert torch.equal(model.block("2.1", "position", "position"), A2_13[0])
    assert torch.equal(model.block("3.1", "position", "2.1/1.1/position"), B_TWO)
    assert torch.equal(model.block("3.1", "position", "position")[2:], A3_13[2:])


@pytest.mark.parametrize(("query", "key", "lag"), [(9, 7, 3), (9, 8, 2), (9, 9, 1)])
def test_the_worked_product_of_the_third_layer(query: int, key: int, lag: int) -> None:
    """The paper's example: p-hat_10 B m-hat_8 = beta/3 (p~_{4,3} + p~_{7,3} + p~_{10,3}); its neighbours too."""
    chain = task((1, 2, 3), 10)
    model = sih.construct(chain, third="mask", beta=BETA)
    tokens = sih.sample(chain, 1, rng=torch.Generator().manual_seed(1)).tokens
    trace = model.trace(tokens)
    content = trace.stream("2.1/1.1/position")[0, query]
    mask = trace.stream("2.1/position")[0, key]
    found = content @ model.block("3.1", "2.1/1.1/position", "2.1/position") @ mask
    row, P = tokens[0].tolist(), chain.P.tolist()
    total = 0.0
    for n in (3, 6, 9):
        p = [P[row[n - k]][row[n]] for k in (1, 2, 3)]
        total += p[lag - 1] / sum(p)
    assert found.item() == pytest.approx(BETA / 3 * total, abs=1e-9)


def test_signs_stand_for_the_strengths() -> None:
    assert printed("+- 01 m0").tolist() == [[LAM, -LAM], [0, BETA], [-BETA, 0]]


def test_the_examples_of_section_5_by_their_formulas() -> None:
    """A^(1): +lambda at i - j in {1, 2, 3}. A^(2,h): at (i - j) mod 3 = h - 1 for i >= j > 3. Both count from 1."""
    i, j = torch.arange(1, 11)[:, None], torch.arange(1, 11)[None, :]
    assert torch.equal(A1_123 > 0, (i - j >= 1) & (i - j <= 3))
    for head, matrix in enumerate(A2_123):
        assert torch.equal(matrix > 0, ((i - j) % 3 == head) & (i >= j) & (j > 3))


def test_the_task_to_try_them_on_is_the_same_every_time() -> None:
    assert torch.equal(task((1, 3), 12).P, task((1, 2), 40).P)
    assert (task((1, 3), 12).lags, task((1, 3), 12).length) == ((1, 3), 12)
