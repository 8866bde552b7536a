r"""The rate of picking the wrong lag against the length of the context: ML, the paper's
estimator, one head of it.

Measured rates have error bars. Large deviations predict them without sampling
(`sih.claim.rates`). By Claim 1 all three rates fall exponentially; the exponents tell
how fast (paper, Secs. 5.3 and 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.base.record import Size
from sih.base.stats import estimate
from sih.claim.monte_carlo import random_matrices
from sih.claim.rates import SCORES, Score, error_exponent, lead, overtaking_probabilities
from sih.predictors.evidence import log_probabilities, normalised_probabilities
from sih.results.experiment import Experiment, Lags, MatrixLaw, Seeded, Several, States
from sih.task import Batch, Task, sample

CHUNK = 1000
"""Sequences processed at once, which fit the cache."""


@dataclass(frozen=True)
class WrongLagConfig(Seeded):
    num_states: States = 5
    lags: Lags = (1, 2, 3)
    length: Size = 99
    blocks: Several = 20
    """Number of independent blocks of sequences."""
    sequences: Size = 20_000
    """Sequences per block; the exponent is fitted in each block, and their spread is
    its error bar."""
    matrix_law: MatrixLaw = "dirichlet"


@dataclass(frozen=True, eq=False)
class WrongLagRates:
    """Rates of the wrong lag after `transitions`, by picking rule, measured and
    predicted.
    """

    config: WrongLagConfig
    transitions: Int[Tensor, " n"]
    measured: dict[str, Float[Tensor, " n"]]
    measured_error: dict[str, Float[Tensor, " n"]]
    predicted: dict[str, Float[Tensor, " n"]]
    exponent: dict[str, float]
    fitted: dict[str, float]
    fitted_error: dict[str, float]


def compute(config: WrongLagConfig, store: object) -> WrongLagRates:
    """Return the rates of wrong picks of each rule on the same sequences, and their
    predictions.
    """
    P = random_matrices(config.num_states, 1, seed=config.seed, law=config.matrix_law)[0]
    task = Task(P, config.lags, config.length)
    rng = config.rng()
    every = len(config.lags)
    transitions = list(range(every, config.length - task.max_lag + 1, every))
    exponents: dict[str, float] = {score: error_exponent(task, score) for score in SCORES}
    expected: dict[str, Tensor] = {score: predicted(task, score, transitions) for score in SCORES}
    wrong: dict[str, list[Tensor]] = {score: [] for score in SCORES}
    for _ in range(config.blocks):
        batch = sample(task, config.sequences, rng=rng)
        counts = dict.fromkeys(SCORES, torch.zeros(len(transitions), dtype=torch.float64))
        for tokens, lags in zip(batch.tokens.split(CHUNK), batch.lags.split(CHUNK), strict=True):
            picks = wrong_picks(Batch(tokens, lags), task, torch.tensor(transitions) - 1)
            counts = {score: counts[score] + picks[score].sum(dim=0) for score in SCORES}
        for score in SCORES:
            wrong[score].append(counts[score] / config.sequences)
    blocks = {score: torch.stack(found) for score, found in wrong.items()}
    rates = {score: estimate(found) for score, found in blocks.items()}
    counted = torch.tensor(transitions)
    fits = {score: _fit(counted, found, config.sequences) for score, found in blocks.items()}
    return WrongLagRates(
        config=config,
        transitions=counted,
        measured={score: rate.mean for score, rate in rates.items()},
        measured_error={score: rate.error for score, rate in rates.items()},
        predicted=expected,
        exponent=exponents,
        fitted={score: exponent for score, (exponent, _) in fits.items()},
        fitted_error={score: error for score, (_, error) in fits.items()},
    )


def wrong_picks(
    batch: Batch, task: Task, after: Int[Tensor, " n"] | slice = slice(None)
) -> dict[Score, Bool[Tensor, "batch n"]]:
    """Return by rule whether a wrong lag leads after these transitions (the smallest
    wins ties).
    """
    log_p, p_norm = (
        f(batch.tokens, task)[:, task.max_lag :]
        for f in (log_probabilities, normalised_probabilities)
    )
    alone = torch.empty_like(
        p_norm
    )  # one head: at every position, this transition and every K-th before it
    for first in range(every := len(task.lags)):
        alone[:, first::every] = p_norm[:, first::every].cumsum(dim=1)
    totals: dict[Score, Tensor] = {
        "ML": log_p.cumsum(dim=1),
        "estimator": p_norm.cumsum(dim=1),
        "single head": alone,
    }
    own, smaller = (
        compare(torch.tensor(task.lags), batch.lags[:, None])[:, None]
        for compare in (torch.eq, torch.lt)
    )
    found: dict[Score, Tensor] = {}
    for score, total in totals.items():
        # Scores are sums of a few different numbers, so ties occur, and rounding must not decide them.
        leads = (seen := total[:, after]) >= seen.amax(dim=-1, keepdim=True) - 1e-9
        found[score] = (leads & smaller).any(dim=-1) | ~(leads & own).any(dim=-1)
    return found


def predicted(task: Task, score: Score, transitions: list[int]) -> Float[Tensor, " n"]:
    """Return the sum of the rivals' overtaking probabilities (a union bound), averaged
    over true lags.
    """
    pairs = [(k, r) for k in task.lags for r in task.lags if r != k]
    chances = torch.stack(
        [overtaking_probabilities(lead(task, k, r, score), transitions) for k, r in pairs]
    )
    return (chances.sum(dim=0) / len(task.lags)).clamp_max(1.0)


def _fit(transitions: Tensor, rates: Tensor, sequences: int) -> tuple[float, float]:
    r"""Return the exponent I, with its error over blocks, by least squares over the
    later usable half.

    $-\log(\Pr \sqrt n)$ against n has slope I in the limit.
    """
    mean = rates.mean(dim=0)
    usable = (mean * sequences >= 10).nonzero().flatten()
    late = usable[len(usable) // 2 :]
    n = transitions[late].to(torch.float64)
    centred = n - n.mean()
    slopes = (
        -((rates[:, late].clamp_min(0.1 / sequences) * n.sqrt()).log() * centred).sum(-1)
        / centred.square().sum()
    )
    whole = -((mean[late] * n.sqrt()).log() * centred).sum() / centred.square().sum()
    return whole.item(), estimate(slopes).error.item()


EXPERIMENT = Experiment("wrong_lag", WrongLagConfig(), WrongLagRates, compute)
