"""How a model was trained, in words made from its configuration by rule."""

from typing import Any

from sih.training.config import TrainConfig

METHODS = {"adam": "Adam", "soap": "SOAP"}
STARTS = {
    ("uniform", "standard"): "",
    ("uniform", "disentangled"): "",
    ("harmonic", "standard"): "harmonic start",
    ("harmonic", "disentangled"): "tables shared by positions",
}
"""What a recipe's start is called, for each kind of model, empty for random weights."""
FREE = {"lags", "heads", "model", "matrix_seed", "seed", "steps", "stored", "evaluate_every", "held_out"}
"""Fields that may differ from the defaults in the paper's own setting."""


def how_trained(config: TrainConfig) -> str:
    """Return how a model was trained, in one phrase: the optimiser, and all that was added to plain training.

    Only what has the paper's length, and all else as in the paper, is said to be of the paper's setting.

    >>> how_trained(TrainConfig())
    "Adam, nothing added (the paper's setting)"
    >>> how_trained(TrainConfig(length=32, optimiser="soap"))
    'SOAP, nothing added'
    >>> how_trained(TrainConfig(init="harmonic", optimiser="soap", parts_steps=600, steps=2000))
    'SOAP, harmonic start, layers restricted to their roles for 600 of 2,000 steps'
    """
    words = ", ".join([_method(config), *(_additions(config) or ["nothing added"])])
    return f"{words} (the paper's setting)" if config.unusual().keys() <= FREE else words


def trained_briefly(config: TrainConfig) -> str:
    """Return the same in two words, for tables: the optimiser and the addition that does most.

    >>> trained_briefly(TrainConfig())
    'Adam alone'
    >>> trained_briefly(TrainConfig(init="harmonic", optimiser="soap", parts_steps=600, steps=2000))
    'SOAP, roles'
    """
    flat = config.flat()
    start = _start(flat)
    tied = "tied" if start and flat["model"] == "disentangled" else ""
    restricted = "roles" if flat.get("parts_steps") else "frozen" if flat.get("frozen_steps") else ""
    schedule = "short first" if flat["length_schedule"] else "rate falls" if flat["schedule"] == "cosine" else ""
    own = "fresh P" if flat["fresh"] else "switching" if flat["switch_rate"] else ""
    chief = tied or restricted or (start and flat["init"]) or own or schedule
    return f"{_method(config)}, {chief}" if chief else f"{_method(config)} alone"


def _additions(config: TrainConfig) -> list[str]:
    """List all that differs from a fixed matrix, random weights, a constant rate and full sequences from the start."""
    flat = config.flat()
    found = [_start(flat)]
    if flat["fresh"]:
        found.append("a new matrix for each sequence")
    if flat["switch_rate"]:
        found.append("lags that switch")
    if flat["length_schedule"]:
        found.append("short sequences first")
    if flat["schedule"] == "cosine":
        found.append("falling learning rate")
    if flat.get("frozen_steps"):
        found.append(f"middle layers frozen and the others restricted to their roles {_for(config, 'frozen_steps')}")
    if flat.get("parts_steps"):
        found.append(f"layers restricted to their roles {_for(config, 'parts_steps')}")
    return [each for each in found if each]


def _method(config: TrainConfig) -> str:
    return METHODS.get(config.optimiser.name, config.optimiser.name)


def _start(flat: dict[str, Any]) -> str:
    return STARTS.get((flat["init"], flat["model"]), f"{flat['init']} start")


def _for(config: TrainConfig, field: str) -> str:
    return f"for {config.flat()[field]:,} of {config.optimiser.steps:,} steps"
