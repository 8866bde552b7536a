"""Every figure by name, in the order of the paper, ours last. A new experiment is one more name in `MODULES`.

An experiment is a module with `NAME`, `CAPTION`, a frozen dataclass `Config`, `config()`, `compute(config)` and
`draw(data)`; with `FIGURES`, names and configurations, if it makes several; with `models(config, store)`, the names
of the trained models it reads, `compute` takes the store too; with `table(data)`, a header and rows.
"""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass
from typing import Any, get_type_hints

from sih.experiments import (
    agreement,
    attention_maps,
    beta,
    certificates,
    claim_cumulative,
    claim_expectations,
    claim_histogram,
    constructions,
    errata,
    mechanism,
    scaling,
    teaser,
    trained,
    wrong_lag,
)
from sih.experiments import head_counts as heads
from sih.experiments import reference_predictors as predictors
from sih.experiments import training_courses as recipes
from sih.runs.run_store import RunStore

MODULES = (
    teaser,
    mechanism,
    certificates,
    claim_histogram,
    beta,
    predictors,
    constructions,
    trained,
    attention_maps,
    agreement,
    scaling,
    claim_expectations,
    claim_cumulative,
    wrong_lag,
    heads,
    errata,
    recipes,
)


@dataclass(frozen=True)
class Entry:
    """A figure: a module's name and what is asked of it."""

    name: str
    module_name: str
    config: Any

    @property
    def module(self) -> Any:
        return importlib.import_module(self.module_name)

    def models(self, store: RunStore) -> tuple[str, ...]:
        """Names of the trained models it reads, or would if they were there."""
        asked = getattr(self.module, "models", None)
        return tuple(asked(self.config, store)) if asked else ()

    def compute(self, store: RunStore) -> Any:
        reads = hasattr(self.module, "models")
        return self.module.compute(self.config, store) if reads else self.module.compute(self.config)

    @property
    def data_type(self) -> Any:
        return get_type_hints(self.module.compute)["return"]

    def with_seed(self, seed: int) -> Entry:
        """The same on other random numbers; where nothing is random, the same."""
        seeded = any(field.name == "seed" for field in dataclasses.fields(self.config))
        return dataclasses.replace(self, config=dataclasses.replace(self.config, seed=seed)) if seeded else self


def _entries() -> dict[str, Entry]:
    found = {}
    for module in MODULES:
        for name, config in getattr(module, "FIGURES", {module.NAME: module.config()}).items():
            found[name] = Entry(name, module.__name__, config)
    return found


FIGURES: dict[str, Entry] = _entries()


def figure_named(name: str) -> Entry:
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}; the figures are {', '.join(FIGURES)}")
    return FIGURES[name]
