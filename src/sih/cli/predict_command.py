"""`sih predict`: predict the next token and infer the lag at every position of a file
of sequences.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
import tyro
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import check_memory
from sih.base.files import write_arrays, write_rows
from sih.base.types import Law, TokenTensor
from sih.cli.printing import plain_console, table_of
from sih.predictors.metrics import kl_to_truth, lag_accuracy, mean_kl
from sih.predictors.predictors import PREDICTORS
from sih.task import Batch, FreshTask, LagTask, SwitchingTask, Task
from sih.task.matrices import load_transition_matrix
from sih.task.sample_file import Sample, check_suffix, load_sample

if TYPE_CHECKING:
    Predictor = str
else:
    Predictor = tyro.extras.literal_type_from_choices(PREDICTORS)
Weights = Float[Tensor, "batch time lag"]
SHOWN = 8
"""Sequences in the table on the terminal."""


def predict(
    file: Annotated[Path, tyro.conf.Positional],
    predictor: Predictor = "bma",
    out: Path | None = None,
    matrix: Path | None = None,
    lags: tuple[int, ...] = (),
    fresh: bool = False,
    switch_rate: float = 0.0,
    beta: float = 100.0,
    evidence: Literal["mean", "sum"] = "mean",
    temper: float = 1.0,
) -> None:
    """Predict the next token at every position of every sequence, and infer the lag.

    Example: sih predict sample.npz --predictor bma --out predictions.npz

    Args:
        file: A file of `sih sample`, or your own tokens: .npz with an array `tokens`,
            or .csv with one sequence per line.
        predictor: The predictor, e.g. bma (Bayesian model average), ml (maximum
            likelihood) or selective (the paper's).
        out: The file for the distribution, weights and inferred lag at every position,
            .npz or .csv. Default: FILE.predictions.npz.
        matrix: The transition matrix, .npy or .csv, where the file holds none.
        lags: The possible lags, where the file holds none.
        fresh: Treat the matrix as unknown, one per sequence, instead of --matrix.
        switch_rate: Probability that the lag switches at each token.
        beta: Inverse temperature of the selective estimator.
        evidence: Whether the selective estimator averages or sums.
        temper: Exponent on the probabilities before the selective estimator normalises
            them.
    """
    out = check_suffix(file.with_suffix(".predictions.npz") if out is None else out)
    sample = load_sample(file)
    task = _task(sample, file, matrix, lags, fresh, switch_rate)
    chosen = PREDICTORS[predictor]
    size = sample.tokens.numel() * (4 * task.num_states + 8 * len(task.lags)) * 8
    check_memory(
        size,
        f"the distributions of {sample.tokens.numel():,} tokens over {task.num_states:,} states",
    )
    given = {"beta": beta, "evidence": evidence, "temper": temper}
    options = {name: given[name] for name in chosen.options}
    weights, law = (f(sample.tokens, task, **options) for f in (chosen.weights, chosen.law))
    inferred = torch.tensor(task.lags)[weights.argmax(dim=-1)]
    _write(out, sample.tokens, law, weights, inferred)
    _report(sample, task, law, weights, inferred, out)


def _task(
    sample: Sample,
    file: Path,
    matrix: Path | None,
    lags: tuple[int, ...],
    fresh: bool,
    switch_rate: float,
) -> LagTask:
    if sample.task is not None:
        if matrix is not None or lags or fresh or switch_rate:
            said = "--matrix, --lags, --fresh and --switch-rate"
            raise ValueError(f"{file} holds its own matrix and lags; leave out {said}")
        return sample.task
    if not lags or (matrix is None) != fresh:
        raise ValueError(
            f"{file} holds only tokens; say --matrix P.npy (or --fresh) and --lags, e.g. --lags 1 2 3"
        )
    length = max(sample.tokens.shape[1], lags[-1] + 1)
    if matrix is None:
        return FreshTask(max(2, int(sample.tokens.max()) + 1), lags, length)
    P = load_transition_matrix(matrix)
    return SwitchingTask(P, lags, length, switch_rate) if switch_rate else Task(P, lags, length)


def _write(
    out: Path, tokens: TokenTensor, law: Law, weights: Weights, inferred: TokenTensor
) -> None:
    if out.suffix == ".npz":
        write_arrays(
            out,
            law=law.numpy(),
            weights=weights.numpy(),
            lag=inferred.numpy(),
            tokens=tokens.numpy(),
        )
        return
    header = ["sequence", "position", "token", "lag", *(f"p{s}" for s in range(law.shape[-1]))]
    write_rows(out, itertools.chain([header], _rows(tokens, law, inferred)))


def _rows(tokens: TokenTensor, law: Law, inferred: TokenTensor) -> Iterator[list[Any]]:
    for b in range(tokens.shape[0]):
        columns = zip(tokens[b].tolist(), inferred[b].tolist(), law[b].tolist(), strict=True)
        yield from ([b, i, token, lag, *p] for i, (token, lag, p) in enumerate(columns))


def _report(
    sample: Sample, task: LagTask, law: Law, weights: Weights, inferred: TokenTensor, out: Path
) -> None:
    rows = [["sequence", "true lag", "inferred", "weight", "settled at", "next token"]]
    for b in range(min(SHOWN, len(inferred))):
        true = "?" if sample.lags is None else str(int(sample.lags[b].flatten()[-1]))
        last = int(inferred[b, -1])
        wavering = (inferred[b] != last).nonzero()
        settled = int(wavering[-1]) + 1 if len(wavering) else 0
        next_token = " ".join(f"{p:.2f}" for p in law[b, -1, :8].tolist())
        next_token += " ..." if task.num_states > 8 else ""
        rows.append(
            [
                str(b),
                true,
                str(last),
                f"{weights[b, -1].max().item():.4f}",
                str(settled),
                next_token,
            ]
        )
    console = plain_console()
    console.print(table_of(rows, "After the last token", left=0))
    if len(inferred) > SHOWN:
        console.print(f"... and {len(inferred) - SHOWN} more sequences")
    if (batch := sample.batch) is not None:
        right = f"lag right at the end: {lag_accuracy(weights, batch, task)[-1].item():.1%}"
        console.print(f"{_mean_kl(law, batch, task)}; {right}")
    console.print(f"distribution, weights and lag at every position -> {out}")


def _mean_kl(law: Law, batch: Batch, task: LagTask) -> str:
    """Print the mean KL from the predictions to the truth, if some position counts."""
    if len(batch.tokens[0]) < task.max_lag + 2:
        return f"no mean KL: that needs {task.max_lag + 2} tokens or more"
    kl = mean_kl(kl_to_truth(law, batch, task), task).mean().item()
    return f"mean KL to the true distribution, from position {task.max_lag} to the last but one: {kl:.5f} nats"
