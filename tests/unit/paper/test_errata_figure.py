"""The proofs are in tests/integration/test_errata.py; here, that the figure shows them."""

from __future__ import annotations

import pytest
import torch
from support.pictures import same, through_file

import sih
from sih.paper import errata, errata_figure
from sih.training.runs.run_store import RunStore


@pytest.fixture(scope="module")
def data() -> errata.Errata:
    return errata.compute(errata.ErrataConfig(sequences=16), RunStore())


def test_printed_forms_fail_and_corrected_ones_hold(data: errata.Errata) -> None:
    assert sorted(erratum.number for erratum in data.errata) == [1, 2, 3, 4, 8, 9, 10, 11]
    for erratum in data.errata:
        assert max(erratum.printed_error) > 0.1
        assert max(erratum.corrected_error) < 1e-10
        assert not torch.equal(erratum.printed, erratum.corrected)
        assert erratum.first + len(erratum.printed_error) - 1 == len(erratum.printed)


def test_matrices_by_hand(data: errata.Errata) -> None:
    by_number = {erratum.number: erratum for erratum in data.errata}
    ninth = by_number[9].printed != by_number[9].corrected
    assert ninth.nonzero().tolist() == [[11, 4]]  # (12, 5), as the erratum says
    assert by_number[9].printed_error[:-1].tolist() == pytest.approx(
        [0.0] * (len(by_number[9].printed_error) - 1), abs=1e-10
    )
    fourth = by_number[4].corrected.tolist()
    assert [row[:4] for row in fourth[:4]] == [
        pytest.approx(row)
        for row in ([1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0, 0, 0, 1])
    ]
    assert by_number[1].corrected[0, :4].tolist() == [0, 1, 2, 3]  # j - i = h: head h, h = 1, 2, 3
    assert [row[0] for row in by_number[8].corrected[:5].tolist()] == [
        -1,
        1,
        -1,
        1,
        -1,
    ]  # lags 1 and 3 from token 1


def test_the_second_erratum_as_printed_and_as_corrected(data: errata.Errata) -> None:
    """((i - j - 1) mod 2d) < d and ((i - j + 1 - 2 kbar) mod 2d) < d for {2,5}: kbar = 2, d = 3, positions from 1."""
    (second,) = (erratum for erratum in data.errata if erratum.number == 2)
    for shown, shift in ((second.printed, -1), (second.corrected, 1 - 4)):
        for i, row in enumerate(shown.tolist(), 1):
            assert row == [
                0 if j >= i else 1 if (i - j + shift) % 6 < 3 else -1 for j in range(1, 21)
            ]


def test_the_failure_is_the_largest_total_variation_from_the_closed_form() -> None:
    chain = errata.task((1, 2), 9)
    model = sih.construct(chain, lam=errata.LAM, beta=errata.BETA)
    model.block("1.1", "position", "position").zero_()
    tokens = sih.sample(chain, 5, rng=2).tokens
    weights, laws, P = (
        sih.circuit_weights(tokens, chain, model.circuit).tolist(),
        model.predict(tokens),
        chain.P.tolist(),
    )
    expected = []
    for i in range(model.circuit.first_exact_position, 9):
        far = []
        for row, mine, law in zip(tokens.tolist(), weights, laws.tolist(), strict=True):
            wanted = [
                sum(w * P[row[i - k + 1]][s] for w, k in zip(mine[i], (1, 2), strict=True))
                for s in range(4)
            ]
            far.append(sum(abs(a - b) for a, b in zip(law[i], wanted, strict=True)) / 2)
        expected.append(max(far))
    assert max(expected) > 0.01
    assert errata.failure(model, tokens, chain).tolist() == pytest.approx(expected)


def test_the_figure_needs_only_the_file(data: errata.Errata) -> None:
    again = through_file(data)
    assert same(again, data)
    figure = errata_figure.draw(again)
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]
    assert [int(title.split(".")[0]) for title in titles] == [1, 2, 3, 4, 8, 9, 10, 11]
    assert len(errata_figure.table(again)) == 9
