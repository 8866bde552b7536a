"""Means by position, with standard errors, of all that predict the same sequences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sih.base.stats import Estimate, estimate, paired, ratio, ratio_of_means
from sih.predictors.metrics import scored_positions
from sih.results.tables import Rows, braces, with_error

PREDICTOR, CIRCUIT = "predictor", "circuit"
"""What is compared besides trained models."""
FLOOR = 1e-4
"""A KL below this counts as this where two are compared: the paper's axes end here."""
KNOWN = 0.1
"""A window is left out if the standard error of the reference's KL is more than this part of it."""
Pair = tuple[float, float]
"""A number and its standard error."""


@dataclass(frozen=True)
class Compared:
    """Says what a curve is of: a reference predictor, a circuit written by hand, or trained models of several seeds."""

    kind: str
    """`PREDICTOR`, `CIRCUIT`, or the kind of the trained models."""
    heads: tuple[int, ...] = ()
    """Of each layer."""
    dim: int | None = None
    """The width of trained models, where it is not the usual one."""
    models: tuple[str, ...] = ()
    """The names of the trained models, one for each seed."""
    seeds: tuple[int, ...] = ()
    plain: bool = False
    """Whether they were trained as in the paper."""
    recipe: str = ""
    """How they were trained, in words."""

    @property
    def trained(self) -> bool:
        """Say whether it is of trained models."""
        return self.kind not in (PREDICTOR, CIRCUIT)


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean at each position, and each repetition's mean: over sequences, or matrices.

    `mean[i]` is at position i, when i + 1 tokens are seen. The last position of a sequence has
    no next token and counts nowhere. Repetitions are kept, so that any two curves on the same
    sequences are compared in pairs.
    """

    mean: Float[Tensor, " position"]
    error: Float[Tensor, " position"]
    overall: Float[Tensor, " repetition"]
    """The mean of each repetition past the first max_lag positions."""

    @property
    def whole(self) -> Estimate[Tensor]:
        """Return the mean past the first max_lag positions, with its error over repetitions."""
        return estimate(self.overall)

    def __str__(self) -> str:
        return with_error(*self.whole.pair())


@dataclass(frozen=True, eq=False)
class Panel:
    """The KL to the truth on the sequences of one task, by the label of what is compared."""

    lags: tuple[int, ...]
    compared: dict[str, Compared]
    kl: dict[str, Curve]


def curve(rows: Float[Tensor, "repetition time"], max_lag: int) -> Curve:
    """Return the means of rows, one row for each repetition, without the last position."""
    if len(rows) < 2 or rows.shape[1] < max_lag + 2:
        wanted = f"two sequences or more, longer than max_lag + 1 = {max_lag + 1}"
        got = f"got {len(rows)}, of {rows.shape[1]} positions"
        raise ValueError(f"a mean and its error need {wanted}; {got}")
    overall = rows[:, scored_positions(max_lag, rows.shape[1])].mean(dim=1)
    along = estimate(rows[:, :-1])
    return Curve(along.mean, along.error, overall)


def minus(one: Curve, other: Curve) -> Estimate[Tensor]:
    """Return the mean of a curve less that of another, compared repetition by repetition.

    Where one was measured on fewer repetitions, these are the first, and the only ones compared.
    """
    both = min(len(one.overall), len(other.overall))
    return paired(one.overall[:both], other.overall[:both])


@dataclass(frozen=True)
class Times:
    """How many times a reference's KL another's is, on the same sequences: the mean, and each window of positions.

    A KL below `FLOOR` counts as `FLOOR`. The errors are those of both. `left_out` are the windows in which the
    reference's KL is not known well enough.
    """

    reference: str
    mean: Pair
    windows: dict[str, Pair]
    left_out: tuple[str, ...]


def times(
    rows: Float[Tensor, "repetition time"],
    reference: Float[Tensor, "more time"],
    max_lag: int,
    label: str,
) -> Times:
    """Compare the KL of one with that of a reference, at all positions past the first max_lag but the last.

    The reference has the same repetitions, and may have more after them.
    """
    rows, reference = rows[:, :-1], reference[:, :-1]
    parts = {f"{a}-{b}": slice(a - 1, b) for a, b in windows(max_lag, rows.shape[1])}
    each = {
        name: floored_ratio(rows[:, part].mean(1), reference[:, part].mean(1))
        for name, part in parts.items()
    }
    whole, _ = floored_ratio(rows[:, max_lag:].mean(dim=1), reference[:, max_lag:].mean(dim=1))
    found = {name: pair for name, (pair, known) in each.items() if known <= KNOWN}
    return Times(label, whole, found, tuple(name for name in each if name not in found))


def floored_ratio(
    values: Float[Tensor, " repetition"], reference: Float[Tensor, " more"]
) -> tuple[Pair, float]:
    """Return the ratio of two means, neither below `FLOOR`, with its error; and the relative error of the reference.

    They are compared on the repetitions that both have. Where these do not tell the reference's mean well enough, the
    paired difference is added to its mean over all of its repetitions. Where one is at the floor, its error is that of
    both apart or, if less, that of their difference: two that are equal have the ratio 1 exactly.
    """
    above, both = estimate(values), estimate(reference[: len(values)])
    known = float(both.error / both.mean)
    if min(above.mean, both.mean) > FLOOR and known <= KNOWN:
        return ratio_of_means(values, reference[: len(values)]).pair(), known
    below, apart = estimate(reference), paired(values, reference)
    x, y = floored(Estimate(below.mean + apart.mean, above.error)), floored(below)
    known = y.error / y.mean
    if min(below.mean + apart.mean, below.mean) > FLOOR:
        return ratio(apart, below).pair(), known
    times_as_much = x.mean / y.mean
    each_alone = math.hypot(x.error, times_as_much * y.error)
    moved = min(
        abs(float(apart.mean)) / 2, float(below.error)
    )  # what the floor may cut of one and not of the other
    together = math.hypot(float(apart.error), moved, (times_as_much - 1) * y.error)
    return (times_as_much, min(each_alone, together) / y.mean), known


def floored(one: Estimate[Tensor]) -> Estimate[float]:
    """Return what is known of max(KL, `FLOOR`): its error is half of how far the interval reaches above it."""
    mean, error = one.pair()
    if mean > FLOOR:
        return Estimate(mean, error)
    return Estimate(FLOOR, max(0.0, mean + 2 * error - FLOOR) / 2)


def mean_kl_table(panels: Sequence[Panel], corner: str = "", titles: Sequence[str] = ()) -> Rows:
    """Tabulate mean KL past the first max_lag positions: a row for each label, a column for each panel.

    A column is headed by the panel's lags, unless the panels have titles.
    """
    headings = list(titles) or [braces(one.lags) for one in panels]
    lengths = [len(next(iter(one.kl.values())).mean) + 1 for one in panels]
    if len(set(headings)) < len(headings):
        headings = [
            f"{lags}, length {length}" for lags, length in zip(headings, lengths, strict=True)
        ]
    rows = [[corner, *headings]]
    fullest_first = sorted(panels, key=lambda one: -len(one.kl))
    for label in dict.fromkeys(label for one in fullest_first for label in one.kl):
        rows.append([label, *(str(one.kl[label]) if label in one.kl else "" for one in panels)])
    return rows


def windows(max_lag: int, length: int) -> list[tuple[int, int]]:
    """Cut the numbers of tokens seen, from the first that says something of the lag on, at powers of two.

    >>> windows(3, 40)
    [(4, 8), (9, 16), (17, 32), (33, 40)]
    """
    edges = [max_lag, *(2**n for n in range(3, 64) if max_lag < 2**n < length), length]
    return [(a + 1, b) for a, b in itertools.pairwise(edges)]
