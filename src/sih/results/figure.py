"""A figure: the name of a picture of an experiment's data.

The module that draws it, NAME_figure.py, has

    CAPTION        what is shown; or, where it depends on what is asked, caption(config)
    draw(data)     a matplotlib figure
    table(data)    rows of text, if the data has a table worth printing

It is imported when something is drawn, not when figures are listed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any, Generic

from sih.results.experiment import Data, Experiment
from sih.results.tables import Rows


@dataclass(frozen=True)
class Figure(Generic[Data]):
    """What `sih figure NAME` makes. Several figures may show one experiment's data."""

    name: str
    experiment: Experiment[Any, Data]
    drawing: str
    """The module that draws it."""

    def with_seed(self, seed: int) -> Figure[Data]:
        """Return the same figure on other random numbers."""
        return replace(self, experiment=self.experiment.with_seed(seed))

    def asking(self, **changes: Any) -> Figure[Data]:
        """Return the same picture of another task, under a name of its own: NAME-DIGEST."""
        experiment = self.experiment.asking(**changes)
        if experiment is self.experiment:
            return self
        digest = experiment.name.removeprefix(self.experiment.name)
        return replace(self, name=self.name + digest, experiment=experiment)

    def draw(self, data: Data) -> Any:
        """Return the picture of the data, a figure of matplotlib."""
        return self.module.draw(data)

    def table(self, data: Data) -> Rows:
        """Return the table that goes with the picture, no rows if there is none."""
        rows: Rows = self.module.table(data) if hasattr(self.module, "table") else []
        return rows

    @property
    def caption(self) -> str:
        """Return what the picture shows, in words."""
        module = self.module
        own = hasattr(module, "caption")
        words: str = module.caption(self.experiment.config) if own else module.CAPTION
        return words

    @property
    def module(self) -> Any:
        """Return the module that draws it, imported now."""
        return importlib.import_module(self.drawing)


def shown(experiment: Experiment[Any, Data]) -> Figure[Data]:
    """Return the figure of an experiment's own name, drawn by the module beside its own."""
    return Figure(experiment.name, experiment, f"{experiment.compute.__module__}_figure")
