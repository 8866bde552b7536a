"""Training configurations by name. A preset is a function that returns a configuration; what it is given wins.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss, and say what they change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sih.training import TrainConfig


def paper(**changes: Any) -> TrainConfig:
    """The paper's: batches of 256, Adam at a constant 1e-3, standard transformer with d = 64."""
    return TrainConfig(**changes)


def paper_disentangled(**changes: Any) -> TrainConfig:
    """The paper's, for the disentangled transformer."""
    return TrainConfig(**{"model": "disentangled", **changes})


PRESETS: dict[str, Callable[..., TrainConfig]] = {
    "paper": paper,
    "paper-disentangled": paper_disentangled,
}
