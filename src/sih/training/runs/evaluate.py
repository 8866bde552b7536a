r"""Evaluation of a trained model on fresh sequences, with a small error of KL/ML.

Every model of a task is measured on the same sequences, which are no run's batches or
held-out sequences. At each position the KL is averaged over the lag given the tokens so
far (`averaged_kl.py`). This gives the same mean with a smaller error. The number of
sequences is doubled until two standard errors of KL/ML are at most 0.02, or 2 % if that
is larger.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_kind
from sih.base.stats import Estimate, estimate, ratio_of_means
from sih.models import Model
from sih.models.fast.threads import limited_threads
from sih.predictors.averaged_kl import exact_bayes
from sih.predictors.evidence import mixture
from sih.predictors.predictors import maximum_likelihood
from sih.task import Batch, LagTask, sample
from sih.training.runs.evaluation import RunEvaluation, Window
from sih.training.runs.run import Run
from sih.training.runs.run_store import open_run

STREAM = b"sih.evaluate"
"""Source of the random numbers of the sequences."""
LEAST, MOST = 2**13, 2**16
"""Least and largest number of sequences."""
ABSOLUTE, RELATIVE = 0.02, 0.02
"""Wanted accuracy of KL/ML, as two standard errors: the larger of the two."""
DRAWN = 2**10
"""Sequences drawn at a time."""
ENTRIES = 2**20
"""Pairs of positions that one head compares at a time, which bounds the memory."""
Column = Float[Tensor, " batch"]
WINDOWS = ((4, 8), (9, 16), (17, 32), (33, 64), (65, 127))
"""Windows of positions, by the first and last number of tokens seen."""


def evaluate(run: Run | str | Path) -> RunEvaluation:
    """Return the mean KL of a run's model on fresh sequences, with those of ML and BMA.

    `kl`, `ml`, `bma`, `alike`, `kl_over_ml` and `way` each have `.mean` and `.error`,
    one standard error. They are means over the positions from max_lag on that have a
    next token. `windows` has the same by number of tokens seen.

    `found` is whether the predictions show the circuit: `way` is at least 0.9 in every
    window from 17 tokens on. The evaluation of a shipped model is read from its folder.
    Others are computed, in 5 to 60 s at length 128 on one core.

    Args:
        run: a `Run`, its folder, or the name of a shipped model.

    Returns:
        The evaluation: means over all positions, and by window.

    >>> import sih
    >>> found = sih.evaluate("paper-1.2.3-length32")
    >>> found.kl_over_ml.with_error(), found.sequences
    ('0.7275 ± 0.0038', 8192)
    >>> [(window.label, round(window.kl_over_ml.mean, 2)) for window in found.windows]
    [('4-8', 0.59), ('9-16', 0.78), ('17-31', 1.2)]
    >>> found.windows[-1].way.with_error(), found.found
    ('0.9836 ± 0.0015', True)
    """
    found = as_run(run)
    return found.evaluation or measure(found.model, found.task)


def as_run(run: Run | str | Path) -> Run:
    """Return the run, or open the run of this name or folder."""
    check_kind(
        "run",
        run,
        (Run, str, Path),
        "a run, its folder or the name of a shipped model, e.g. 'paper-1.2.3'",
    )
    return run if isinstance(run, Run) else open_run(run)


@limited_threads(1)
@torch.no_grad()
def measure(model: Model, task: LagTask, least: int = LEAST, most: int = MOST) -> RunEvaluation:
    """Return a model's evaluation on `least` to `most` fresh sequences."""
    spans = _spans(task)
    batches = fresh_sequences(task)
    sums: list[Float[Tensor, "batch span predictor"]] = []
    wanted = least
    while True:
        while DRAWN * len(sums) < wanted:
            sums.append(_means(model, task, next(batches), spans))
        rows = torch.cat(sums)[:wanted]
        if wanted >= most or _known(_columns(rows[:, 0])["kl_over_ml"]):
            return _evaluation(rows, spans)
        wanted *= 2


@limited_threads(1)
@torch.no_grad()
def measure_on(tokens: Int[Tensor, "batch time"], model: Model, task: LagTask) -> RunEvaluation:
    """Return the evaluation of a model on these sequences of a task."""
    spans = _spans(task)
    return _evaluation(_means(model, task, tokens, spans), spans)


def fresh_batches(task: LagTask) -> Iterator[Batch]:
    """Yield the batches on which every model of a task is measured, without end.

    The seed is far from those that people choose. torch's generator on the CPU uses 32
    bits of it.
    """
    seed = np.random.SeedSequence(list(STREAM)).generate_state(1, np.uint64)
    rng = torch.Generator().manual_seed(int(seed[0]))
    while True:
        yield sample(task, DRAWN, rng=rng)


def fresh_sequences(task: LagTask) -> Iterator[Int[Tensor, "batch time"]]:
    """Yield the tokens of `fresh_batches`."""
    for batch in fresh_batches(task):
        yield batch.tokens


def _spans(task: LagTask) -> list[tuple[int, int]]:
    """Return the first and last number of tokens seen, for each span.

    The first span is all positions, and the others are the windows.
    """
    first, last = task.max_lag + 1, task.length - 1
    if last < first:
        message = f"length {task.length} has no position past the first {task.max_lag} that has a next token"
        raise FieldError("length", f"{message}; an evaluation needs {task.max_lag + 2} or more")
    cut = [(max(a, first), min(b, last)) for a, b in WINDOWS]
    return [(first, last), *((a, b) for a, b in cut if a <= b)]


def _means(
    model: Model, task: LagTask, tokens: Int[Tensor, "batch time"], spans: list[tuple[int, int]]
) -> Float[Tensor, "batch span predictor"]:
    """Return each sequence's mean KL in each span.

    The predictors are the model, ML, BMA, and equal weights of the candidates.
    """
    at_once = max(1, min(64, ENTRIES // task.length**2))
    found = []
    for part in torch.split(tokens, at_once):
        bayes = exact_bayes(part, task)
        laws = (
            model.predict(part).double(),
            maximum_likelihood(part, task),
            candidates_alike(part, task),
        )
        kl, ml, alike = map(bayes.kl, laws)
        kls = torch.stack([kl, ml, bayes.least, alike], dim=-1)
        found.append(torch.stack([kls[:, a - 1 : b].mean(dim=1) for a, b in spans], dim=1))
    return torch.cat(found)


def candidates_alike(
    tokens: Int[Tensor, "batch time"], task: LagTask
) -> Float[Tensor, "batch time state"]:
    """Return the prediction with equal weights for the candidate tokens of all lags."""
    count = len(task.hypotheses)
    alike = torch.full((*tokens.shape, count), 1 / count, dtype=torch.float64, device=tokens.device)
    return mixture(alike, tokens, task)


def _evaluation(
    rows: Float[Tensor, "batch span predictor"], spans: list[tuple[int, int]]
) -> RunEvaluation:
    """Return the means over sequences, for the first span and for the windows."""
    windows = [
        Window(**_columns(rows[:, i]), first=a, last=b) for i, (a, b) in enumerate(spans[1:], 1)
    ]
    return RunEvaluation(**_columns(rows[:, 0]), windows=tuple(windows), sequences=len(rows))


def _columns(rows: Float[Tensor, "batch predictor"]) -> dict[str, Estimate[float]]:
    kl, ml, bma, alike = rows.unbind(dim=-1)
    found = {"kl": estimate(kl), "ml": estimate(ml), "bma": estimate(bma), "alike": estimate(alike)}
    found |= {"kl_over_ml": ratio_of_means(kl, ml), "way": _way(kl, ml, alike)}
    return {name: Estimate(*each.pair()) for name, each in found.items()}


def _way(kl: Column, ml: Column, alike: Column) -> Estimate[Tensor]:
    """Return the progress from equal weights (0) to ML (1), nan if ML is no better.

    In that case a ratio of two losses would make the worst model the best.
    """
    way = ratio_of_means(alike - kl, alike - ml)
    if alike.mean() > ml.mean():
        return way
    return Estimate(torch.full_like(way.mean, math.nan), torch.full_like(way.error, math.nan))


def _known(ratio: Estimate[float]) -> bool:
    """Return whether a ratio is known well enough, or more sequences would not help."""
    return not math.isfinite(ratio.error) or 2 * ratio.error <= max(ABSOLUTE, RELATIVE * ratio.mean)
