"""How often training succeeds: runs that differ in seed and matrix alone, counted together.

A run succeeds if its mean KL on held-out sequences is at most `SUCCESS` times maximum likelihood's.
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
    """Holds what became of one run: where it stands in a grid (`point`), how far it is and how good.

    `state` is "finished", "unfinished" (or not begun), or "failed: " and why. KL is in nats, past max_lag.
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
    """Holds the repetitions of one setting: how many succeeded, the 95 % interval of their rate, each one's KL / ML."""

    label: str
    runs: int
    succeeded: int
    interval: tuple[float, float]
    ratios: tuple[float, ...]
    core_seconds: float | None
    """mean of the finished runs that say."""


@dataclass(frozen=True)
class SuccessRates:
    """Holds every setting of a sweep, in the order of its grid."""

    settings: tuple[Setting, ...]


def outcome_of(run: Run, point: Mapping[str, Any], failed: str = "") -> Outcome:
    """Read what became of a run from its folder, which may not be there yet."""
    state = "finished" if run.finished else f"failed: {failed}" if failed else "unfinished"
    if not run.evaluations:
        return Outcome(run.name, point, state, 0)
    first, last, step = run.evaluations[0], run.evaluations[-1], run.metrics[-1]["step"]
    took = run.environment.get("core_seconds")
    return Outcome(run.name, point, state, step, last["kl"], first["ml"], first["bma"], took)


def success_rates(outcomes: list[Outcome]) -> SuccessRates:
    """Count successes among the runs that have ended, setting by setting."""
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
