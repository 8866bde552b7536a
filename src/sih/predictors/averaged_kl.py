r"""KL to the true distribution, averaged exactly over the hidden variables.

At position i of a sequence made by lag k the next token has the distribution
$p_k = P_{s_{i-k+1},\,\cdot}$. Its KL to a prediction q is a function of k and of the
tokens so far. So its expectation is that of

$$\sum_k \mathbb{P}(k \mid X_{\le i})\, D_{KL}(p_k \,\|\, q),$$

the mean over the lag, given the tokens up to i (Rao and Blackwell). The variance at a
position is never larger. With $m = \sum_k \mathbb{P}(k \mid X_{\le i})\, p_k$, Bayesian
model averaging, it is a sum of two parts. Only the first depends on the prediction:

$$D_{KL}(m \,\|\, q) + \sum_k \mathbb{P}(k \mid X_{\le i}) \sum_b p_k(b) \log p_k(b) - \sum_b m(b) \log m(b).$$

Where the lag switches, k is the lag of the next token. Where the matrix is unknown, the
inner sum is averaged over it, too. For a Dirichlet($a$) row it is
$\sum_b \frac{a_b}{a_0} (\psi(a_b + 1) - \psi(a_0 + 1))$ with $a_0 = \sum_b a_b$.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.types import Tokens
from sih.predictors.evidence import check_states, posterior_of
from sih.predictors.metrics import check_law, divergence
from sih.task import CausalTask, CountLaws, Laws


@dataclass(frozen=True, eq=False)
class ExactBayes:
    """The best prediction for given tokens, and its averaged KL, a lower bound."""

    best: Float[Tensor, "batch time state"]
    least: Float[Tensor, "batch time"]

    def kl(self, prediction: Float[Tensor, "batch time state"]) -> Float[Tensor, "batch time"]:
        """Return the averaged KL of a prediction at every position, in nats."""
        checked = check_law("prediction", prediction, tuple(self.best.shape))
        return self.least + divergence(self.best, checked)


def averaged_kl(
    prediction: Float[Tensor, "batch time state"], tokens: Tokens, task: CausalTask
) -> Float[Tensor, "batch time"]:
    """Return the KL to the true distribution, averaged over the lag.

    The average is over the posterior, given the tokens so far. Over sequences its
    expectation is that of `sih.kl_to_truth`, and its variance is no larger.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=64)
    >>> batch = sih.sample(task, size=1000, rng=0)
    >>> law = sih.stationary_law(batch.tokens, task)
    >>> plain, averaged = sih.kl_to_truth(law, batch, task), averaged_kl(law, batch.tokens, task)
    >>> [round(kl[:, 8].mean().item(), 2) for kl in (plain, averaged)]
    [0.07, 0.07]
    >>> bool(averaged[:, 8].var() < plain[:, 8].var())
    True
    """
    return exact_bayes(tokens, task).kl(prediction)


def exact_bayes(tokens: Tokens, task: CausalTask) -> ExactBayes:
    """Return the best prediction for tokens, for `averaged_kl` of any other."""
    tokens = check_states(tokens, task)
    laws = task.laws(tokens)
    weights = posterior_of(laws, task)
    best = laws.mixture(weights)
    certainty = (weights * _negative_entropies(laws, tokens, task)).sum(dim=-1)
    return ExactBayes(best, certainty - torch.xlogy(best, best).sum(dim=-1))


def _negative_entropies(
    laws: Laws, tokens: Int[Tensor, "batch time"], task: CausalTask
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Return the expectation of $\sum_b p(b) \log p(b)$ for each hypothesis.

    Here p is the true distribution of the next token.
    """
    if isinstance(laws, CountLaws):
        return _of_unknown_rows(laws, task)
    found = []
    for index in range(len(task.hypotheses)):
        alone = torch.zeros(
            (*tokens.shape, len(task.hypotheses)), dtype=torch.float64, device=tokens.device
        )
        alone[..., index] = 1.0
        law = laws.mixture(alone)
        found.append(torch.xlogy(law, law).sum(dim=-1))
    return torch.stack(found, dim=-1)


def _of_unknown_rows(laws: CountLaws, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    """Return the same expectation for an unknown matrix.

    Its rows have Dirichlet distributions, with the transitions seen added to the
    parameters.
    """
    known = torch.xlogy(task.initial, task.initial).sum().to(laws.tokens.device)
    found = known.repeat(*laws.tokens.shape, len(laws.lags))
    first = laws.lags[-1] - 1
    for index, (counts, totals) in enumerate(zip(laws.counts, laws.totals, strict=True)):
        a = counts.double() + laws.concentration
        total = totals[..., None] + laws.num_states * laws.concentration
        expected = a / total * (torch.digamma(a + 1) - torch.digamma(total + 1))
        found[:, first:, index] = expected.sum(dim=-1)
    return found
