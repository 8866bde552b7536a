"""Sequences and numbers of the figure of two layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import sih
from sih.beyond.relative_positions import two_layers, two_layers_figure, two_layers_statements
from sih.beyond.relative_positions.equioscillation import least_error
from sih.beyond.relative_positions.two_layers import EXPERIMENT, TwoLayersConfig, family, letters
from sih.results.judging import Measured
from sih.training.runs.run_store import RunStore

SMALL = replace(
    EXPERIMENT.config, slots=(4, 8), evidence=(1.0,), heads=(1, 2), lengths=(40, 80), lags=(1, 2)
)


@pytest.mark.parametrize("lags", [(1, 2), (1, 2, 3), (2, 5), (3, 5, 7)])
def test_sequences_are_those_of_the_proof(lags: tuple[int, ...]) -> None:
    """Letters and their counts agree; a word moves two lags' log-odds by 2 chi, and no other's."""
    P = sih.random_transition_matrix(5, rng=3, law="uniform")
    task = sih.Task(P, lags, 160)
    a, b, _ = letters(P)
    reach = max(lags) + 1
    tokens = family(task, a, b, reach)
    assert tokens.shape[1] == 160
    counts = (tokens == b).sum(dim=1)
    assert ((tokens == a) | (tokens == b)).all()
    assert (counts == counts[0]).all()
    assert (tokens[:, -reach - 1 :] == tokens[0, -reach - 1 :]).all(), "the end has no bit"
    assert tokens[0, -lags[0]] == b
    own = sih.lag_log_likelihood(tokens, task)[:, -1]
    chi = (P[a, a] * P[b, b] / P[a, b] / P[b, a]).log()
    assert chi > 0
    moved = own - own[0]
    s = torch.arange(len(tokens), dtype=torch.float64)
    wanted = torch.stack(
        [chi * s if k == lags[0] else -chi * s if k == lags[1] else 0 * s for k in lags], dim=1
    )
    difference = moved - wanted
    assert (difference - difference[:, :1]).abs().max() < 1e-9


def test_every_number_is_a_least_error() -> None:
    data = two_layers.compute(SMALL, RunStore())
    assert {x.slots for x in data.weights} == {4, 8}
    assert all(0 < x.lower <= x.upper for x in (*data.weights, *data.probabilities))
    of = {(x.slots, x.heads): x.lower for x in data.weights}
    f = 1 / (1 + torch.exp(-(torch.arange(9).double() - 4.3)))
    assert of[8, 2] == pytest.approx(least_error(f, 2).level)
    assert of[8, 1] > of[8, 2]
    assert of[8, 1] > of[4, 1]
    assert (4, 2) not in of, "5 points are interpolated by degree 2"


def test_a_constant_readout_errs_by_more() -> None:
    """Against the sequences themselves: the best constant and the best line in s err by more."""
    data = two_layers.compute(SMALL, RunStore())
    P = sih.random_transition_matrix(5, rng=SMALL.rng(), law="uniform")
    for length in SMALL.lengths:
        task = sih.Task(P, SMALL.lags, length)
        law = sih.bma(family(task, *data.states, SMALL.reach), task)[:, -1, data.token]
        one = next(x.lower for x in data.probabilities if (x.length, x.heads) == (length, 1))
        s = torch.arange(len(law), dtype=torch.float64)
        line = torch.stack([torch.ones_like(s), s], dim=1)
        fit = line @ torch.linalg.lstsq(line, law[:, None]).solution
        assert one <= (fit[:, 0] - law).abs().max().item()
        assert one <= (law.max() - law.min()).item() / 2


def test_figure_and_table_show_every_case() -> None:
    data = two_layers.compute(SMALL, RunStore())
    rows = two_layers_figure.table(data)
    assert rows[0] == ["", "slots", "1 head", "2 heads"]
    assert len(rows) == 1 + 2 + 2
    assert len(two_layers_figure.draw(data).axes) == 2
    assert EXPERIMENT.beyond


def test_the_statement_is_judged_by_the_longest_sequences() -> None:
    config = replace(TwoLayersConfig(), slots=(8,), evidence=(1.0,), lengths=(64, 512))
    data = two_layers.compute(config, RunStore())
    (found,) = two_layers_statements.TWO_LAYERS.measure(data)
    assert found.value == pytest.approx(0.011, abs=0.001)
    rule = two_layers_statements.TWO_LAYERS.rule
    assert rule.verdict(found) == "holds"
    assert rule.verdict(Measured(0.004)) == "does not hold"
