"""`sih sample`: draw sequences and write them to a file."""

from pathlib import Path
from typing import Annotated

import torch
import tyro

from sih.base.errors import generator
from sih.cli.matrix_flag import MatrixLaw, check_drawn
from sih.cli.printing import plain_console
from sih.task import FreshTask, LagTask, SwitchingTask, Task
from sih.task import sample as draw
from sih.task.matrices import load_transition_matrix, random_transition_matrix
from sih.task.sample_file import check_suffix, save_sample

Law = Annotated[MatrixLaw, tyro.conf.arg(aliases=["--kind"])]
"""The distribution of a random matrix, in commands that once had the flag `--kind` for
it."""


def seeded(seed: int) -> torch.Generator:
    """Return the one generator of a command from its --seed."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"--seed is a whole number from 0 to 2**63 - 1; got {seed}")
    return generator(seed)


def choose_matrix(
    rng: torch.Generator,
    states: int | None,
    matrix: Path | None,
    law: MatrixLaw,
    concentration: float,
) -> torch.Tensor:
    """Return the matrix of a file, or a random one."""
    if matrix is None:
        states = 5 if states is None else states
        return random_transition_matrix(states, rng=rng, concentration=concentration, law=law)
    check_drawn(law)
    P = load_transition_matrix(matrix)
    if states not in (None, P.shape[0]):
        raise ValueError(
            f"--states {states} does not fit {matrix}, which has {P.shape[0]} states; leave one out"
        )
    return P


def sample(
    out: Path = Path("sample.npz"),
    lags: tuple[int, ...] = (1, 2, 3),
    length: int = 128,
    size: int = 256,
    states: int | None = None,
    matrix: Path | None = None,
    matrix_law: Law = "dirichlet",
    concentration: float = 1.0,
    fresh: bool = False,
    switch_rate: float = 0.0,
    seed: int = 0,
) -> None:
    """Draw sequences from interleaved Markov chains (the paper's Algorithm 1) and write
    them to a file.

    Example: sih sample --lags 1 2 3 --states 5 --length 128 --size 256 --seed 0 --out sample.npz

    Args:
        out: The file to write, .npz or .csv, with P, the lags and the seed inside.
        lags: The lags a sequence may have, increasing.
        length: Tokens in a sequence.
        size: Number of sequences.
        states: Number of states of a random matrix. Default: 5.
        matrix: A transition matrix, .npy or .csv, instead of a random one.
        matrix_law: Distribution of the random matrix; uniform means uniform numbers,
            each row divided by its sum.
        concentration: Concentration of the Dirichlet rows; small is nearly
            deterministic, large nearly uniform.
        fresh: Draw a matrix with Dirichlet rows for each sequence instead of one for
            all (.npz only).
        switch_rate: Probability that the lag switches at each token (.npz only).
        seed: Random seed for the matrix and the sequences.
    """
    check_suffix(out)
    rng = seeded(seed)
    task: LagTask
    if fresh:
        if matrix is not None or matrix_law != "dirichlet" or switch_rate:
            raise ValueError(
                "--fresh draws matrices with Dirichlet rows, of one lag each: no --matrix, --matrix-law, --switch-rate"
            )
        task = FreshTask(5 if states is None else states, lags, length, concentration)
    else:
        P = choose_matrix(rng, states, matrix, matrix_law, concentration)
        task = SwitchingTask(P, lags, length, switch_rate) if switch_rate else Task(P, lags, length)
    if out.suffix == ".csv" and not isinstance(task, Task):
        raise ValueError(
            f"what has a lag for each token or a matrix for each sequence is written as .npz; got {out}"
        )
    batch = draw(task, size, rng=rng)
    save_sample(out, batch, task, seed)
    of = "" if batch.lags.ndim == 1 else " tokens"
    shares = ", ".join(f"lag {lag}: {int((batch.lags == lag).sum())}{of}" for lag in task.lags)
    said = f"{size} sequences of length {length} over {task.num_states} states ({shares}) -> {out}"
    plain_console().print(said)
