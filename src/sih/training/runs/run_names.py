"""Names of runs: the configuration for a name, and the name of a configuration."""

import re
from typing import Any

from sih.heads import heads_needed
from sih.models import KINDS
from sih.task.matrices import RANDOM
from sih.training.config import TrainConfig
from sih.training.config_file import digest
from sih.training.presets import preset
from sih.training.recipes import all_recipes
from sih.training.runs.run import CONFIG, Run
from sih.training.runs.run_store import SHIPPED

PAPER = {"paper": "standard", "paper-disentangled": "disentangled", "relative": "relative"}
"""First words of names of runs that are trained as in the paper, and the kind of model
of each."""
HEADS = {"relative": (1, 1, 1)}
"""The heads of a kind's circuit, if they do not depend on the lags."""
LAWS = {"matrix": "dirichlet", **{law: law for law in RANDOM if law != "dirichlet"}}
"""Words before the seed of a matrix in a name, and the distribution of matrices for
each."""


def named(name: str) -> TrainConfig:
    """Return a shipped model's configuration, or one built from the name's parts.

    Names are
    KIND-LAGS[-HEADS][-statesN][-dimN][-reachN][-lengthN][-LAWN][-INIT][-soft][-seedN],
    trained by preset `auto`. `paper` and `paper-disentangled` in place of a kind stand
    for the paper's own setting, in which `relative` is trained, too. Heads are those of
    each layer, by default the circuit's. There are 5 states by default. `reachN` is for
    a relative model. LAWN is the matrix: `uniform11` is the distribution uniform with
    seed 11, `matrix3` the default one with seed 3. INIT is a recipe. `soft` makes the
    distribution of the next token the target.

    >>> config = named("standard-1.2.3.4.6-1.3.1")
    >>> config.task.lags, config.heads
    ((1, 2, 3, 4, 6), (1, 3, 1))
    >>> named("paper-1.3.4-length64").task.length
    64
    >>> named("paper-1.2.3-1.1.1-uniform11-normal-seed1")
    TrainConfig(init='normal', matrix_seed=11, matrix_law='uniform', heads=(1, 1, 1), seed=1)
    >>> named("relative-1.2.3-reach16-length64-uniform0")
    TrainConfig(model='relative', length=64, matrix_law='uniform', reach=16)
    """
    shipped = SHIPPED / name
    if name and (shipped / CONFIG).is_file():
        return Run(shipped).config
    found = _pattern().fullmatch(name)
    if found is None or found["kind"] not in (*PAPER, *KINDS):
        raise ValueError(
            f"a model's name is like standard-1.2.3 or disentangled-1.3-1.1.1-seed1; got {name!r}"
        )
    kind, lags = found["kind"], _numbers(found["lags"])
    heads = (
        _numbers(found["heads"])
        if found["heads"]
        else HEADS.get(kind) or (1, heads_needed(lags), 1)
    )
    changes = {"lags": lags, "heads": heads, **_fields(found)}
    if kind in PAPER:
        return preset("paper", **changes, model=PAPER[kind])
    return preset("auto", **changes, model=kind, evaluate_every=100)


def _pattern() -> re.Pattern[str]:
    """Return the pattern of names, with all matrix distributions and recipes."""
    laws = "|".join(map(re.escape, LAWS))
    recipes = "|".join(re.escape(recipe.name) for recipe in all_recipes())
    return re.compile(
        r"(?P<kind>[a-z]+(?:-[a-z]+)?)-(?P<lags>\d+(?:\.\d+)*)(?:-(?P<heads>\d+(?:\.\d+)*))?"
        r"(?:-states(?P<states>\d+))?"
        r"(?:-dim(?P<dim>\d+))?(?:-reach(?P<reach>\d+))?(?:-length(?P<length>\d+))?"
        rf"(?:-(?P<law>{laws})(?P<matrix_seed>\d+))?(?:-(?P<init>{recipes}))?(?P<soft>-soft)?"
        r"(?:-seed(?P<seed>\d+))?"
    )


def _fields(found: re.Match[str]) -> dict[str, Any]:
    """Return the fields of a configuration that the optional parts of a name set."""
    said: dict[str, Any] = {
        name: int(found[name])
        for name in ("states", "dim", "reach", "length", "matrix_seed", "seed")
        if found[name] is not None
    }
    if found["law"]:
        said["matrix_law"] = LAWS[found["law"]]
    if found["init"]:
        said["init"] = found["init"]
    if found["soft"]:
        said["target"] = "distribution"
    return said


def _numbers(dotted: str) -> tuple[int, ...]:
    return tuple(int(number) for number in dotted.split("."))


def run_name(config: TrainConfig) -> str:
    """Return a name made from the configuration's content, so that one configuration
    has one folder.

    >>> run_name(TrainConfig()).rsplit("-", 1)[0]  # a digest of every field follows
    'standard-1.2.3-heads-1.3.1'
    """
    heads = ".".join(map(str, config.heads))
    layers = f"heads-{heads}-" if heads else ""
    return f"{config.model.kind}-{config.task.label}-{layers}{digest(config)}"
