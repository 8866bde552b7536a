"""Means by position, with standard errors, of predictions of the same sequences."""

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
"""Kinds of curves besides trained models."""
FLOOR = 1e-4
"""A KL below this counts as this in comparisons: the paper's axes end here."""
KNOWN = 0.1
"""A window is omitted if the relative standard error of the reference's KL is larger
than this."""
Pair = tuple[float, float]
"""A number and its standard error."""


@dataclass(frozen=True)
class Compared:
    """Subject of a curve: a reference predictor, a hand-written circuit, or trained
    models of several seeds.
    """

    kind: str
    """`PREDICTOR`, `CIRCUIT`, or the kind of the trained models."""
    heads: tuple[int, ...] = ()
    """The heads of each layer."""
    dim: int | None = None
    """The width of trained models, unless it is the default."""
    models: tuple[str, ...] = ()
    """The names of the trained models, one per seed."""
    seeds: tuple[int, ...] = ()
    plain: bool = False
    """Whether they were trained as in the paper."""
    recipe: str = ""
    """Their training, in words."""

    @property
    def trained(self) -> bool:
        """Return whether the curve is of trained models."""
        return self.kind not in (PREDICTOR, CIRCUIT)


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean at each position, and each repetition's mean, over sequences or
    matrices.

    `mean[i]` is at position i, after i + 1 tokens. The last position of a sequence has
    no next token and is excluded. Repetitions are stored, so that any two curves on the
    same sequences can be compared in pairs.
    """

    mean: Float[Tensor, " position"]
    error: Float[Tensor, " position"]
    overall: Float[Tensor, " repetition"]
    """The mean of each repetition beyond the first max_lag positions."""

    @property
    def whole(self) -> Estimate[Tensor]:
        """Return the mean beyond the first max_lag positions, with its error over
        repetitions.
        """
        return estimate(self.overall)

    def __str__(self) -> str:
        return with_error(*self.whole.pair())


@dataclass(frozen=True, eq=False)
class Panel:
    """The KL to the truth on the sequences of one task, by label."""

    lags: tuple[int, ...]
    compared: dict[str, Compared]
    kl: dict[str, Curve]


def curve(rows: Float[Tensor, "repetition time"], max_lag: int) -> Curve:
    """Return the means of rows, one row per repetition, without the last position."""
    if len(rows) < 2 or rows.shape[1] < max_lag + 2:
        wanted = f"two sequences or more, longer than max_lag + 1 = {max_lag + 1}"
        got = f"got {len(rows)}, of {rows.shape[1]} positions"
        raise ValueError(f"a mean and its error need {wanted}; {got}")
    overall = rows[:, scored_positions(max_lag, rows.shape[1])].mean(dim=1)
    along = estimate(rows[:, :-1])
    return Curve(along.mean, along.error, overall)


def minus(one: Curve, other: Curve) -> Estimate[Tensor]:
    """Return the mean of a curve minus that of another, compared repetition by
    repetition.

    If one was measured on fewer repetitions, these are the first, and only they are
    compared.
    """
    both = min(len(one.overall), len(other.overall))
    return paired(one.overall[:both], other.overall[:both])


@dataclass(frozen=True)
class Times:
    """Ratio of a KL to a reference's on the same sequences: of the means, and in each
    window of positions.

    A KL below `FLOOR` counts as `FLOOR`. The errors include those of both. `left_out`
    lists the windows in which the reference's KL is too uncertain.
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
    """Return the ratio of a KL to a reference's, at all positions beyond the first
    max_lag except the last.

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
    """Return the ratio of two means, neither below `FLOOR`, with its error, and the
    reference's relative error.

    The means are compared on the repetitions that both have. If these leave the
    reference's mean too uncertain, the paired difference is added to its mean over all
    of its repetitions. If one is at the lower bound, the error is that of both
    separately or, if smaller, that of their difference. Two equal means have the ratio
    1 exactly.
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
    )  # the part of one that the lower bound may cut, but not of the other
    together = math.hypot(float(apart.error), moved, (times_as_much - 1) * y.error)
    return (times_as_much, min(each_alone, together) / y.mean), known


def floored(one: Estimate[Tensor]) -> Estimate[float]:
    """Return max(KL, `FLOOR`) with its error: half of the part of the interval above
    it.
    """
    mean, error = one.pair()
    if mean > FLOOR:
        return Estimate(mean, error)
    return Estimate(FLOOR, max(0.0, mean + 2 * error - FLOOR) / 2)


def mean_kl_table(panels: Sequence[Panel], corner: str = "", titles: Sequence[str] = ()) -> Rows:
    """Return a table of mean KL beyond the first max_lag positions: one row per label,
    one column per panel.

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
    """Return windows of numbers of tokens, cut at powers of two, from the first with
    information on the lag.

    >>> windows(3, 40)
    [(4, 8), (9, 16), (17, 32), (33, 40)]
    """
    edges = [max_lag, *(2**n for n in range(3, 64) if max_lag < 2**n < length), length]
    return [(a + 1, b) for a, b in itertools.pairwise(edges)]
