"""The model zoo: every shipped model, how it was trained, how good it is and when to
use it.

`docs/models.md` is this page, written by `sih models --page docs/models.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from sih.attention.head_reading import SELECTS, exact_selection, read_head
from sih.base.files import atomic_write, read_json, reading, write_json
from sih.results.models import circuit_heads
from sih.results.tables import braces
from sih.task import Task, sample
from sih.training.config import TrainConfig
from sih.training.how_trained import (
    PAPER_KINDS,
    how_trained,
    is_papers_setting,
    trained_briefly,
)
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED

VERSION = 1
"""The version of the JSON listings."""
READ = 512
"""Sequences on which the last layer is read."""
SELECTIVE = SHIPPED / "selective.json"
"""For each shipped model, its last layer's attention to the true lag's candidate, and
the exact posterior."""

UNAIDED = "Unaided training, standard transformers"
UNAIDED_HEADS = "Unaided training, one or few second-layer heads"
UNAIDED_KIND = "Unaided training, other kinds of transformer"
USUAL = "Presets, the circuit's heads"
OTHER_HEADS = "Presets, fewer or more second-layer heads"
DEPTHS = "Presets, other depths"
DISENTANGLED = "Presets, disentangled transformers"
OTHER_TASKS = "Other tasks"
USES: dict[str, str] = {
    UNAIDED: "Use these to study what gradient descent finds without help. `paper-1.2.3` has the "
    "paper's length; the others have shorter sequences.",
    UNAIDED_HEADS: "Use these to study what unaided training does with fewer heads than the circuit "
    "needs.",
    UNAIDED_KIND: "Use these to study unaided training of other architectures.",
    USUAL: "Use these as models with a selective head in a standard transformer. `standard-1.2.3` is "
    "the usual first choice. Do not cite them as evidence of unaided training.",
    OTHER_HEADS: "Use these to study how many second-layer heads the task needs.",
    DEPTHS: "Use these to study depth. Two layers do not solve the task.",
    DISENTANGLED: "Use these to read mechanisms: tokens and positions have separate coordinates. "
    "`disentangled-1.2.3` is the usual first choice.",
    OTHER_TASKS: "Use these for tasks that differ from the paper's.",
}
"""The sections of the page, with advice on when to use their models."""


def use_of(config: TrainConfig) -> str:
    """Return the section of the page that a model belongs to.

    >>> use_of(TrainConfig())
    'Unaided training, standard transformers'
    """
    kind, heads, lags = config.model.kind, config.heads, config.task.lags
    if not config.task.is_paper_task:
        return OTHER_TASKS
    unaided = trained_briefly(config).endswith("only")
    needed = heads == circuit_heads(lags)
    if unaided:
        return UNAIDED_KIND if kind != PAPER_KINDS[0] else UNAIDED if needed else UNAIDED_HEADS
    if len(heads) != len(circuit_heads(lags)):
        return DEPTHS
    if kind == "disentangled":
        return DISENTANGLED
    return USUAL if needed else OTHER_HEADS


@torch.no_grad()
def selection_of(run: Run) -> tuple[float, float] | None:
    """Return the attention of the last layer's most selective head to the true lag's
    candidate.

    The second number is the exact posterior of that lag at the same queries. None for
    other tasks than `Task`.
    """
    task = run.task
    if not isinstance(task, Task):
        return None
    batch = sample(task, READ, rng=0)
    model = run.model
    found = []
    for part in range(0, READ, 64):
        layer = model.trace(batch.tokens[part : part + 64]).attention[-1]
        found.append(layer[..., model.first :, :])
    exact, last = exact_selection(batch, task), torch.cat(found)
    heads = (
        read_head(f"{head}", last[:, head], batch, task, exact=exact)
        for head in range(last.shape[1])
    )
    return max(round(head.selected, 3) for head in heads), round(exact, 3)


def measure_selections(runs: Iterable[Run], path: Path = SELECTIVE) -> dict[str, Any]:
    """Measure `selection_of` the runs that are missing in the file, and write the file
    for these runs alone.
    """
    known = selections()
    found = {run.name: known[run.name] if run.name in known else selection_of(run) for run in runs}
    write_json(path, found, indent=1)
    return found


def selections() -> dict[str, Any]:
    """Return the entries of the file, empty if there is none."""
    if not SELECTIVE.exists():
        return {}
    with reading(SELECTIVE, "holds no selections"):
        found: dict[str, Any] = read_json(SELECTIVE)
        return found


def selective(name: str) -> bool | None:
    """Return whether a shipped model has a selective head; None if that was not
    measured.
    """
    pair = selections().get(name)
    return None if pair is None else pair[0] >= SELECTS * pair[1]


def entry(run: Run) -> dict[str, Any]:
    """Return a run's entry in the JSON listings; a run not yet evaluated has None for each measure."""
    config, evaluation = run.config, run.evaluation
    measures: dict[str, Any] = dict.fromkeys(("kl", "ml", "bma", "kl_over_ml"))
    if evaluation is not None:
        for name in measures:
            measure = getattr(evaluation, name)
            measures[name] = {"mean": measure.mean, "error": measure.error}
    trained_as = {
        "trained": how_trained(config),
        "papers_setting": is_papers_setting(config),
        "steps": config.optimiser.steps,
        "seed": config.seed,
    }
    return {
        "name": run.name,
        "kind": config.model.kind,
        "lags": list(config.task.lags),
        "length": config.task.length,
        "heads": list(config.heads),
        **trained_as,
        **measures,
        "sequences": evaluation.sequences if evaluation is not None else None,
        "circuit_found": evaluation.found if evaluation is not None else None,
    }


def model_entry(run: Run) -> dict[str, Any]:
    """Return a shipped model's entry in `sih models --json`."""
    section = use_of(run.config)
    return {
        **entry(run),
        "selective_head": selective(run.name),
        "group": section,
        "use": USES[section],
    }


def listing(name: str, entries: Sequence[dict[str, Any]]) -> str:
    """Return entries as one JSON document."""
    return json.dumps({"version": VERSION, name: list(entries)}, indent=1, allow_nan=False)


def page(runs: Sequence[Run]) -> str:
    """Return the page of the model zoo as Markdown: one table per section."""
    by_use: dict[str, list[Run]] = {section: [] for section in USES}
    for run in runs:
        by_use[use_of(run.config)].append(run)
    parts = [HEAD.format(number=len(runs))]
    for section, found in by_use.items():
        if found:
            rows = "\n".join(map(_row, found))
            parts.append(f"## {section}\n\n{USES[section]}\n\n{COLUMNS}\n{rows}")
    ways: dict[str, set[str]] = {}
    for run in runs:
        ways.setdefault(trained_briefly(run.config), set()).add(_way(run.config))
    meanings = "\n".join(
        f"| {brief} | {'; or '.join(sorted(whole))} |" for brief, whole in sorted(ways.items())
    )
    parts.append(
        f"## How they were trained\n\n{WAYS}\n\n| words | meaning |\n|---|---|\n{meanings}"
    )
    return "\n\n".join(parts) + "\n"


UNAIDED_WAY = "random initial weights, a constant learning rate, all weights trained from the start"
COLUMNS = (
    "| name | lags | length | heads | trained | KL/ML | selective |\n|---|---|---|---|---|---|---|"
)
WAYS = (
    "The column *trained* has the optimiser and its most important addition. "
    "`sih runs show NAME` prints the command that trains a model."
)
HEAD = """\
# Model zoo

<!-- Written by `sih models --page docs/models.md`. Do not edit. -->

The package ships {number} trained models. `sih.load(NAME)` returns a model, `sih.open_run(NAME)` its run: task,
configuration and metrics. `sih models` prints these tables in short, `sih models --json` in full.

The tables have one row per model.

- *Lags*, *length*, *heads*: the lags of the task, the tokens in a sequence, the heads of each layer.
- *Trained*: the way of training, and the number of steps.
- *KL/ML*: mean KL to the true distribution, divided by that of maximum likelihood on the same fresh sequences, 8,192
  or more. Below 1 is better. The error is two standard errors (`sih.evaluate`).
- *Selective*: yes if a head of the last layer puts at least 0.8 of the exact posterior on the candidate of the true
  lag, over 512 sequences."""


def _way(config: TrainConfig) -> str:
    """Return a model's training, without numbers of steps."""
    if trained_briefly(config).endswith("only"):
        return UNAIDED_WAY
    return re.sub(r" for [\d,]+ of [\d,]+ steps", " at first", how_trained(config))


def write_page(path: Path, runs: Sequence[Run]) -> None:
    """Write the page, after reading the last layers of all models if one is missing in
    the file.
    """
    if {run.name for run in runs} != selections().keys():
        measure_selections(runs)
    with atomic_write(path) as file:
        file.write(page(runs).encode())


def _row(run: Run) -> str:
    config = run.config
    ratio = run.evaluation.kl_over_ml.with_error() if run.evaluation else "not measured"
    found = {True: "yes", False: "no", None: "not measured"}[selective(run.name)]
    trained = f"{trained_briefly(config)}; {config.optimiser.steps:,} steps"
    heads = ", ".join(map(str, config.heads))
    cells = (f"`{run.name}`", braces(config.task.lags), f"{config.task.length}", f"[{heads}]")
    return f"| {' | '.join((*cells, trained, ratio, found))} |"
