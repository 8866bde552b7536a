"""The task of a training run: one that flags can name, or an object of one's own.

    TaskConfig      lags, matrix, switching: what `sih train` has flags for
    OwnTask         any `CausalTask`, known again by its name and its sequences

Both have `states`, `length` and `first`, the first token with a parent. `build()`
returns the task. A run on one's own task can only be resumed with the object, and no
command, preset or sweep can name it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from sih.base.errors import FieldError, generator
from sih.base.record import Above, Among, Increasing, SeedNumber, Size, check
from sih.task import (
    CausalTask,
    FreshTask,
    LagTask,
    SwitchingTask,
    Task,
    check_rate,
    first_position,
    sample,
)
from sih.task.matrices import (
    RANDOM,
    as_transition_matrix,
    check_dirichlet,
    check_law,
    random_transition_matrix,
)

LARGE = 256
"""Number of states beyond which a matrix is drawn and checked only when its task is
built."""
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TaskConfig:
    """A task with lags. The defaults are the paper's.

    The matrix is drawn by `matrix_law` from `matrix_seed`, or given. With `fresh` it is
    drawn anew for each sequence, with Dirichlet(`concentration`) rows. With a
    `switch_rate` the lag may change within a sequence.
    """

    lags: Annotated[tuple[Size, ...], Increasing()] = (1, 2, 3)
    """The lags a sequence may have, increasing."""
    states: Size = 5
    """Number of states."""
    length: Size = 128
    """Tokens in a sequence."""
    lag_prior: tuple[float, ...] | None = None
    """Probability of each lag. By default all are equal."""
    matrix: Matrix | None = None
    """A transition matrix, .npy or .csv, instead of a random one."""
    matrix_seed: SeedNumber = 0
    """Random seed for the matrix."""
    matrix_law: Annotated[str, Among(RANDOM)] = "dirichlet"
    """Distribution of the random matrix: dirichlet, uniform, doubly-stochastic, sparse
    or near-periodic."""
    concentration: Annotated[float, Above(0)] = 1.0
    """Concentration of the Dirichlet rows of a random matrix."""
    fresh: bool = False
    """Draw a matrix with Dirichlet rows for each sequence instead of one for all."""
    switch_rate: float = 0.0
    """Probability that the lag switches at each token."""

    shortens: ClassVar[bool] = True
    """Whether the task exists for shorter sequences."""

    def __post_init__(self) -> None:
        check(self)
        check_dirichlet(2, self.concentration)
        check_law(self.matrix_law, self.concentration)
        check_rate(self.switch_rate, len(self.lags), "switch_rate")
        self._check_together()
        if self.matrix is not None:
            self._check_matrix(self.matrix)
        task = self.build if self.states <= LARGE else self._outline
        task()

    @property
    def is_paper_task(self) -> bool:
        """Return whether it has one known matrix, and one lag per sequence.

        This is the paper's task.
        """
        return not (self.fresh or self.switch_rate)

    @property
    def first(self) -> int:
        """Return the first token that has a parent, the largest lag."""
        return self.lags[-1]

    @property
    def label(self) -> str:
        """Return the task's part of a run's name."""
        return ".".join(map(str, self.lags))

    @property
    def in_words(self) -> str:
        """Return a description of the task in a line."""
        return f"lags {list(self.lags)}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts of the task that a run shows."""
        return {"lags": self.lags}

    @property
    def held_out_seed(self) -> int:
        """Return the seed of the held-out sequences."""
        return self.matrix_seed

    def build(self) -> LagTask:
        """Return the task."""
        if self.fresh:
            sizes = (self.states, self.lags, self.length)
            return FreshTask(*sizes, self.concentration, self.lag_prior)
        steady = self.steady()
        if self.switch_rate:
            return SwitchingTask(steady.P, self.lags, self.length, self.switch_rate)
        return steady

    def steady(self) -> Task:
        """Return the task with one known matrix and one lag per sequence.

        Other fields do not matter.
        """
        if self.matrix is not None:
            return Task(self.matrix, self.lags, self.length, self.lag_prior)
        rng = generator(self.matrix_seed)
        law = {"concentration": self.concentration, "law": self.matrix_law}
        P = random_transition_matrix(self.states, rng=rng, **law)  # type: ignore[arg-type]
        return Task(P, self.lags, self.length, self.lag_prior)

    def _outline(self) -> Task:
        """Return the task with a matrix of 2 states, so that no large one is drawn."""
        return Task([[0.5, 0.5], [0.5, 0.5]], self.lags, self.length, self.lag_prior)

    def _check_together(self) -> None:
        """Raise a FieldError if one field has no effect beside another."""
        given = self.matrix is not None
        drawn = self.matrix_law != TaskConfig.matrix_law
        one_lag = "fresh draws a matrix for each sequence of one lag; leave out"
        stay = "lag_prior is of lags that stay; with switch_rate all are as likely at first"
        random = "concentration is of a random matrix; leave it out, or matrix"
        law = "matrix_law says how a matrix is drawn; leave out matrix_law or matrix"
        rows = "fresh draws matrices with Dirichlet rows; leave out fresh or matrix_law="
        clashes = [
            ("fresh", self.fresh and given, f"{one_lag} matrix"),
            ("fresh", self.fresh and self.switch_rate, f"{one_lag} switch_rate"),
            ("lag_prior", self.switch_rate and self.lag_prior is not None, stay),
            ("concentration", given and self.concentration != 1, random),
            ("matrix_law", given and drawn, law),
            ("matrix_law", self.fresh and drawn, f"{rows}{self.matrix_law}"),
        ]
        for name, both, message in clashes:
            if both:
                raise FieldError(name, message)

    def _check_matrix(self, matrix: Matrix) -> None:
        P = as_transition_matrix(matrix)
        rows = tuple(tuple(number + 0.0 for number in row) for row in P.tolist())
        object.__setattr__(self, "matrix", rows)  # its rows sum to 1 now
        if len(rows) != self.states:
            has = f"which has {len(rows)} states"
            raise FieldError("states", f"states={self.states} does not fit the matrix, {has}")


@dataclass(frozen=True)
class Sequences:
    """A description that identifies a task object."""

    task: str
    """Name of its class."""
    digest: str
    """Digest of 8 sequences drawn from it with seed 0."""
    states: Size
    length: Size
    first: Annotated[int, Above(0)]
    """The first token that has a parent under some hypothesis."""
    held: Any = field(default=None, compare=False, repr=False)
    """The task itself. None in a configuration that was read from a file."""

    @classmethod
    def of(cls, task: CausalTask) -> Sequences:
        """Return the description of a task, with the task."""
        name = type(task).__name__
        tokens = sample(task, 8, rng=0).tokens
        digest = hashlib.sha256(tokens.numpy().tobytes()).hexdigest()[:8]
        first = first_position(task)
        if not first:
            raise FieldError("task", f"no token of {name} has a parent: nothing is to be learnt")
        return cls(name, digest, task.num_states, task.length, first, task)


@dataclass(frozen=True)
class OwnTask:
    """A task of one's own: an object that a run can identify, but no flag names."""

    own: Sequences

    is_paper_task: ClassVar[bool] = False
    held_out_seed: ClassVar[int] = 0
    lags: ClassVar[tuple[int, ...]] = ()
    """Empty: a task of one's own may have lags, but is not compared by them."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def states(self) -> int:
        """Return the number of states."""
        return self.own.states

    @property
    def length(self) -> int:
        """Return the number of tokens in a sequence."""
        return self.own.length

    @property
    def first(self) -> int:
        """Return the first token that has a parent."""
        return self.own.first

    @property
    def label(self) -> str:
        """Return the task's part of a run's name."""
        return self.own.task.lower()

    @property
    def in_words(self) -> str:
        """Return a description of the task in a line."""
        return f"task {self.own.task}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts of the task that a run shows."""
        return {"task": self.own.task}

    @property
    def shortens(self) -> bool:
        """Return whether the task exists for shorter sequences, as far as is known."""
        return self.own.held is None or hasattr(self.own.held, "with_length")

    def build(self) -> CausalTask:
        """Return the task, or raise an error that asks for it again."""
        task: CausalTask | None = self.own.held
        if task is None:
            name = self.own.task
            says = f"the task {name} is an object, which no file holds"
            raise FieldError("task", f"{says}; give it again: TrainConfig(task={name}(...), ...)")
        return task


TaskPart = TaskConfig | OwnTask
"""The kinds of task in a training configuration."""
