r"""Which cases of Claim 1 are theorems, for any lag set.

Fix the true lag k, a rival r, and let $c(j) = \{l \in \mathcal K : l \equiv j \bmod k\}$. Given the past the next
token has law $P(X_{i-k}, \cdot)$, so the gap $E_k - E_r$ is the sum over s, with $f = P(\cdot, s)$, of

$$\gamma_f = \mathbb E\Big[\frac{f(X_{i-k})\,(f(X_{i-k})-f(X_{i-r}))}{\sum_{l\in\mathcal K} f(X_{i-l})}\Big]
  \qquad (0/0 \text{ counts as } 0).$$

**Theorem.** Let P be any transition matrix with a stationary start. $\gamma_f \ge 0$ for *every* f >= 0, whether or
not it is a column of P, and so $E_k \ge E_r$, if one of these holds:

- (a) |c(k)| <= 2 and |c(r)| <= 2: Lemma E if r is in c(k), Lemma D if not;
- (a') r is not in c(k), and |c(k)| <= 3, |c(r)| <= 2 or |c(k)| <= 5, |c(r)| = 1: Lemma D;
- (a'') r is not in c(k), and |c(k)| = 1, |c(r)| = 3: Lemma M;
- (b) c(k) = {k, k+j, k+2j} and r = k+j: Lemma T;
- (c) r is not in c(k) and c(r) = c(k) + (r-k), of any size: exchange. Then $\gamma_f = \tfrac12\mathbb
  E[(Y-Z)^2/\Sigma]$.

Proof. Tokens whose positions differ mod k have no common ancestor. So the classes are independent, all tokens have law
$\pi$, and a class is a stretch of a stationary chain: neighbours l < l' are (l'-l)/k steps of P apart. Given the lags
outside c(k) and c(r) their sum R is a constant, and the two classes keep their law. (a), (a'), (a''): the lemmas ask
for no more than independent classes and equal marginals. (b): $(f(X_{i-k}), f(X_{i-k-j}))$ and $(f(X_{i-k-j}),
f(X_{i-k-2j}))$ have the same law. (c): the two classes have the same law and are independent, so exchanging them keeps
the law and $\Sigma$, and y(y-z) + z(z-y) = (y-z)^2; k is the least of c(k), so it changes places with r. ∎

**Strict.** If P is irreducible and aperiodic, $E_k > E_r$ in all these cases unless all rows of P are equal. For let
some f = P(., s) not be constant. Lemma E: its pointwise bound is strict where y differs from z, and Y = Z almost
surely for every s would make all rows equal, as every power of P is irreducible. Lemma T: likewise, its bound is
strict unless a = b = c (`test_lemma_t_is_strict`). Lemma D: take y = max f > z, which has positive probability; there
z' <= y and part (i) leaves (1-β)u^2 + βu^2/2 > 0. Lemma M: q > 0, and E + q(B-5/4) is a mixture of E >= 0 and of a
number above 0, the latter with a share of q(1-1/κ) > 0. Exchange: (Y-Z)^2 > 0 with positive probability.

Also: two lags have gap N/2, in any coupling (Lemma 1, `lemmas.py`). Two states: any lags (Two rows, `lemmas.py`). A
*reversible* P also has exchange where c(r) = r + k - c(k), the mirror image: r is outside c(k), or it is the last of a
c(k) that is its own mirror image. Three states: also r = k+2j, if $\mathcal K$ = {k, k+j, k+2j} (`three_in_a_row.py`).

**Which positions.** The law above is that of a stationary process. In a sequence made by Algorithm 1 the first $\hat
k$ tokens are independent draws from $\pi$ and lag k begins after them; positions count from 1 and $i > \hat k$. The
window is that of the stationary process from $i = 2\hat k-k+1$ on. (a), (a'), (a'') hold for every $i > \hat k$: equal
marginals and independent classes are all they use. (b) too: $X_{i-k-2j}$ either is at $\hat k-k+1$ or later, and then
the three are a stretch of a stationary chain, or it has no descendant in the window, so that it joins R and Lemma E
applies. (c) and the mirror images are for $i \ge 2\hat k-k+1$. Stationary marginals cannot be dropped
(`test_other_marginals_break_the_theorem`).

**Sharpness**: for f free of P the theorem does not extend much (`test_sharpness.py`, in fractions).

- *r in c(k).* Let p = (r-k)/k and let some lag l of c(k) have p not dividing (l-k)/k. Then $\gamma_f < 0$ for some P
  and f. Take P a long cycle and f along it nearly of period p: f at time t is $a_{t \bmod p}$, where the vector a
  moves slowly round a closed loop. As the loop is refined the sum of $\gamma_f$ along it tends to $\oint \sum_j
  a_j\,da_j/S_j$, $S_j = \sum_o n_o a_{j-o} + R$, with $n_o$ the number of lags of c(k) whose offset (l-k)/k is o mod
  p, and R that of the other classes (average over it; its law is the same all along). Let o be such an offset other
  than 0, and i = j-o. The derivative of the j-th coefficient in $a_i$ is $-n_o a_j/S_j^2 \ne 0$, that of the i-th in
  $a_j$ is $-n_{-o}\,a_i/S_i^2$, which tends to 0 as $a_i$ does. So the form is not closed, some loop has an integral
  other than 0, and one of its two directions a negative one. In particular the end of a class of three always fails,
  and so does its middle unless the first difference divides the second.
- *r outside.* False for |c(k)| = 1, |c(r)| = 6 and for |c(k)| = 9, |c(r)| = 1.

So where it is false for free f a proof must use that f is a column of P, and the sum over s. Of the paper's twelve
lags 31 of 132 pairs are left, and 16 of these are such: k = 1 (11), and k = 2 with r even (5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sih.checks import FieldError, check_kind, described, is_whole
from sih.task import check_lags
from sih.theory.claim import chains
from sih.theory.outside_class import CASES

OPEN = "open"


@dataclass(frozen=True)
class Pair:
    """A true lag k and a rival r, with the classes c(k) and c(r) of the lags modulo k, in increasing order."""

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
        """Whether the true lag's class is {k, k + j, k + 2j}."""
        return len(self.own) == 3 and self.own[0] + self.own[2] == 2 * self.own[1]


def _exchanged(pair: Pair) -> bool:
    return not pair.inside and pair.others == tuple(lag + pair.rival - pair.true_lag for lag in pair.own)


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
"""Theorems for every P, by name, the strongest first: those of the first two give a gap of N/2."""

FOR_SOME: dict[str, Callable[[Pair], bool]] = {
    "reversible": _exchanged_backwards,
    "2 states": lambda pair: True,
    "3 states": lambda pair: pair.in_a_row and pair.own == pair.lags,
}
"""Further theorems, for the matrices that their names say."""


def claim_status(
    lags: Sequence[int], *, states: int | None = None, reversible: bool = False
) -> dict[tuple[int, int], str]:
    """Say for each (true lag, rival) whether Claim 1 is a theorem: "proven: " and by what, or "open".

    Args:
        lags: two or more.
        states: only for matrices with so many states; for any number of them unless given.
        reversible: only for reversible matrices.

    >>> claim_status((1, 2, 3))[1, 2], claim_status((1, 2, 3))[1, 3]
    ('proven: Lemma T', 'open')
    >>> claim_status((1, 2, 3), states=3)[1, 3]
    'proven: 3 states'
    """
    if len(check_lags(lags)) < 2:
        raise ValueError(f"a comparison needs at least 2 lags, e.g. (1, 2, 3); got {lags}")
    if states is not None and not (is_whole(states) and states >= 2):
        raise FieldError("states", f"states is a number of states, 2 or more; got {described(states)}")
    check_kind("reversible", reversible, bool, "True or False")
    more = [name for name in FOR_SOME if name == f"{states} states" or (reversible and name == "reversible")]
    known = THEOREMS | {name: FOR_SOME[name] for name in more}
    proofs = {pair: [f"proven: {name}" for name, applies in known.items() if applies(pair)] for pair in pairs(lags)}
    return {(pair.true_lag, pair.rival): found[0] if found else OPEN for pair, found in proofs.items()}
