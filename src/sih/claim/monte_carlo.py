"""Monte Carlo check of Claim 1 (paper, App. E): as printed, and trimmed to the
variables involved.

Matrix number n and its sequences depend only on the seed and n. So a stopped check can
be resumed, and its values can be compared with exact ones.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_choice, check_sizes
from sih.base.files import read_arrays, reading, write_arrays
from sih.base.stats import Estimate, estimate
from sih.base.types import TransitionMatrix
from sih.claim.exact import chains
from sih.task import Task, check_lags, sample
from sih.task.matrices import check_law, random_transition_matrix, stationary_distribution

Form = Literal["printed", "trimmed"]

PAPER_LAGS = (1, 2, 7, 9, 10, 11, 13, 15, 16, 22, 26, 28)
"""The paper's draw of 12 lags between 1 and 30 (captions of its figures in App. E)."""


@dataclass(frozen=True)
class MonteCarlo:
    """Settings of the check: by default the paper's 1000 matrices, with 1000 sequences
    of length 1000 per lag.
    """

    num_states: int = 10
    matrices: int = 1000
    lags: tuple[int, ...] = PAPER_LAGS
    sequences: int = 1000
    length: int = 1000
    concentration: float = 1.0
    seed: int = 0
    form: Form = "trimmed"
    matrix_law: str = "dirichlet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lags", check_lags(self.lags))
        check_sizes(matrices=self.matrices, sequences=self.sequences)
        check_choice("form", self.form, ("printed", "trimmed"))
        check_law(self.matrix_law, self.concentration)
        if self.length <= self.lags[-1]:
            raise FieldError(
                "length",
                f"length must be above the largest lag, {self.lags[-1]}; got {self.length}",
            )


def random_matrices(
    num_states: int, matrices: int, *, seed: int, concentration: float = 1.0, law: str = "dirichlet"
) -> Float[Tensor, "matrix s s"]:
    """Return random transition matrices; number n depends only on the seed and n."""
    check_sizes(matrices=matrices)
    generators = [_generator(seed, n, 0) for n in range(matrices)]
    how: dict[str, Any] = {"concentration": concentration, "law": law}
    return torch.stack([random_transition_matrix(num_states, rng=g, **how) for g in generators])


def estimates(check: MonteCarlo, first: int = 0) -> Iterator[Estimate[Tensor]]:
    """Yield estimates of E[p_r / sum_l p_l], (true lag, lag), for each matrix from
    number `first` on.
    """
    for n in range(first, check.matrices):
        rng = _generator(check.seed, n, 0)
        how: dict[str, Any] = {"concentration": check.concentration, "law": check.matrix_law}
        P = random_transition_matrix(check.num_states, rng=rng, **how)
        rng = _generator(check.seed, n, 1)
        if check.form == "printed":
            yield printed(P, check.lags, sequences=check.sequences, length=check.length, rng=rng)
        else:
            yield trimmed(P, check.lags, samples=check.sequences, rng=rng)


def printed(
    P: TransitionMatrix, lags: tuple[int, ...], *, sequences: int, length: int, rng: torch.Generator
) -> Estimate[Tensor]:
    """Return the average over the last transition of whole sequences of each lag, as in
    the paper.

    The first k tokens of a lag-k sequence come from the stationary distribution, so it
    is stationary from the start.
    """
    back = length - 1 - torch.tensor(lags)
    windows = [sample(Task(P, (k,), length), sequences, rng=rng).tokens for k in lags]
    return _average(
        P, torch.stack([w[:, back] for w in windows]), torch.stack([w[:, -1] for w in windows])
    )


def trimmed(
    P: TransitionMatrix, lags: tuple[int, ...], *, samples: int, rng: torch.Generator
) -> Estimate[Tensor]:
    """Return the average over X_i and the X_{i-l} alone, drawn chain by chain from
    powers of P.
    """
    pi = stationary_distribution(P)
    powers: dict[int, Tensor] = {}

    def step(x: Int[Tensor, " sample"], power: int) -> Int[Tensor, " sample"]:
        if power not in powers:
            powers[power] = torch.linalg.matrix_power(P, power).cumsum(dim=-1)
        return _draw(powers[power][x], rng)

    windows, targets = [], []
    for k in lags:
        token = {}
        for chain in chains(lags, k):
            x = _draw(pi.cumsum(dim=-1).expand(samples, -1), rng)
            token[chain.lags[0]] = x
            for lag, power in zip(chain.lags[1:], chain.steps[1:], strict=True):
                token[lag] = x = step(x, power)
        windows.append(torch.stack([token[lag] for lag in lags], dim=-1))
        targets.append(step(token[k], 1))
    return _average(P, torch.stack(windows), torch.stack(targets))


def save_estimates(folder: Path, check: MonteCarlo, done: list[Estimate[Tensor]]) -> None:
    """Write estimates.npz: the settings, with means and standard errors of the finished
    matrices.
    """
    if done:
        mean, error = (
            torch.stack([getattr(e, name) for e in done]).numpy() for name in ("mean", "error")
        )
        experiment = json.dumps(asdict(check))
        write_arrays(
            folder / "estimates.npz", experiment=experiment, mean=mean, standard_error=error
        )


def load_estimates(folder: Path, check: MonteCarlo) -> list[Estimate[Tensor]]:
    """Return the part of this check that `save_estimates` wrote, if any. The number of
    matrices may have grown.
    """
    path = folder / "estimates.npz"
    if not path.exists():
        return []
    with reading(path, "holds no estimates"):
        arrays = read_arrays(path)
        found = json.loads(str(arrays["experiment"]))
        means, errors = torch.from_numpy(arrays["mean"]), torch.from_numpy(arrays["standard_error"])
    if _unusual(found) != _unusual(asdict(check)):
        raise ValueError(f"{path} holds another experiment, {found}; give another folder")
    return [Estimate(m, e) for m, e in zip(means, errors, strict=True)][: check.matrices]


def _unusual(experiment: dict[str, Any]) -> dict[str, Any]:
    """Return an experiment's settings that differ from the defaults as JSON, except the
    number of matrices.

    A file from before a field existed lacks it, and has its default.
    """
    usual = json.loads(json.dumps(asdict(MonteCarlo())))
    plain = json.loads(json.dumps(experiment))
    return {
        name: value
        for name, value in plain.items()
        if name != "matrices" and value != usual.get(name)
    }


def _average(
    P: TransitionMatrix, windows: Int[Tensor, "lag sample lag"], targets: Int[Tensor, "lag sample"]
) -> Estimate[Tensor]:
    p = P[windows, targets[..., None]]  # (true lag, sample, lag)
    return estimate(p / p.sum(dim=-1, keepdim=True), dim=1)


def _draw(cdf: Float[Tensor, "sample state"], rng: torch.Generator) -> Int[Tensor, " sample"]:
    """Return the first state with a cumulative probability above a uniform number,
    scaled since sums may miss 1.
    """
    uniform = torch.rand(cdf.shape[0], 1, dtype=torch.float64, generator=rng) * cdf[:, -1:]
    return (cdf <= uniform).sum(dim=-1)


def _generator(seed: int, number: int, purpose: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, number, purpose]).generate_state(2)
    return torch.Generator().manual_seed(int(state[0]) << 31 ^ int(state[1]))
