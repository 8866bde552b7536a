"""A figure: the name of a picture of an experiment's data.

The module that draws it, NAME_figure.py, has

    CAPTION        the caption; or caption(config) if it depends on the configuration
    draw(data)     a matplotlib figure
    table(data)    rows of text, if the data has a table worth printing

The module is imported when something is drawn, not when figures are listed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any, Generic

from sih.results.experiment import Data, Experiment
from sih.results.tables import Rows


@dataclass(frozen=True)
class Figure(Generic[Data]):
    """A picture that `sih figure NAME` makes. Several figures may show one experiment's
    data.
    """

    name: str
    experiment: Experiment[Any, Data]
    drawing: str
    """The module that draws it."""

    def with_seed(self, seed: int) -> Figure[Data]:
        """Return the same figure with other random numbers."""
        return replace(self, experiment=self.experiment.with_seed(seed))

    def asking(self, **changes: Any) -> Figure[Data]:
        """Return the same picture of another task, under its own name: NAME-DIGEST."""
        experiment = self.experiment.asking(**changes)
        if experiment is self.experiment:
            return self
        digest = experiment.name.removeprefix(self.experiment.name)
        return replace(self, name=self.name + digest, experiment=experiment)

    def draw(self, data: Data) -> Any:
        """Return the picture of the data, a matplotlib figure."""
        return self.module.draw(data)

    def table(self, data: Data) -> Rows:
        """Return the table of the picture, no rows if there is none."""
        rows: Rows = self.module.table(data) if hasattr(self.module, "table") else []
        return rows

    @property
    def caption(self) -> str:
        """Return the caption."""
        module = self.module
        own = hasattr(module, "caption")
        words: str = module.caption(self.experiment.config) if own else module.CAPTION
        return words

    @property
    def module(self) -> Any:
        """Return the module that draws it, imported now."""
        return importlib.import_module(self.drawing)


def shown(experiment: Experiment[Any, Data]) -> Figure[Data]:
    """Return the figure with an experiment's name, drawn by the module NAME_figure next
    to its own.
    """
    return Figure(experiment.name, experiment, f"{experiment.compute.__module__}_figure")
