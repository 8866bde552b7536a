"""For which pairs of lags Claim 1 is a theorem, and the residue classes that decide it. Beyond the paper."""

from dataclasses import dataclass

from sih.results.experiment import Experiment, Rows
from sih.runs.run_store import RunStore
from sih.theory.claim import chains
from sih.theory.coverage import OPEN, claim_status
from sih.theory.monte_carlo import PAPER_LAGS

CAPTION = (
    "Where Claim 1 is a theorem. Left: under true lag k (red) the tokens that the lags point at fall into independent "
    "chains, one for each residue class of the lags modulo k; the letter under a rival is the lemma that puts it below "
    "the true lag for every transition matrix, a question mark an open case. Right: the paper's twelve lags; a number "
    "is the size of the lag's class, on the diagonal of the true lag's own, and a box marks rivals in the true lag's "
    "class. Nothing is sampled and no models are trained."
)


@dataclass(frozen=True)
class TheoremConfig:
    examples: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4))
    lags: tuple[int, ...] = PAPER_LAGS


@dataclass(frozen=True)
class LagClasses:
    """A lag set: for each true lag the classes of the lags modulo it, its own first, and each rival's status."""

    lags: tuple[int, ...]
    classes: list[list[list[int]]]
    status: list[list[str]]
    """`status[true lag][lag]`, empty where they are one."""

    def members(self, k: int, lag: int) -> list[int]:
        """The class of a lag under the k-th true lag."""
        return next(members for members in self.classes[k] if lag in members)


@dataclass(frozen=True)
class TheoremCover:
    """What is proven of Claim 1 for some small lag sets, and for a large one."""

    examples: list[LagClasses]
    whole: LagClasses


def classes_of(lags: tuple[int, ...]) -> LagClasses:
    """The classes and the status of every pair of a lag set."""
    status = claim_status(lags)
    classes = [[sorted(chain.lags) for chain in chains(lags, k)] for k in lags]
    return LagClasses(lags, classes, [[status.get((k, r), "") for r in lags] for k in lags])


def compute(config: TheoremConfig, store: RunStore) -> TheoremCover:
    return TheoremCover([classes_of(lags) for lags in config.examples], classes_of(config.lags))


def proven(data: LagClasses) -> tuple[int, int]:
    """How many pairs of true lag and rival are theorems, and how many there are."""
    words = [word for row in data.status for word in row if word]
    return sum(word != OPEN for word in words), len(words)


def table(data: TheoremCover) -> Rows:
    """One row for each true lag and rival of the large set."""
    rows = [["true lag", "rival", "class of the true lag", "class of the rival", "Claim 1"]]
    for j, k in enumerate(data.whole.lags):
        for i, r in enumerate(data.whole.lags):
            if r != k:
                sizes = (" ".join(map(str, data.whole.members(j, lag))) for lag in (k, r))
                rows.append([str(k), str(r), *sizes, data.whole.status[j][i]])
    return rows


EXPERIMENT = Experiment(
    "claim_theorem", CAPTION, TheoremConfig(), TheoremCover, compute, table=table
)
