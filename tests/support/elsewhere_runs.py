"""Trains small runs of each kind here and on a device's stand-in, in a process of its own: a device is for good."""

import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import torch
from support.small_configs import small
from torch import Tensor

from sih.training.config import TrainConfig
from sih.training.presets import preset
from sih.training.runs.run_writer import RunWriter

STAGED = {
    "lags": (1, 2),
    "length": 12,
    "heads": (1, 1, 1),
    "steps": 4,
    "batch": 5,
    "held_out": 7,
    "frozen_steps": 2,
}
CONFIGS: dict[str, TrainConfig] = {
    "standard": small(),
    "disentangled": small(model="disentangled"),
    "staged": preset("harmonic", optimiser="soap", length_schedule=((3, 6),), **STAGED),
    "tables": preset("harmonic", model="disentangled", **STAGED),
}
REFUSED: dict[str, Callable[[Tensor], object]] = {
    "both kinds": lambda there: there + torch.ones(2),
    "their memory": lambda there: there.numpy(),
    "a generator of the CPU": lambda there: there.normal_(generator=torch.Generator()),
}
"""What a real device would refuse, by a name for it."""


def main(folder: Path) -> None:
    """Write `here/NAME`, `there/NAME`, and `again`, which was stopped on the device after two of its steps.

    What the device did not refuse is printed.
    """
    from support.elsewhere import a_device

    for module in [module for name, module in sys.modules.items() if name.startswith("sih")]:
        if hasattr(
            module, "is_concrete"
        ):  # the stand-in has values, though it is not torch's own tensor
            setattr(module, "is_concrete", lambda tensor: True)  # noqa: B010  # mypy knows no such attribute
    for name, config in CONFIGS.items():
        path = (
            "fused" if config.model.kind == "standard" else None
        )  # C reads the CPU's memory alone
        list(RunWriter(config, folder / "here" / name, path=path))
    with a_device() as device:
        for name, config in CONFIGS.items():
            list(RunWriter(config, folder / "there" / name, device=device))
        stopped = RunWriter(CONFIGS["staged"], folder / "again", device=device)
        steps = iter(stopped)
        for _ in islice(steps, 3):
            stopped.save()
        del steps
        list(RunWriter(CONFIGS["staged"], folder / "again", device=device))
        for name, work in REFUSED.items():
            with suppress(RuntimeError, TypeError):
                print(name, work(torch.zeros(2, device=device)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
