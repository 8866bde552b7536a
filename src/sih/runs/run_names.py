"""Names of runs: what a name says is trained, and the name of a configuration."""

import re
from typing import Any

from sih.construction import heads_needed
from sih.models import KINDS
from sih.runs.run import CONFIG, Run
from sih.runs.run_store import SHIPPED
from sih.training.config import TrainConfig
from sih.training.config_file import digest
from sih.training.presets import preset

PAPER = {"paper": "standard", "paper-disentangled": "disentangled"}
"""What names of runs that are trained as in the paper begin with, and the kind of model that they stand for."""
_NAME = re.compile(
    r"(?P<kind>[a-z]+(?:-[a-z]+)?)-(?P<lags>\d+(?:\.\d+)*)(?:-(?P<heads>\d+(?:\.\d+)*))?"
    r"(?:-dim(?P<dim>\d+))?(?:-length(?P<length>\d+))?(?:-seed(?P<seed>\d+))?"
)


def named(name: str) -> TrainConfig:
    """Return what a name asks to train: a shipped model's own configuration, or what the parts of the name say.

    Names are KIND-LAGS[-HEADS][-dimN][-lengthN][-seedN], trained by preset `auto`. `paper` and `paper-disentangled` in
    place of a kind stand for the paper's own setting. Heads are those of each layer, the circuit's unless given.

    >>> config = named("standard-1.2.3.4.6-1.3.1")
    >>> config.task.lags, config.heads
    ((1, 2, 3, 4, 6), (1, 3, 1))
    >>> named("paper-1.3.4-length64").task.length
    64
    """
    shipped = SHIPPED / name
    if name and (shipped / CONFIG).is_file():
        return Run(shipped).config
    found = _NAME.fullmatch(name)
    if found is None or found["kind"] not in (*PAPER, *KINDS):
        raise ValueError(f"a model's name is like standard-1.2.3 or disentangled-1.3-1.1.1-seed1; got {name!r}")
    kind, lags = found["kind"], _numbers(found["lags"])
    heads = _numbers(found["heads"]) if found["heads"] else (1, heads_needed(lags), 1)
    changes: dict[str, Any] = {"lags": lags, "heads": heads}
    changes |= {name: int(found[name]) for name in ("dim", "length", "seed") if found[name]}
    if kind in PAPER:
        return preset("paper", **changes, model=PAPER[kind])
    return preset("auto", **changes, model=kind, evaluate_every=100)


def _numbers(dotted: str) -> tuple[int, ...]:
    return tuple(int(number) for number in dotted.split("."))


def run_name(config: TrainConfig) -> str:
    """Return a name made from the configuration's content, so that one configuration has one folder.

    >>> run_name(TrainConfig()).rsplit("-", 1)[0]  # a digest of every field follows
    'standard-1.2.3-heads-1.3.1'
    """
    lags, heads = (".".join(map(str, numbers)) for numbers in (config.task.lags, config.heads))
    return f"{config.model.kind}-{lags}-{f'heads-{heads}-' if heads else ''}{digest(config)}"
