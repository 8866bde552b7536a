"""Means by position, with standard errors, of all that predict the same sequences."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sih.metrics import scored_positions
from sih.results.experiment import Rows, braces, with_error
from sih.stats import Estimate, estimate, paired, ratio, ratio_of_means

PREDICTOR, CIRCUIT = "predictor", "circuit"
"""What is compared besides trained models."""
DIGITS = 6
"""Of values by position in large files, far finer than their errors."""
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

    @property
    def trained(self) -> bool:
        """Say whether it is of trained models."""
        return self.kind not in (PREDICTOR, CIRCUIT)


@dataclass(frozen=True)
class Curve:
    """Holds a mean and its standard error over `count` repetitions: sequences, or matrices.

    `by_position[i]` is at position i, when i + 1 tokens are seen. `windows["9-16"]`, a mean and its error, is over the
    positions at which 9 to 16 tokens are seen. `mean` is over all positions past the first max_lag. The last position
    of a sequence has no next token and counts nowhere.
    """

    count: int
    by_position: list[float]
    by_position_error: list[float]
    windows: dict[str, tuple[float, float]]
    mean: float
    mean_error: float

    def __str__(self) -> str:
        return with_error(self.mean, self.mean_error)


@dataclass(frozen=True)
class Panel:
    """Holds KL to the truth on the sequences of one task, by the label of what is compared.

    `minus[reference][label]` is the KL of one minus that of the other, repetition by repetition. The reference "midway"
    is the mean of BMA and ML: below it a prediction is nearer BMA.
    """

    lags: tuple[int, ...]
    compared: dict[str, Compared]
    kl: dict[str, Curve]
    minus: dict[str, dict[str, Curve]]


def curve(rows: Float[Tensor, "repetition time"], max_lag: int, digits: int = 17) -> Curve:
    """Return means over the rows, one row for each repetition, at all positions but the last, which has no next token.

    Values by position and in windows have so many significant digits.
    """
    if len(rows) < 2 or rows.shape[1] < max_lag + 2:
        wanted = f"a mean and its error need two sequences or more, longer than max_lag + 1 = {max_lag + 1}"
        raise ValueError(f"{wanted}; got {len(rows)}, of {rows.shape[1]} positions")
    whole = estimate(rows[:, scored_positions(max_lag, rows.shape[1])].mean(dim=1)).pair()
    rows = rows[:, :-1]
    positions = estimate(rows)
    parts = {
        f"{first}-{last}": rows[:, first - 1 : last]
        for first, last in windows(max_lag, rows.shape[1])
    }
    means = {name: estimate(part.mean(dim=1)).pair() for name, part in parts.items()}
    means_along, errors_along = (
        _rounded(values.tolist(), digits) for values in (positions.mean, positions.error)
    )
    in_windows = {
        name: (_rounded(pair, digits)[0], _rounded(pair, digits)[1]) for name, pair in means.items()
    }
    return Curve(len(rows), means_along, errors_along, in_windows, *whole)


def panel(
    lags: Sequence[int],
    compared: Mapping[str, Compared],
    kl: Mapping[str, Float[Tensor, "_ time"]],
    references: Iterable[str] = (),
    digits: int = 17,
) -> Panel:
    """Average the KL of all that is compared, and its differences to the references among them.

    Rows are repetitions. One that was measured on fewer is compared on those, which are the first.
    """
    against = {name: kl[name] for name in references if name in kl}
    if {"BMA", "ML"} <= against.keys():
        against["midway"] = (kl["BMA"] + kl["ML"]) / 2

    def differences(reference: Tensor) -> Iterator[tuple[str, Curve]]:
        for name, rows in kl.items():
            if rows is not reference:
                both = min(len(rows), len(reference))
                yield name, curve(rows[:both] - reference[:both], lags[-1], digits)

    means = {name: curve(rows, lags[-1], digits) for name, rows in kl.items()}
    minus = {name: dict(differences(rows)) for name, rows in against.items()}
    return Panel(tuple(lags), {name: compared[name] for name in kl}, means, minus)


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
    paired difference is added to its mean over all of its repetitions.
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
    return (times_as_much, math.hypot(x.error, times_as_much * y.error) / y.mean), known


def floored(one: Estimate[Tensor]) -> Estimate[float]:
    """Return what is known of max(KL, `FLOOR`): its error is half of how far the interval reaches above it."""
    mean, error = one.pair()
    if mean > FLOOR:
        return Estimate(mean, error)
    return Estimate(FLOOR, max(0.0, mean + 2 * error - FLOOR) / 2)


def mean_kl_table(panels: Sequence[Panel], corner: str = "") -> Rows:
    """Tabulate mean KL past the first max_lag positions: a row for each label, a column for each panel."""
    headings = [braces(one.lags) for one in panels]
    lengths = [len(next(iter(one.kl.values())).by_position) + 1 for one in panels]
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


def _rounded(values: Iterable[float], digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]
