r"""Cases of Claim 1 that are theorems, for any lag set: the conditions proved in
docs/proofs/theorem.md.

For a true lag k and a rival r the conditions concern the classes $c(k)$ and $c(r)$,
where $c(j) = \{l \in \mathcal K : l \equiv j \bmod k\}$.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sih.base.errors import FieldError, check_kind, described, is_whole
from sih.claim.exact import chains
from sih.task import check_lags

OPEN = "open"
CASES = ((0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (0, 1), (1, 1), (2, 1))
"""Pairs (companions of the true lag, companions of the rival) for which Lemma D is
proved."""


@dataclass(frozen=True)
class Pair:
    """A true lag k and a rival r, with the classes c(k) and c(r) of the lags modulo k,
    in increasing order.
    """

    lags: tuple[int, ...]
    true_lag: int
    rival: int
    own: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def inside(self) -> bool:
        return self.rival in self.own

    @property
    def in_a_row(self) -> bool:
        """Return whether the true lag's class is {k, k + j, k + 2j}."""
        return len(self.own) == 3 and self.own[0] + self.own[2] == 2 * self.own[1]


def _exchanged(pair: Pair) -> bool:
    return not pair.inside and pair.others == tuple(
        lag + pair.rival - pair.true_lag for lag in pair.own
    )


def _exchanged_backwards(pair: Pair) -> bool:
    return pair.others == tuple(sorted(pair.rival + pair.true_lag - lag for lag in pair.own))


def pairs(lags: Sequence[int]) -> list[Pair]:
    """Return every true lag with every rival, in the order of the lags."""
    lags = check_lags(lags)
    found = []
    for k in lags:
        classes = {lag: chain.lags[::-1] for chain in chains(lags, k) for lag in chain.lags}
        found += [Pair(lags, k, r, classes[k], classes[r]) for r in lags if r != k]
    return found


THEOREMS: dict[str, Callable[[Pair], bool]] = {
    "two lags": lambda pair: len(pair.lags) == 2,
    "exchange": _exchanged,
    "Lemma E": lambda pair: pair.own == (pair.true_lag, pair.rival),
    "Lemma D": lambda pair: not pair.inside and (len(pair.own) - 1, len(pair.others) - 1) in CASES,
    "Lemma M": lambda pair: not pair.inside and (len(pair.own), len(pair.others)) == (1, 3),
    "Lemma T": lambda pair: pair.in_a_row and pair.rival == pair.own[1],
}
"""Theorems for every P, by name, the strongest first: the first two give a gap of N/2."""

FOR_SOME: dict[str, Callable[[Pair], bool]] = {
    "reversible": _exchanged_backwards,
    "2 states": lambda pair: True,
    "3 states": lambda pair: pair.in_a_row and pair.own == pair.lags,
}
"""Further theorems, for the matrices in their names."""


def claim_status(
    lags: Sequence[int], *, states: int | None = None, reversible: bool = False
) -> dict[tuple[int, int], str]:
    """Return for each pair (true lag, rival) whether Claim 1 is a theorem.

    Args:
        lags: Two or more lags.
        states: Consider only matrices with this number of states. Default: any number.
        reversible: Consider only reversible matrices.

    Returns:
        A dict from (true lag, rival) to "proven: " with the theorem's name, or "open".

    >>> claim_status((1, 2, 3))[1, 2], claim_status((1, 2, 3))[1, 3]
    ('proven: Lemma T', 'open')
    >>> claim_status((1, 2, 3), states=3)[1, 3]
    'proven: 3 states'
    """
    if len(check_lags(lags)) < 2:
        raise ValueError(f"a comparison needs at least 2 lags, e.g. (1, 2, 3); got {lags}")
    if states is not None and not (is_whole(states) and states >= 2):
        raise FieldError(
            "states", f"states is a number of states, 2 or more; got {described(states)}"
        )
    check_kind("reversible", reversible, bool, "True or False")
    more = [
        name
        for name in FOR_SOME
        if name == f"{states} states" or (reversible and name == "reversible")
    ]
    known = THEOREMS | {name: FOR_SOME[name] for name in more}
    proofs = {
        pair: [f"proven: {name}" for name, applies in known.items() if applies(pair)]
        for pair in pairs(lags)
    }
    return {
        (pair.true_lag, pair.rival): found[0] if found else OPEN for pair, found in proofs.items()
    }
