"""The part of a training configuration that says which task is learned."""

from dataclasses import dataclass

import torch

from sih.checks import FieldError, check_sizes
from sih.markov import as_transition_matrix, random_transition_matrix
from sih.task import Task, check_lags

LARGE = 256
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TaskConfig:
    """Says which task is learned. The defaults are the paper's.

    The matrix is drawn with Dirichlet(`concentration`) rows from `matrix_seed`, or given.
    """

    lags: tuple[int, ...] = (1, 2, 3)
    """the lags a sequence may have, increasing."""
    states: int = 5
    """number of states."""
    length: int = 128
    """tokens in a sequence."""
    lag_prior: tuple[float, ...] | None = None
    """the chance of each lag (all the same unless given)."""
    matrix: Matrix | None = None
    """a transition matrix, .npy or .csv, instead of a random one."""
    matrix_seed: int = 0
    """of a random matrix."""
    concentration: float = 1.0
    """of the Dirichlet rows of a random matrix."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lags", check_lags(self.lags))
        check_sizes(states=self.states, length=self.length)
        check_seed("matrix_seed", self.matrix_seed)
        if self.matrix is not None:
            P = as_transition_matrix(self.matrix)
            object.__setattr__(self, "matrix", tuple(tuple(row) for row in P.tolist()))
            if P.shape[0] != self.states:
                message = f"states={self.states} does not fit the matrix, which has {P.shape[0]} states"
                raise FieldError("states", message)
        self.build() if self.states <= LARGE else self.outline()  # a large matrix is checked when it is made

    def outline(self) -> Task:
        """Make a task of these lags, length and prior with a matrix of 2 states, whatever it would take to draw P."""
        return Task([[0.5, 0.5], [0.5, 0.5]], self.lags, self.length, self.lag_prior)

    def build(self) -> Task:
        """Make the task."""
        if self.matrix is not None:
            return Task(self.matrix, self.lags, self.length, self.lag_prior)
        rng = torch.Generator().manual_seed(self.matrix_seed)
        P = random_transition_matrix(self.states, rng=rng, concentration=self.concentration)
        return Task(P, self.lags, self.length, self.lag_prior)


def check_seed(name: str, seed: int) -> None:
    """Raise a FieldError unless the seed is one that torch's generators take."""
    if not 0 <= seed < 2**62:
        raise FieldError(name, f"{name} is a whole number from 0 to 2**62 - 1; got {seed!r}")
