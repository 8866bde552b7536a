"""The formation of a circuit in training: measurements at kept steps, and their file.

`formation.json` has the SHA-256 of the trained weights. Beside other weights, or in
another version, it is not read. `sih.attention.circuit_formation` measures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sih.base.files import check_entries, read_json, reading, write_json
from sih.base.showing import Shown, Words
from sih.base.stats import Estimate
from sih.training.runs.evaluation import has_found, plain_pair, read_pair, rounded

FORMATION = "formation.json"
VERSION = 1
"""Changes whenever the same weights would get other numbers."""
COPYING, SELECTIVE = 0.5, 0.8
"""Least attention to one offset in a copying head, and least share of the posterior in
a selective head."""
EVENTS = {"copying": "copying", "selective": "a selective head", "circuit": "the circuit"}
"""The events, and their names in words."""


@dataclass(frozen=True, eq=False)
class Checkpoint(Shown):
    """The measurements of one model in training.

    Args:
        step: updates made.
        copies: of each layer below the last, the largest mean attention of one head to
            one offset of 1 or more.
        selected: attention of the last layer to the token that the true lag copies,
            over the lag's posterior.
        ways: `way` by number of tokens seen, from 17 on (`sih.evaluate`).
    """

    step: int
    copies: tuple[float, ...]
    selected: float
    ways: Mapping[str, Estimate[float]]

    @property
    def copying(self) -> bool:
        """Return whether a head below the last layer copies: half of its attention is
        on one offset.

        The offset is 1 or more.
        """
        return max(self.copies, default=0.0) >= COPYING

    @property
    def selective(self) -> bool:
        """Return whether a head of the last layer is selective.

        It has 0.8 of the posterior's weight on the true lag.
        """
        return self.selected >= SELECTIVE

    @property
    def circuit(self) -> bool:
        """Return whether `way` is at least 0.9 in every window from 17 tokens on."""
        return has_found(self.ways)


@dataclass(frozen=True, eq=False)
class Formation(Shown):
    """The steps at which copying, a selective head and the circuit first appear.

    Each is the first measured step that has it, or None if no measured step has it.
    """

    checkpoints: tuple[Checkpoint, ...]
    sequences: int

    @property
    def copying(self) -> int | None:
        """Return the first step with a head below the last layer that copies."""
        return self._first(lambda each: each.copying)

    @property
    def selective(self) -> int | None:
        """Return the first step with a selective head in the last layer."""
        return self._first(lambda each: each.selective)

    @property
    def circuit(self) -> int | None:
        """Return the first step at which the circuit is found."""
        return self._first(lambda each: each.circuit)

    @property
    def in_words(self) -> str:
        """Return all three in a line."""
        found = ((words, getattr(self, name)) for name, words in EVENTS.items())
        said = ", ".join(
            f"{words} {'never' if step is None else f'at step {step:,}'}" for words, step in found
        )
        first, last = self.checkpoints[0].step, self.checkpoints[-1].step
        return f"{said} (at {len(self.checkpoints)} measured steps, {first:,} to {last:,}; {self.sequences} sequences)"

    def _first(self, holds: Callable[[Checkpoint], bool]) -> int | None:
        return next((each.step for each in self.checkpoints if holds(each)), None)

    def _facts(self) -> Mapping[str, Any]:
        steps = Words(
            f"{len(self.checkpoints)} from {self.checkpoints[0].step} to {self.checkpoints[-1].step}"
        )
        return {
            **{name: getattr(self, name) for name in EVENTS},
            "checkpoints": steps,
            "sequences": self.sequences,
        }


def write_formation(folder: Path, found: Formation, weights: str) -> None:
    """Write the formation of the weights with this SHA-256 into a run's folder."""
    of = {"version": VERSION, "weights": weights, "sequences": found.sequences}
    write_json(
        folder / FORMATION,
        {**of, "checkpoints": [_plain(each) for each in found.checkpoints]},
        indent=1,
    )


def read_formation(folder: Path, weights: str) -> Formation | None:
    """Return the formation of the weights with this SHA-256, or None."""
    path = folder / FORMATION
    if not path.exists():
        return None
    with reading(path, "is no formation"):
        values = read_json(path)
        check_entries(values, {"version": int, "weights": str}, ("version", "weights"))
        if (values["version"], values["weights"]) != (VERSION, weights):
            return None
        check_entries(values, {"sequences": int, "checkpoints": list}, ("sequences", "checkpoints"))
        if not values["checkpoints"]:
            raise ValueError("checkpoints must hold at least one")
        return Formation(
            tuple(_checkpoint(each) for each in values["checkpoints"]), values["sequences"]
        )


def _plain(each: Checkpoint) -> dict[str, Any]:
    ways = {label: plain_pair(way) for label, way in each.ways.items()}
    copies = [rounded(number) for number in each.copies]
    return {"step": each.step, "copies": copies, "selected": rounded(each.selected), "ways": ways}


def _checkpoint(values: Any) -> Checkpoint:
    kinds: dict[str, type | tuple[type, ...]] = {
        "step": int,
        "copies": list,
        "selected": (int, float),
        "ways": dict,
    }
    check_entries(values, kinds, tuple(kinds))
    if not all(isinstance(number, int | float) for number in values["copies"]):
        raise ValueError(f"copies holds numbers; got {values['copies']!r:.60}")
    ways = {label: read_pair("ways", pair) for label, pair in values["ways"].items()}
    return Checkpoint(
        values["step"], tuple(map(float, values["copies"])), float(values["selected"]), ways
    )
