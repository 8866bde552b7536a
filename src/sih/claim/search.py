"""Search for counterexamples to Claim 1: descents over many chains, lag sets and true
lags.

A search is an endless sequence of rounds. Round n depends only on the configuration and
n. So a stopped search can be resumed, and two machines can share one. Rounds yield
results; the caller writes them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from sih.base.errors import FieldError, check_choice, check_sizes
from sih.base.files import read_json, reading, write_json, write_rows
from sih.claim.coverage import OPEN, claim_status
from sih.claim.falsifier import Descents, SearchedClaim, descend
from sih.claim.search_starts import FAMILIES, STARTS
from sih.task import check_lags

STATE = "search.json"
WORST = "worst.csv"


@dataclass(frozen=True)
class SearchConfig:
    """Settings of a search: rounds cycle through the pairs (states, sizes), and each
    draws its lags and its true lag.

    Lags are at most `max_lag`, or exactly `lags` if given. `statement` is "claim", or a
    false statement that tests the search: "wrong-lag" (another lag than the true one is
    favoured) or "non-stationary" (the chains' start is searched too). `open_only` omits
    every pair of true lag and rival that is a theorem for the matrices searched, those
    of a `family`. `begin` lists the kinds of starts (STARTS), one per round in turn.
    """

    states: tuple[int, ...] = (3, 4, 5, 6)
    sizes: tuple[int, ...] = (3, 4, 5, 6, 7, 8)
    max_lag: int = 12
    lags: tuple[int, ...] | None = None
    starts: int = 64
    steps: int = 120
    seed: int = 0
    statement: str = "claim"
    open_only: bool = False
    family: str = "any"
    begin: tuple[str, ...] = ("random",)

    def __post_init__(self) -> None:
        if self.lags is not None:
            object.__setattr__(self, "lags", check_lags(self.lags))
            object.__setattr__(self, "sizes", (len(self.lags),))
            object.__setattr__(self, "max_lag", self.lags[-1])
        if not self.states or min(self.states) < 2:
            raise FieldError(
                "states",
                f"states are numbers of states, 2 or more each, e.g. 3 4 5; got {self.states}",
            )
        if not self.sizes or min(self.sizes) < 2 or max(self.sizes) > self.max_lag:
            allowed = f"sizes are numbers of lags, each from 2 to max_lag={self.max_lag}"
            raise FieldError("sizes", f"{allowed}; got {self.sizes}")
        check_sizes(starts=self.starts, steps=self.steps)
        check_choice("statement", self.statement, ("claim", "wrong-lag", "non-stationary"))
        check_choice("family", self.family, tuple(FAMILIES))
        if self.open_only and self.statement != "claim":
            raise FieldError(
                "open_only", "open_only is about the pairs of Claim 1; leave out the statement"
            )
        if not self.begin or not set(self.begin) <= set(STARTS):
            raise FieldError(
                "begin", f"begin is one or more of {', '.join(STARTS)}; got {self.begin}"
            )
        if (
            self.lags
            and self.open_only
            and not any(self.open_pairs(self.lags, size) for size in self.states)
        ):
            raise FieldError(
                "lags", f"no pair of lags of {self.lags} is open for these matrices; try (1, 2, 4)"
            )

    def open_pairs(self, lags: tuple[int, ...], num_states: int) -> list[tuple[int, int]]:
        """Return the pairs (true lag, rival) for which Claim 1 is unproved on these
        matrices.
        """
        status = claim_status(lags, states=num_states, reversible=self.family != "any")
        return [pair for pair, word in status.items() if word == OPEN]

    @property
    def cells(self) -> list[tuple[int, int]]:
        return [(num_states, size) for num_states in self.states for size in self.sizes]


@dataclass(frozen=True)
class Worst:
    """The place of the least normalised gap of a cell."""

    num_states: int
    num_lags: int
    ratio: float
    gap: float
    lags: tuple[int, ...]
    true_lag: int
    rival: int
    P: list[list[float]]


@dataclass(frozen=True)
class SearchState:
    """Results of a search so far, by cell: a number of states and of lags."""

    config: SearchConfig
    rounds: int = 0
    descents: dict[str, int] = field(default_factory=dict)
    violations: int = 0
    below: dict[str, int] = field(default_factory=dict)
    """Descents of a cell that ended below 1 / (number of lags) by more than 1e-9."""
    worst: dict[str, Worst] = field(default_factory=dict)

    def after(self, num_states: int, found: Descents) -> "SearchState":
        """Return the state after one more round."""
        claim, ratio = found.claim, found.ratio[0].item()
        cell = f"{num_states} states, {len(claim.lags)} lags"
        worst = self.worst
        if cell not in worst or ratio < worst[cell].ratio:
            where = (claim.lags, claim.true_lag, int(found.rival[0]), found.P[0].tolist())
            worst = worst | {
                cell: Worst(num_states, len(claim.lags), ratio, found.gap[0].item(), *where)
            }
        descents = self.descents | {cell: self.descents.get(cell, 0) + len(found.ratio)}
        below = self.below | {
            cell: self.below.get(cell, 0) + int((found.ratio < 1 / len(claim.lags) - 1e-9).sum())
        }
        return SearchState(
            self.config, self.rounds + 1, descents, self.violations + found.violations, below, worst
        )

    @property
    def least(self) -> Worst | None:
        return min(self.worst.values(), key=lambda w: w.ratio, default=None)

    def save(self, folder: Path) -> None:
        """Write search.json, and the worst matrix of all as worst.csv, which
        `sih claim --matrix` reads.
        """
        write_json(folder / STATE, asdict(self), indent=1)
        if self.least is not None:
            write_rows(folder / WORST, self.least.P)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the state that `save` wrote."""
        with reading(folder / STATE, "is not the state of a search; give another folder"):
            value: dict[str, Any] = read_json(folder / STATE)
            settings: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in value["config"].items()
            }
            worst = {k: Worst(**{**w, "lags": tuple(w["lags"])}) for k, w in value["worst"].items()}
            return cls(**{**value, "config": SearchConfig(**settings), "worst": worst})


def rounds(config: SearchConfig, first: int = 0) -> Iterator[tuple[int, Descents]]:
    """Yield the number of states and the descents of rounds `first`, `first` + 1, ...
    without end.
    """
    for number in itertools.count(first):
        rng = torch.Generator().manual_seed(
            int(np.random.SeedSequence([config.seed, number]).generate_state(1)[0])
        )
        num_states, size = config.cells[number % len(config.cells)]
        begin = config.begin[number // len(config.cells) % len(config.begin)]
        claim = (
            _draw_open(config, size, num_states, rng)
            if config.open_only
            else _draw_claim(config, size, rng)
        )
        settings = {"starts": config.starts, "steps": config.steps}
        yield (
            num_states,
            descend(claim, num_states, **settings, rng=rng, begin=begin, family=config.family),
        )


def _draw_claim(config: SearchConfig, size: int, rng: torch.Generator) -> SearchedClaim:
    """Return random lags and a true lag, half the time the smallest, which ties the
    most positions together.
    """
    drawn = (torch.randperm(config.max_lag, generator=rng)[:size] + 1).sort().values.tolist()
    lags = config.lags or tuple(drawn)
    first, second = torch.randperm(size, generator=rng)[:2].tolist()
    if torch.rand((), generator=rng) < 0.5 and second != 0:
        first = 0
    favoured = lags[second] if config.statement == "wrong-lag" else None
    return SearchedClaim(
        lags, lags[first], favoured, stationary=config.statement != "non-stationary"
    )


def _draw_open(
    config: SearchConfig, size: int, num_states: int, rng: torch.Generator
) -> SearchedClaim:
    """Return random lags with an open pair, and a true lag with open rivals, half the
    time the smallest.
    """
    for _ in range(1000):
        lags = _draw_claim(config, size, rng).lags
        pairs = config.open_pairs(lags, num_states)
        true_lags = sorted({k for k, _ in pairs})
        if true_lags:
            some = int(torch.randint(2 * len(true_lags), (), generator=rng))
            true_lag = true_lags[max(0, some - len(true_lags))]
            return SearchedClaim(
                lags, true_lag, against=tuple(r for k, r in pairs if k == true_lag)
            )
    raise ValueError(
        f"no {size} lags up to {config.max_lag} drawn have an open pair for {num_states} states"
    )
