"""Descriptions of how a model was trained, made from its configuration by rule."""

from typing import Any

from sih.training.config import TrainConfig

METHODS = {"adam": "Adam", "soap": "SOAP"}
STARTS = {"uniform": "", "harmonic": "harmonic start"}
"""Descriptions of a recipe's start, empty for the default random weights."""
STARTS_OF_KIND = {("harmonic", "disentangled"): "tables shared by positions"}
"""Descriptions of the start for one kind of model, where they differ."""
PAPER_KINDS = ("standard", "disentangled")
"""The kinds of model that the paper trains."""
FREE = {
    "lags",
    "heads",
    "model",
    "matrix_law",
    "matrix_seed",
    "seed",
    "steps",
    "stored",
    "evaluate_every",
    "held_out",
}
"""Fields that may differ from the defaults in the paper's own setting. The paper gives
several values of them, or none."""


def how_trained(config: TrainConfig) -> str:
    """Return how a model was trained in one phrase: the optimiser, and every addition.

    Only a configuration with the paper's length, and with everything else as in the
    paper, has "the paper's setting" in it.

    >>> how_trained(TrainConfig())
    "Adam, unaided (the paper's setting)"
    >>> how_trained(TrainConfig(length=32, optimiser="soap"))
    'SOAP, unaided'
    >>> how_trained(TrainConfig(init="harmonic", optimiser="soap", parts_steps=600, steps=2000))
    'SOAP, harmonic start, layers restricted to their roles for 600 of 2,000 steps'
    """
    words = ", ".join([_method(config), *(_additions(config) or ["unaided"])])
    return f"{words} (the paper's setting)" if is_papers_setting(config) else words


def is_papers_setting(config: TrainConfig) -> bool:
    """Return whether training agrees with the paper in everything that the paper
    specifies.

    This is kind, length, batches, optimiser and rate.
    """
    return config.model.kind in PAPER_KINDS and config.unusual().keys() <= FREE


def trained_briefly(config: TrainConfig) -> str:
    """Return how a model was trained in two words, for tables.

    They are the optimiser and the most effective addition.

    >>> trained_briefly(TrainConfig())
    'Adam only'
    >>> trained_briefly(TrainConfig(init="harmonic", optimiser="soap", parts_steps=600, steps=2000))
    'SOAP, roles'
    """
    flat = config.flat()
    start = _start(flat)
    tied = "tied" if start and flat["model"] == "disentangled" else ""
    restricted = (
        "roles" if flat.get("parts_steps") else "frozen" if flat.get("frozen_steps") else ""
    )
    schedule = (
        "short first"
        if flat["length_schedule"]
        else "rate falls"
        if flat["schedule"] == "cosine"
        else ""
    )
    own = _own_task(flat)
    soft = "soft" if flat["target"] == "distribution" else ""
    chief = tied or restricted or (start and flat["init"]) or own or schedule or soft
    return f"{_method(config)}, {chief}" if chief else f"{_method(config)} only"


def _additions(config: TrainConfig) -> list[str]:
    """Return all differences from the paper's training, by name.

    The paper has a fixed matrix, random weights, a constant rate and full sequences
    from the start.
    """
    flat = config.flat()
    found = [_start(flat)]
    if flat["target"] == "distribution":
        found.append("the true distributions as targets")
    if "own" in flat:
        found.append(f"a task of one's own, {flat['own'].task}")
    if flat.get("fresh"):
        found.append("a new matrix for each sequence")
    if flat.get("switch_rate"):
        found.append("lags that switch")
    if flat["length_schedule"]:
        found.append("short sequences first")
    if flat["schedule"] == "cosine":
        found.append("falling learning rate")
    if flat.get("frozen_steps"):
        found.append(
            f"middle layers frozen and the others restricted to their roles {_for(config, 'frozen_steps')}"
        )
    if flat.get("parts_steps"):
        found.append(f"layers restricted to their roles {_for(config, 'parts_steps')}")
    return [each for each in found if each]


def _own_task(flat: dict[str, Any]) -> str:
    """Return in a word or two how the task differs from the paper's, empty if it does
    not.
    """
    if "own" in flat:
        return str(flat["own"].task)
    return "fresh P" if flat["fresh"] else "switching" if flat["switch_rate"] else ""


def _method(config: TrainConfig) -> str:
    return METHODS.get(config.optimiser.name, config.optimiser.name)


def _start(flat: dict[str, Any]) -> str:
    init = flat["init"]
    return STARTS_OF_KIND.get((init, flat["model"]), STARTS.get(init, f"{init} start"))


def _for(config: TrainConfig, field: str) -> str:
    return f"for {config.flat()[field]:,} of {config.optimiser.steps:,} steps"
