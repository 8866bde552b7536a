"""Transition matrices: checks, stationary distributions, random draws and files.

A transition matrix `P` is a row-stochastic float64 tensor, where `P[i, j]` is the
probability of going from i to j. All chains are irreducible and aperiodic, as the paper
requires (Sec. 4). `RANDOM` lists the distributions of random matrices: an entry added
there can be chosen in every command and on the page.
"""

import inspect
import math
import reprlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sih.base.errors import (
    FieldError,
    check_choice,
    check_memory,
    check_number,
    check_path,
    check_positive,
    check_sizes,
    generator,
)
from sih.base.files import read_table
from sih.base.types import Seed

ROW_SUM_TOLERANCE = 1e-6
CONCENTRATION = "a positive number, e.g. 1.0"
MatrixLike = Tensor | np.ndarray | Sequence[Any]
"""Anything that can become a transition matrix: a tensor, an array, nested lists."""


def as_transition_matrix(value: MatrixLike) -> Float[Tensor, "state state"]:
    """Return `value` as a checked float64 transition matrix.

    It must be square, finite, non-negative, irreducible and aperiodic, with rows that
    sum to 1 within 1e-6. The rows are then divided by their sums, so that they sum to 1
    exactly.

    Args:
        value: a tensor, an array or nested lists, of shape (state, state).

    Returns:
        The matrix, (state, state). A ValueError names the fault of an invalid one.

    >>> as_transition_matrix([[0.5, 0.5], [1.0, 0.0]])
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]], dtype=torch.float64)
    """
    P = as_squares(value)
    if P.ndim != 2:
        raise ValueError(
            f"one transition matrix is asked for; got a table of shape {tuple(P.shape)}"
        )
    if not torch.isfinite(P).all():
        i, j = (~torch.isfinite(P)).nonzero()[0].tolist()
        raise ValueError(
            f"a transition matrix holds finite numbers; entry ({i}, {j}) is {P[i, j].item()}"
        )
    if (P < 0).any():
        i, j = (P < 0).nonzero()[0].tolist()
        raise ValueError(f"probabilities are not negative; entry ({i}, {j}) is {P[i, j].item():g}")
    sums = P.sum(dim=1, keepdim=True)
    worst = int((sums - 1).abs().argmax())
    if abs(sums[worst].item() - 1) > ROW_SUM_TOLERANCE:
        raise ValueError(
            f"every row of a transition matrix sums to 1; row {worst} sums to {sums[worst].item():.9g}"
        )
    check_ergodic(P)
    return P / sums


def as_squares(value: MatrixLike) -> Float[Tensor, "*matrix state state"]:
    """Return one square table of numbers, or many, in float64.

    Raises a ValueError otherwise.
    """
    try:
        P = torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"a transition matrix is a square table of numbers like [[0.5, 0.5], [1.0, 0.0]]; got {reprlib.repr(value)}"
        ) from error
    if P.ndim < 2 or P.shape[-2] != P.shape[-1] or P.shape[-1] < 2 or P.numel() == 0:
        raise ValueError(
            "a transition matrix is square with at least 2 states, e.g. [[0.5, 0.5], [1.0, 0.0]]; "
            f"got shape {tuple(P.shape)}"
        )
    return P


def check_ergodic(P: Float[Tensor, "state state"]) -> None:
    """Raise a ValueError unless the chain is irreducible and aperiodic.

    The message names the states at fault.
    """
    edges = P > 0
    steps = _steps_from_first(edges)
    for count, fault in (
        (steps, "never reaches"),
        (_steps_from_first(edges.T), "is never reached from"),
    ):
        if (count < 0).any():
            raise ValueError(
                f"the chain must be irreducible: state 0 {fault} {_states(count < 0)}; "
                "give every state a path to every other"
            )
    # The period divides the length of every cycle, and steps[i] + 1 - steps[j] for each edge
    # i -> j. It is the greatest common divisor of these numbers.
    source, target = edges.nonzero(as_tuple=True)
    period = math.gcd(*(steps[source] + 1 - steps[target]).unique().tolist())
    if period != 1:
        classes = ", then ".join(_states(steps % period == c) for c in range(period))
        raise ValueError(
            f"the chain must be aperiodic: it has period {period}, going round {classes}; "
            "a self-loop, say, would break the cycle"
        )


def stationary_distribution(P: MatrixLike) -> Float[Tensor, "*matrix state"]:
    r"""Return the solution of $\pi^\top P = \pi^\top$, $\sum_s \pi_s = 1$, for each
    matrix.

    Grassmann-Taksar-Heyman elimination is Gaussian elimination on the off-diagonal
    entries without subtractions. Every entry of $\pi$ is right to nearly the last
    digit, however slowly the chain mixes.

    Args:
        P: one transition matrix, (state, state), or several, (matrix, state, state).

    Returns:
        The stationary distribution of each matrix, (state,) or (matrix, state), in
        float64.

    >>> stationary_distribution([[0.9, 0.1], [0.5, 0.5]])
    tensor([0.8333, 0.1667], dtype=torch.float64)
    """
    A = as_squares(P).clone()
    size = A.shape[-1]
    # Censor the chain: remove state n, and redirect transitions into n to n's successors.
    for n in range(size - 1, 0, -1):
        A[..., :n, n] /= A[..., n, :n].sum(dim=-1, keepdim=True)
        A[..., :n, :n] += A[..., :n, n, None] * A[..., n, None, :n]
    pi = torch.ones(A.shape[:-1], dtype=torch.float64, device=A.device)
    for n in range(1, size):
        pi[..., n] = (pi[..., :n] * A[..., :n, n]).sum(dim=-1)
        if n % 16 == 0:  # unnormalised weights may overflow; only ratios matter
            pi[..., : n + 1] /= pi[..., : n + 1].sum(dim=-1, keepdim=True)
    return pi / pi.sum(dim=-1, keepdim=True)


def random_transition_matrix(
    num_states: int, *, rng: Seed, concentration: float = 1.0, law: str = "dirichlet"
) -> Float[Tensor, "state state"]:
    """Return a random transition matrix, by default with independent Dirichlet rows.

    Args:
        num_states: states of the chain.
        rng: a generator, or a seed.
        concentration: of the Dirichlet distribution. Rows are uniform on the simplex at
            1.0, and nearer to deterministic below.
        law: the distribution: "dirichlet", "uniform" (`random_uniform`),
            "doubly-stochastic", "sparse" or "near-periodic".

    Returns:
        The matrix, (state, state), in float64.

    >>> random_transition_matrix(2, rng=0)
    tensor([[0.9441, 0.0559],
            [0.6100, 0.3900]], dtype=torch.float64)
    """
    check_law(law, concentration)
    draw = RANDOM[law]
    if not has_concentration(law):
        return draw(num_states, rng=rng)
    return draw(num_states, rng=rng, concentration=concentration)


def _random_dirichlet(
    num_states: int, *, rng: Seed, concentration: float
) -> Float[Tensor, "state state"]:
    """Return a matrix with Dirichlet rows, redrawn until it is ergodic."""
    check_dirichlet(num_states, concentration)
    draw = _numpy_rng(rng)
    for _ in range(100):
        P = torch.softmax(_log_gamma_draws((num_states, num_states), concentration, draw), dim=-1)
        with suppress(ValueError):  # only if a tiny concentration makes entries underflow to 0
            check_ergodic(P)
            return P
    raise FieldError(
        "concentration",
        f"concentration={concentration:g} is too small for {num_states} states: 100 draws in a row were reducible or "
        "periodic in float64; try 0.05 or more",
    )


def random_uniform(num_states: int, *, rng: Seed) -> Float[Tensor, "state state"]:
    """Return a matrix of numbers uniform on [0, 1), each row divided by its sum.

    Its rows are nearer to each other than Dirichlet(1) rows, which are uniform on the
    simplex.

    Args:
        num_states: states of the chain.
        rng: a generator, or a seed.

    Returns:
        The matrix, (state, state), in float64.

    >>> random_uniform(2, rng=0)
    tensor([[0.5781, 0.4219],
            [0.3329, 0.6671]], dtype=torch.float64)
    """
    check_states(num_states)
    rng = generator(rng)
    numbers = torch.rand(
        num_states, num_states, dtype=torch.float64, generator=rng, device=rng.device
    ).cpu()
    P = numbers / numbers.sum(dim=-1, keepdim=True)
    check_ergodic(P)
    return P


def random_transition_matrices(
    count: int, num_states: int, *, rng: Seed, concentration: float = 1.0
) -> Float[Tensor, "matrix state state"]:
    """Return many matrices with Dirichlet rows, drawn at once.

    A tiny concentration can make some of them non-ergodic; these are not redrawn.
    """
    check_sizes(count=count)
    check_dirichlet(num_states, concentration)
    check_memory(4 * 8 * count * num_states**2, f"{count:,} matrices of {num_states:,} states")
    return torch.softmax(
        _log_gamma_draws((count, num_states, num_states), concentration, _numpy_rng(rng)), dim=-1
    )


def random_doubly_stochastic(
    num_states: int, *, rng: Seed, concentration: float = 1.0
) -> Float[Tensor, "state state"]:
    """Return a random matrix with rows and columns that sum to 1.

    Sinkhorn's iteration balances Dirichlet rows. The stationary distribution is
    uniform.

    Args:
        num_states: states of the chain.
        rng: a generator, or a seed.
        concentration: of the Dirichlet rows that are balanced, nearer to deterministic
            below 1.

    Returns:
        The matrix, (state, state), in float64.

    >>> stationary_distribution(random_doubly_stochastic(4, rng=0))
    tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    check_dirichlet(num_states, concentration)
    log_P = _log_gamma_draws((num_states, num_states), concentration, _numpy_rng(rng))
    for _ in range(20_000):
        log_P = log_P - log_P.logsumexp(dim=0, keepdim=True)
        row_sums = log_P.logsumexp(dim=1, keepdim=True)
        log_P = log_P - row_sums
        if row_sums.abs().max() < 1e-14:
            return as_transition_matrix(log_P.exp())
    raise FieldError(
        "concentration",
        f"concentration={concentration:g} is too small to balance {num_states} states; try 0.1 or more",
    )


def random_sparse(
    num_states: int, *, rng: Seed, nonzero: int = 2, concentration: float = 1.0
) -> Float[Tensor, "state state"]:
    """Return a random matrix with `nonzero` possible successors of each state.

    The probabilities among them are Dirichlet. A random cycle through all states makes
    the chain irreducible. A self-loop at one state, added where needed, makes it
    aperiodic.

    Args:
        num_states: states of the chain.
        rng: a generator, or a seed.
        nonzero: possible successors of a state.
        concentration: of the Dirichlet distribution of their probabilities.

    Returns:
        The matrix, (state, state), in float64.

    >>> (random_sparse(4, rng=0, nonzero=2) > 0).sum(dim=1)
    tensor([2, 2, 2, 2])
    """
    check_dirichlet(num_states, concentration)
    check_sizes(nonzero=nonzero)
    if not 1 <= nonzero <= num_states:
        raise FieldError(
            "nonzero",
            f"nonzero is the number of successors of a state, 1 to {num_states}; got {nonzero}",
        )
    draw = _numpy_rng(rng)
    support = np.zeros((num_states, num_states), dtype=bool)
    cycle = draw.permutation(num_states)
    support[cycle, np.roll(cycle, -1)] = True
    support[cycle[0], cycle[0]] = True
    for row in support:
        free = np.flatnonzero(~row)
        row[draw.permutation(free)[: max(0, nonzero - int(row.sum()))]] = True
    logits = _log_gamma_draws(support.shape, concentration, draw)
    # A lower bound keeps every successor possible, however small the concentration.
    P = torch.softmax(logits.masked_fill(~torch.from_numpy(support), -math.inf), dim=-1)
    P = torch.where(torch.from_numpy(support), P.clamp_min(1e-300), 0.0)
    return as_transition_matrix(P)


def random_near_periodic(
    num_states: int, *, rng: Seed, period: int = 2, noise: float = 0.05, concentration: float = 1.0
) -> Float[Tensor, "state state"]:
    """Return a random chain that goes round `period` groups of states, with rare jumps.

    With probability `noise` the chain jumps by a Dirichlet row instead.

    Args:
        num_states: states of the chain.
        rng: a generator, or a seed.
        period: groups of states.
        noise: the probability of a jump, in (0, 1].
        concentration: of the Dirichlet rows, nearer to deterministic below 1.

    Returns:
        The matrix, (state, state), in float64.

    >>> P = random_near_periodic(4, rng=0, noise=0.01)
    >>> bool((P @ P).diagonal().min() > 0.1), bool(P.diagonal().max() < 0.01)  # back after two steps, not after one
    (True, True)
    """
    check_dirichlet(num_states, concentration)
    check_sizes(period=period)
    check_number("noise", noise, 0, wanted="the probability of leaving the cycle, in (0, 1]")
    if not 2 <= period <= num_states:
        raise FieldError(
            "period", f"period is the number of groups of states, 2 to {num_states}; got {period}"
        )
    if not 0 < noise <= 1:
        raise FieldError(
            "noise", f"noise is the probability of leaving the cycle, in (0, 1]; got {noise:g}"
        )
    rng = generator(rng)
    group = torch.arange(num_states) % period
    onward = group[None, :] == (group[:, None] + 1) % period
    logits = _log_gamma_draws((num_states, num_states), concentration, _numpy_rng(rng))
    cyclic = torch.softmax(logits.masked_fill(~onward, -math.inf), dim=-1)
    return as_transition_matrix(
        (1 - noise) * cyclic
        + noise * random_transition_matrix(num_states, rng=rng, concentration=concentration)
    )


RANDOM: dict[str, Callable[..., Float[Tensor, "state state"]]] = {
    "dirichlet": _random_dirichlet,
    "uniform": random_uniform,
    "doubly-stochastic": random_doubly_stochastic,
    "sparse": random_sparse,
    "near-periodic": random_near_periodic,
}
"""Distributions of random matrices, by their names in commands and on the page.

Each is a function (num_states, rng=) -> P. One with a concentration also takes
`concentration=`.
"""


def has_concentration(law: str) -> bool:
    """Return whether this distribution of random matrices takes a concentration."""
    return "concentration" in inspect.signature(RANDOM[law]).parameters


def check_law(law: str, concentration: float = 1.0) -> None:
    """Raise a FieldError unless a distribution of matrices has this name.

    A concentration other than 1 is only allowed if the distribution takes one.
    """
    check_choice("law", law, tuple(RANDOM))
    if has_concentration(law):
        return
    check_positive("concentration", concentration, CONCENTRATION)
    if concentration != 1.0:
        raise FieldError(
            "concentration",
            f"the law {law} has no concentration: leave it out; got {concentration:g}",
        )


def load_transition_matrix(path: str | Path) -> Float[Tensor, "state state"]:
    """Return the transition matrix in a `.npy` or `.csv` file.

    Args:
        path: a `.npy` file, or a `.csv` file with one line per row.

    Returns:
        The matrix, (state, state), checked as in `as_transition_matrix`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "P.csv"
    ...     _ = path.write_text("0.9,0.1\\n0.5,0.5\\n")
    ...     load_transition_matrix(path)
    tensor([[0.9000, 0.1000],
            [0.5000, 0.5000]], dtype=torch.float64)
    """
    check_path(path)
    path = Path(path)
    if path.suffix not in (".npy", ".csv"):
        raise ValueError(f"a transition matrix is read from a .npy or .csv file; got {path}")
    value = read_table(path)
    try:
        return as_transition_matrix(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _steps_from_first(edges: Bool[Tensor, "state state"]) -> Tensor:
    """Return the fewest steps from state 0 to each state, -1 where there is no path."""
    steps = torch.full((edges.shape[0],), -1)
    frontier = torch.arange(edges.shape[0]) == 0
    step = 0
    while frontier.any():
        steps[frontier] = step
        frontier = edges[frontier].any(dim=0) & (steps < 0)
        step += 1
    return steps


def _numpy_rng(rng: Seed) -> np.random.Generator:
    """Return a NumPy generator seeded from torch's generator.

    NumPy has a public Gamma sampler that takes a generator; torch has none.
    """
    rng = generator(rng)
    return np.random.default_rng(
        torch.randint(2**32, (4,), generator=rng, device=rng.device).tolist()
    )


def _log_gamma_draws(
    shape: tuple[int, ...], shape_parameter: float, draw: np.random.Generator
) -> Float[Tensor, "..."]:
    """Return logarithms of Gamma(a, 1) draws.

    The identity log G_a = log G_{a+1} + (log U)/a has no underflow for small a.
    """
    boosted = np.log(draw.standard_gamma(shape_parameter + 1, shape))
    return torch.from_numpy(boosted + np.log1p(-draw.random(shape)) / shape_parameter)


def _states(which: Bool[Tensor, " state"]) -> str:
    indices = which.nonzero().flatten().tolist()
    named = ", ".join(map(str, indices[:10])) + (
        f", ... ({len(indices)} in all)" if len(indices) > 10 else ""
    )
    return ("state " if len(indices) == 1 else "states ") + named


def check_dirichlet(num_states: int, concentration: float) -> None:
    """Raise a FieldError unless matrices of this size can have Dirichlet rows."""
    check_states(num_states)
    check_positive("concentration", concentration, CONCENTRATION)


def check_states(num_states: int) -> None:
    """Raise a FieldError unless there are at least 2 states.

    A matrix of them must also fit into memory.
    """
    check_sizes(num_states=num_states)
    check_memory(6 * 8 * num_states**2, f"a matrix of {num_states:,} states")
    if num_states < 2:
        raise FieldError(
            "num_states", f"a chain has at least 2 states; got num_states={num_states}"
        )
