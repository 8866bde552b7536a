"""The part of a training configuration that says which task is learned."""

from dataclasses import dataclass

from sih.checks import (
    FieldError,
    check_choice,
    check_kind,
    check_sizes,
    described,
    generator,
    is_whole,
    plain_float,
)
from sih.markov import (
    RANDOM,
    as_transition_matrix,
    check_dirichlet,
    check_law,
    random_transition_matrix,
)
from sih.task import FreshTask, LagTask, SwitchingTask, Task, check_lags, check_prior, check_rate

LARGE = 256
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TaskConfig:
    """Says which task is learned. The defaults are the paper's.

    The matrix is drawn by `matrix_law` from `matrix_seed`, or given, or with `fresh` drawn anew for each sequence, with
    Dirichlet(`concentration`) rows. With a `switch_rate` the lag does not stay for a whole sequence.
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
    matrix_law: str = "dirichlet"
    """how a random matrix is drawn: dirichlet, uniform, doubly-stochastic, sparse or near-periodic."""
    concentration: float = 1.0
    """of the Dirichlet rows of a random matrix."""
    fresh: bool = False
    """draw a matrix for each sequence, with those Dirichlet rows, instead of one for all."""
    switch_rate: float = 0.0
    """the chance that the lag switches from one token to the next."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lags", check_lags(self.lags))
        check_sizes(states=self.states, length=self.length)
        check_seed("matrix_seed", self.matrix_seed)
        self._check_law()
        check_kind("fresh", self.fresh, bool, "True or False")
        check_dirichlet(2, self.concentration)
        object.__setattr__(self, "concentration", plain_float(self.concentration))
        rate = check_rate(self.switch_rate, len(self.lags), "switch_rate")
        object.__setattr__(self, "switch_rate", plain_float(rate))
        if self.lag_prior is not None:
            check_prior(self.lag_prior, len(self.lags))
            object.__setattr__(self, "lag_prior", tuple(map(plain_float, self.lag_prior)))
        if self.fresh and (self.matrix is not None or self.switch_rate):
            other = "switch_rate" if self.matrix is None else "matrix"
            raise FieldError(
                "fresh", f"fresh draws a matrix for each sequence of one lag; leave out {other}"
            )
        if self.switch_rate and self.lag_prior is not None:
            raise FieldError(
                "lag_prior",
                "lag_prior is of lags that stay; with switch_rate all are as likely at first",
            )
        if self.matrix is not None:
            if self.concentration != 1.0:
                raise FieldError(
                    "concentration", "concentration is of a random matrix; leave it out, or matrix"
                )
            P = as_transition_matrix(self.matrix)
            object.__setattr__(
                self, "matrix", tuple(tuple(map(plain_float, row)) for row in P.tolist())
            )
            if P.shape[0] != self.states:
                message = (
                    f"states={self.states} does not fit the matrix, which has {P.shape[0]} states"
                )
                raise FieldError("states", message)
        self.build() if self.states <= LARGE else self.outline()  # a large matrix is checked when it is made

    @property
    def usual(self) -> bool:
        """Tell whether it is the paper's task: one known matrix, one lag for a sequence."""
        return not (self.fresh or self.switch_rate)

    def outline(self) -> Task:
        """Make a task of these lags, length and prior with a matrix of 2 states, whatever it would take to draw P."""
        return Task([[0.5, 0.5], [0.5, 0.5]], self.lags, self.length, self.lag_prior)

    def build(self) -> LagTask:
        """Make the task."""
        if self.fresh:
            return FreshTask(
                self.states, self.lags, self.length, self.concentration, self.lag_prior
            )
        steady = self.steady()
        return (
            SwitchingTask(steady.P, self.lags, self.length, self.switch_rate)
            if self.switch_rate
            else steady
        )

    def steady(self) -> Task:
        """Make the task with one known matrix and lags that stay, whatever else is asked for."""
        if self.matrix is not None:
            return Task(self.matrix, self.lags, self.length, self.lag_prior)
        rng = generator(self.matrix_seed)
        P = random_transition_matrix(
            self.states, rng=rng, concentration=self.concentration, law=self.matrix_law
        )
        return Task(P, self.lags, self.length, self.lag_prior)

    def _check_law(self) -> None:
        check_choice("matrix_law", self.matrix_law, tuple(RANDOM))
        check_law(self.matrix_law, self.concentration)
        if self.matrix_law == TaskConfig.matrix_law:
            return
        if self.matrix is not None:
            raise FieldError(
                "matrix_law",
                "matrix_law says how a matrix is drawn; leave out matrix_law or matrix",
            )
        if self.fresh:
            message = f"fresh draws matrices with Dirichlet rows; leave out fresh or matrix_law={self.matrix_law}"
            raise FieldError("matrix_law", message)


def check_seed(name: str, seed: int) -> None:
    """Raise a FieldError unless the seed is one that torch's generators take."""
    if not is_whole(seed) or not 0 <= seed < 2**62:
        raise FieldError(
            name, f"{name} is a whole number from 0 to 2**62 - 1; got {described(seed)}"
        )
