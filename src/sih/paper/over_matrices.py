"""KL to the truth of several predictions, on the same sequences of random matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from sih.base.record import NotEmpty, Size
from sih.base.types import Law, TokenTensor
from sih.predictors.averaged_kl import exact_bayes
from sih.results.curves import Compared, Panel, curve
from sih.results.experiment import LagSets, MatrixLaw, Seeded, Several, States
from sih.results.tables import braces, law_in_words
from sih.task import Task, sample
from sih.task.lags import check_length
from sih.task.matrices import random_transition_matrix

Predict = Callable[[TokenTensor, Task], Mapping[str, tuple[Compared, Law]]]
"""Function that returns the predictions compared, by label."""


@dataclass(frozen=True)
class MatricesConfig(Seeded):
    """Means over random matrices, for each set of lags and each distribution of
    matrices.
    """

    lag_sets: LagSets = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    num_states: States = 5
    length: Size = 128
    matrices: Several = 8
    """Number of random matrices of each distribution."""
    sequences: Size = 256
    """Sequences per matrix."""
    laws: Annotated[tuple[MatrixLaw, ...], NotEmpty("one distribution or more")] = (
        "uniform",
        "dirichlet",
    )
    """Distributions of the matrices."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_length(self.length, max(self.lag_sets, key=max))


@dataclass(frozen=True, eq=False)
class MatricesPanel(Panel):
    """The curves of one set of lags, over matrices of one distribution. Repetitions are
    matrices.
    """

    law: str

    @property
    def title(self) -> str:
        """Return the lags and the kind of matrices, in words."""
        return f"lags {braces(self.lags)}, {law_in_words(self.law)}"


def means_in_words(config: MatricesConfig) -> str:
    """Return the sentences of a caption on the averages."""
    kinds = " and ".join(law_in_words(law) for law in config.laws)
    each = " of each" if len(config.laws) > 1 else ""
    return (
        f"Means over {config.matrices} random matrices{each} with {config.num_states} states ({kinds}), "
        f"{config.sequences} sequences of each matrix, the same for all curves of a panel; the KL is averaged over the "
        "lag given the tokens. Bands are one standard error over matrices. The last position is left out: it has no "
        "next token."
    )


def panels_over_matrices(config: MatricesConfig, predict: Predict) -> tuple[MatricesPanel, ...]:
    """Return one panel per set of lags and distribution of matrices."""
    return tuple(
        panel_over_matrices(config, lags, law, predict)
        for lags in config.lag_sets
        for law in config.laws
    )


def panel_over_matrices(
    config: MatricesConfig, lags: tuple[int, ...], law: str, predict: Predict
) -> MatricesPanel:
    """Return the KL of all predictions of `predict`, on the same sequences of each
    matrix.

    The KL is averaged over the lag given the tokens, as `sih.predictors.averaged_kl`
    does.
    """
    rng = config.rng()
    compared: dict[str, Compared] = {}
    kl = defaultdict[str, list[Tensor]](list)
    for _ in range(config.matrices):
        P = random_transition_matrix(config.num_states, rng=rng, law=law)
        task = Task(P, lags, config.length)
        tokens = sample(task, config.sequences, rng=rng).tokens
        exact = exact_bayes(tokens, task)
        for label, (what, prediction) in predict(tokens, task).items():
            compared[label] = what
            kl[label].append(exact.kl(prediction.double()).mean(dim=0))
    curves = {label: curve(torch.stack(rows), max(lags)) for label, rows in kl.items()}
    return MatricesPanel(lags, compared, curves, law)
