"""The least number of heads for the exact posterior if heads may mix lags, with its
proof status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sih.base.showing import Shown
from sih.beyond.shared_heads.brackets import Bracket, kept_brackets, normal_form
from sih.beyond.shared_heads.prescribed import RankBound, rank_bound
from sih.heads.least import least_heads
from sih.heads.mixing import progression
from sih.task import check_lags


@dataclass(frozen=True)
class ExactHeads(Shown):
    """Bounds on the number of second-layer heads for the exact posterior, reading the
    query's side.

    `lower` holds for circuits with weights that depend on the offset and reads that
    depend on differences of positions, of any sign. More than two lags need more than
    one head for any attention by position (docs/proofs/shared_heads.md).
    """

    lags: tuple[int, ...]
    upper: int
    lower: int
    upper_by: str
    """The source of the upper number, in words."""
    lower_by: str
    certificate: RankBound
    searched: Bracket | None
    """Results of searches for this set, on either side, if it is in the stored table."""

    def _facts(self) -> Mapping[str, Any]:
        names = ("lags", "lower", "upper", "lower_by", "upper_by")
        return {name: getattr(self, name) for name in names}

    @property
    def exact(self) -> bool:
        """Return whether the least number is known."""
        return self.lower == self.upper


def exact_heads(lags: Sequence[int], *, time_limit: float = 10.0) -> ExactHeads:
    """Return bounds on the least number of heads for the exact posterior, if heads may
    mix lags.

    `least_heads` answers the same question for heads that mix nothing.

    Args:
        lags: The set of lags.
        time_limit: Seconds for `least_heads`.

    Returns:
        A lower and an upper bound on the number of heads, with their sources.

    >>> answer = exact_heads((1, 2, 3))
    >>> answer.lower, answer.upper
    (2, 2)
    """
    lags = check_lags(lags)
    unmixed, (step, count) = least_heads(lags, time_limit=time_limit).heads, progression(lags)
    if len(lags) > 1 and count - 1 < unmixed:
        inside = (
            "lags in arithmetic progression"
            if count == len(lags)
            else f"lags within {count} in progression"
        )
        upper, upper_by = count - 1, f"closed form: {inside}, step {step}"
    else:
        upper, upper_by = unmixed, "nothing mixed: a colouring of the offsets"
    bound = rank_bound(lags, upper)
    lower, lower_by = (
        max(bound.heads, 1),
        f"the matrix prescribed at the offsets {bound.offsets} has rank {bound.heads}",
    )
    if len(lags) == 1:
        lower_by = "a layer has a head"
    if len(lags) > 2 > lower:
        lower, lower_by = 2, "one head is exact for two lags only"
    searched = kept_brackets().get(normal_form(lags)) if len(lags) > 1 else None
    return ExactHeads(lags, upper, lower, upper_by, lower_by, bound, searched)
