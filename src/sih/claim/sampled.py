"""What the paper's check of Claim 1 gives, as printed (App. E): a thousand matrices, kept as data.

`sampled.npz` is written by `research/claim_monte_carlo.py`, in some eight core-minutes. Number n is
of the same matrix as number n of `random_matrices`, so that it stands beside the exact value.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.files import read_arrays
from sih.claim.monte_carlo import MonteCarlo

PRINTED_SEQUENCES, PRINTED_LENGTH = 1000, 1000
"""Of the paper's check: sequences of each lag and matrix, and their tokens."""
BARS = 10
"""Matrices that the paper's figures of the expectations are of."""
FILE = "sampled.npz"


@cache
def _arrays() -> dict[str, np.ndarray]:
    return read_arrays(Path(str(resources.files("sih.claim"))) / FILE)


def kept_checks() -> tuple[MonteCarlo, ...]:
    """Return what was sampled. The number of matrices is of those that are kept."""
    return tuple(
        MonteCarlo(**{**check, "lags": tuple(check["lags"])})
        for check in json.loads(str(_arrays()["about"]))
    )


def sampled_gaps(check: MonteCarlo) -> Float[Tensor, "fewer true"] | None:
    """Return the gaps of as many of the check's matrices as are kept, None if it is another check."""
    kept = kept_checks()[0]
    if replace(check, matrices=kept.matrices) != kept:
        return None
    return torch.from_numpy(_arrays()["gaps"][: check.matrices]).double()


def sampled_bars(check: MonteCarlo) -> Float[Tensor, "true lag"] | None:
    """Return the means over the check's matrices, by true lag and lag, None if they are not kept."""
    kept = next((one for one in kept_checks() if one.num_states == check.num_states), None)
    if kept is None or check != replace(kept, matrices=BARS):
        return None
    return torch.from_numpy(_arrays()[f"bars_{check.num_states}"]).double()


def about_checks(*checks: MonteCarlo) -> str:
    """Return checks as the file holds them."""
    return json.dumps([asdict(check) for check in checks])
