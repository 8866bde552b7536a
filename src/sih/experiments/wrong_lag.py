r"""How often the wrong lag is picked against the length of the context: ML, the paper's estimator, one head of it.

Measured, with error bars, beside what large deviations predict without sampling (`sih.theory.rates`). What follows from
Claim 1 is that all three rates fall exponentially; the exponents say at what cost (paper, Secs. 5.3 and 5.4).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sih.evidence import log_probabilities, normalised_probabilities
from sih.results.experiment import Experiment, Rows, Seeded
from sih.runs.run_store import RunStore
from sih.stats import estimate
from sih.task import Batch, Task, sample
from sih.theory.monte_carlo import random_matrices
from sih.theory.rates import SCORES, Score, error_exponent, lead, overtaking_probabilities

CAPTION = (
    "Probability of picking the wrong lag against the number of transitions seen, for maximum likelihood, the paper's "
    "estimator and a single head of it. Points are measured, with standard errors over blocks of sequences; lines are "
    "computed without sampling (saddle point), and I is the exact exponent in nats a transition. No models are "
    "trained."
)


CHUNK = 1000
"""Sequences at a time, which stay in the cache."""


@dataclass(frozen=True)
class WrongLagConfig(Seeded):
    num_states: int = 5
    lags: tuple[int, ...] = (1, 2, 3)
    length: int = 99
    blocks: int = 20
    sequences: int = 20_000
    """A block; the exponent is fitted in each block, and their spread is its error bar."""


@dataclass(frozen=True)
class WrongLagRates:
    """Holds rates of the wrong lag after `transitions`, by the rule that picks, measured and predicted."""

    config: WrongLagConfig
    transitions: list[int]
    measured: dict[str, list[float]]
    measured_error: dict[str, list[float]]
    predicted: dict[str, list[float]]
    exponent: dict[str, float]
    fitted: dict[str, float]
    fitted_error: dict[str, float]


def compute(config: WrongLagConfig, store: RunStore) -> WrongLagRates:
    """Count wrong picks of each rule on the same sequences, and predict their rates without sampling."""
    P = random_matrices(config.num_states, 1, seed=config.seed)[0]
    task = Task(P, config.lags, config.length)
    rng = torch.Generator().manual_seed(config.seed)
    every = len(config.lags)
    transitions = list(range(every, config.length - task.max_lag + 1, every))
    exponents: dict[str, float] = {score: error_exponent(task, score) for score in SCORES}
    expected: dict[str, list[float]] = {
        score: predicted(task, score, transitions) for score in SCORES
    }
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
    fits = {
        score: _fit(torch.tensor(transitions), found, config.sequences)
        for score, found in blocks.items()
    }
    return WrongLagRates(
        config,
        transitions,
        {score: rate.mean.tolist() for score, rate in rates.items()},
        {score: rate.error.tolist() for score, rate in rates.items()},
        expected,
        exponents,
        {score: fit[0] for score, fit in fits.items()},
        {score: fit[1] for score, fit in fits.items()},
    )


def wrong_picks(
    batch: Batch, task: Task, after: Int[Tensor, " n"] | slice = slice(None)
) -> dict[Score, Bool[Tensor, "batch n"]]:
    """Say by rule whether another lag than the true one leads after these transitions (of ties, the smallest does)."""
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
        # Scores are sums of a few different numbers, so ties are real, and rounding must not decide them.
        leads = (seen := total[:, after]) >= seen.amax(dim=-1, keepdim=True) - 1e-9
        found[score] = (leads & smaller).any(dim=-1) | ~(leads & own).any(dim=-1)
    return found


def predicted(task: Task, score: Score, transitions: list[int]) -> list[float]:
    """Sum the probabilities that each rival overtakes (a union bound), averaged over true lags."""
    pairs = [(k, r) for k in task.lags for r in task.lags if r != k]
    chances = torch.stack(
        [overtaking_probabilities(lead(task, k, r, score), transitions) for k, r in pairs]
    )
    found: list[float] = (chances.sum(dim=0) / len(task.lags)).clamp_max(1.0).tolist()
    return found


def table(data: WrongLagRates) -> Rows:
    """Make one row for each rule: the exact exponent, and the one fitted to what was measured."""
    rows = [["rule", "exponent", "fitted to the measured rate"]]
    for score in SCORES:
        fitted = f"{data.fitted[score]:.4f} ± {data.fitted_error[score]:.4f}"
        rows.append([score, f"{data.exponent[score]:.4f}", fitted])
    return rows


def _fit(transitions: Tensor, rates: Tensor, sequences: int) -> tuple[float, float]:
    r"""Fit the exponent I, and its error over blocks, by least squares over the later half that is usable.

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


EXPERIMENT = Experiment("wrong_lag", CAPTION, WrongLagConfig(), WrongLagRates, compute, table=table)
