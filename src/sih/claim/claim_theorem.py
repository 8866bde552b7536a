"""Pairs of lags for which Claim 1 is a theorem, with the residue classes that decide
it. Beyond the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from sih.claim.coverage import claim_status
from sih.claim.exact import chains
from sih.claim.monte_carlo import PAPER_LAGS
from sih.results.experiment import Experiment


@dataclass(frozen=True)
class TheoremConfig:
    examples: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4))
    lags: tuple[int, ...] = PAPER_LAGS


@dataclass(frozen=True)
class LagClasses:
    """A lag set: for each true lag the classes of the lags modulo it, its own first,
    and each rival's status.
    """

    lags: tuple[int, ...]
    classes: tuple[tuple[tuple[int, ...], ...], ...]
    status: tuple[tuple[str, ...], ...]
    """`status[true lag][lag]`, empty if the two are equal."""

    def members(self, k: int, lag: int) -> tuple[int, ...]:
        """Return the class of a lag under the k-th true lag."""
        return next(members for members in self.classes[k] if lag in members)


@dataclass(frozen=True)
class TheoremCover:
    """The proved cases of Claim 1 for some small lag sets, and for a large one."""

    examples: tuple[LagClasses, ...]
    whole: LagClasses


def classes_of(lags: tuple[int, ...]) -> LagClasses:
    """Return the classes and the status of every pair of a lag set."""
    status = claim_status(lags)
    classes = (tuple(tuple(sorted(chain.lags)) for chain in chains(lags, k)) for k in lags)
    words = (tuple(status.get((k, r), "") for r in lags) for k in lags)
    return LagClasses(lags, tuple(classes), tuple(words))


def compute(config: TheoremConfig, store: object) -> TheoremCover:
    """Return the classes of every lag set."""
    examples = tuple(classes_of(lags) for lags in config.examples)
    return TheoremCover(examples, classes_of(config.lags))


EXPERIMENT = Experiment("claim_theorem", TheoremConfig(), TheoremCover, compute)
