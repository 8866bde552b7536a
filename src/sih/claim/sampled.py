"""Samples of the paper's check of Claim 1 as printed (App. E): a thousand matrices,
stored as data.

`research/claim_monte_carlo.py` writes `sampled.npz`, in about eight core-minutes.
Number n has the same matrix as number n of `random_matrices`, so it can be compared
with the exact value.
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
"""The paper's check: sequences per lag and matrix, and tokens per sequence."""
BARS = 10
"""Number of matrices in the paper's figures of the expectations."""
FILE = "sampled.npz"


@cache
def _arrays() -> dict[str, np.ndarray]:
    return read_arrays(Path(str(resources.files("sih.claim"))) / FILE)


def kept_checks() -> tuple[MonteCarlo, ...]:
    """Return the stored samples. Their number of matrices is the number stored."""
    return tuple(
        MonteCarlo(**{**check, "lags": tuple(check["lags"])})
        for check in json.loads(str(_arrays()["about"]))
    )


def sampled_gaps(check: MonteCarlo) -> Float[Tensor, "fewer true"] | None:
    """Return the gaps of the check's matrices as far as they are stored, None for
    another check.
    """
    kept = kept_checks()[0]
    if replace(check, matrices=kept.matrices) != kept:
        return None
    return torch.from_numpy(_arrays()["gaps"][: check.matrices]).double()


def sampled_bars(check: MonteCarlo) -> Float[Tensor, "true lag"] | None:
    """Return the means over the check's matrices by true lag and lag, None if they are
    not stored.
    """
    kept = next((one for one in kept_checks() if one.num_states == check.num_states), None)
    if kept is None or check != replace(kept, matrices=BARS):
        return None
    return torch.from_numpy(_arrays()[f"bars_{check.num_states}"]).double()


def about_checks(*checks: MonteCarlo) -> str:
    """Return checks as the file stores them."""
    return json.dumps([asdict(check) for check in checks])
