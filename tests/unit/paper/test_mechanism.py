from __future__ import annotations

import pytest
import torch
from support.oracles_circuit import normalised
from support.pictures import check_drawn_from_file

import sih
from sih.attention.reference_circuit import sequence_of_lag
from sih.paper import mechanism, mechanism_figure
from sih.training.runs.run_store import RunStore


@pytest.mark.parametrize(("lags", "length"), [((1, 2, 3), 10), ((1, 3, 4), 14)])
def test_the_mechanism_against_the_definition(lags: tuple[int, ...], length: int) -> None:
    data = mechanism.compute(
        mechanism.MechanismConfig(lags=lags, length=length, true_lag=3), RunStore()
    )
    rng = torch.Generator().manual_seed(0)
    P = sih.random_transition_matrix(5, rng=rng)
    tokens = sequence_of_lag(sih.Task(P, lags, length), 3, rng=rng)[0].tolist()
    colours = sih.construct(sih.Task(P, lags, length)).circuit.head_of_offset
    seen = range(lags[-1], length)
    for token in seen:
        p = normalised(tokens, P.tolist(), list(lags), token)
        row = [0.0] * length
        for k, value in zip(lags, p, strict=True):
            row[token - k] = value
        assert data.stored[token].tolist() == pytest.approx(row, abs=1e-9)
    for head in range(len(data.gathered)):
        own = [token for token in seen if colours[(length - 1 - token) % len(colours)] == head]
        wanted = [0.0] * length
        source = [-1] * length
        for token in own:
            for k, value in zip(
                lags, normalised(tokens, P.tolist(), list(lags), token), strict=True
            ):
                wanted[token - k] += value / len(own)
                source[token - k] = token
        assert data.gathered[head].tolist() == pytest.approx(wanted, abs=1e-9)
        assert data.source[head].tolist() == source
        assert data.purity[head].tolist() == pytest.approx([1.0] * length)
    check_drawn_from_file(mechanism_figure.draw, data)
