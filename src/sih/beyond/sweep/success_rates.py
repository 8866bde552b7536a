"""Success rates of training: runs that differ in seed and matrix alone are counted
together.

A run succeeds if its mean KL on held-out sequences is at most `SUCCESS` times maximum
likelihood's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sih.base.stats import wilson
from sih.training.runs.run import Run

SUCCESS = 1.2
CHANCE = ("seed", "matrix_seed")
"""Fields in which repetitions of one setting differ."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run: its point in a grid (`point`), its progress and its
    quality.

    `state` is "finished", "unfinished" (or not begun), or "failed: " and the reason. KL
    is in nats, beyond max_lag.
    """

    name: str
    point: Mapping[str, Any]
    state: str
    step: int
    kl: float | None = None
    ml: float | None = None
    bma: float | None = None
    core_seconds: float | None = None

    @property
    def kl_over_ml(self) -> float | None:
        return self.kl / self.ml if self.kl is not None and self.ml else None

    @property
    def succeeded(self) -> bool:
        return (
            self.state == "finished" and self.kl_over_ml is not None and self.kl_over_ml <= SUCCESS
        )


@dataclass(frozen=True)
class Setting:
    """The repetitions of one setting: number of successes, 95 % interval of their rate,
    KL / ML of each.
    """

    label: str
    runs: int
    succeeded: int
    interval: tuple[float, float]
    ratios: tuple[float, ...]
    core_seconds: float | None
    """Mean of the finished runs that report it."""


@dataclass(frozen=True)
class SuccessRates:
    """Every setting of a sweep, in the order of its grid."""

    settings: tuple[Setting, ...]


def outcome_of(run: Run, point: Mapping[str, Any], failed: str = "") -> Outcome:
    """Return the outcome of a run from its folder, which may not exist yet."""
    state = "finished" if run.finished else f"failed: {failed}" if failed else "unfinished"
    if not run.evaluations:
        return Outcome(run.name, point, state, 0)
    first, last, step = run.evaluations[0], run.evaluations[-1], run.metrics[-1]["step"]
    took = run.environment.get("core_seconds")
    return Outcome(run.name, point, state, step, last["kl"], first["ml"], first["bma"], took)


def success_rates(outcomes: list[Outcome]) -> SuccessRates:
    """Return the success rates of each setting, over the runs that have ended."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(_label(outcome.point), []).append(outcome)
    settings = []
    for label, group in groups.items():
        ended = [outcome for outcome in group if outcome.state != "unfinished"]
        succeeded = sum(outcome.succeeded for outcome in ended)
        ratios = tuple(
            o.kl_over_ml for o in ended if o.state == "finished" and o.kl_over_ml is not None
        )
        seconds = [
            o.core_seconds for o in ended if o.state == "finished" and o.core_seconds is not None
        ]
        mean = sum(seconds) / len(seconds) if seconds else None
        settings.append(
            Setting(label, len(ended), succeeded, wilson(succeeded, len(ended)), ratios, mean)
        )
    return SuccessRates(tuple(settings))


def _label(point: Mapping[str, Any]) -> str:
    words = [f"{field} {_words(value)}" for field, value in point.items() if field not in CHANCE]
    return ", ".join(words) or "all runs"


def _words(value: Any) -> str:
    return "{" + ",".join(map(str, value)) + "}" if isinstance(value, tuple) else str(value)
