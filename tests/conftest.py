"""Every shape and type annotated in `sih` is checked while the tests run.

`SIH_TYPES=0 make test` leaves that out, for a quicker look while one works; `.ci/run` never does.
"""

import os
from contextlib import nullcontext

import support.typecheck  # noqa: F401 (the hook below finds it by name)
from jaxtyping import install_import_hook

with (
    nullcontext()
    if os.environ.get("SIH_TYPES") == "0"
    else install_import_hook("sih", "support.typecheck.checked")
):
    import sih

import pytest
import torch
from hypothesis import settings

import sih

torch.set_num_threads(1)  # the suite runs a process a core
settings.register_profile("sih", max_examples=40, deadline=None, derandomize=True, print_blob=True)
settings.load_profile("sih")


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def task(rng: torch.Generator) -> "sih.Task":
    return sih.Task(sih.random_transition_matrix(5, rng=rng), lags=(1, 2, 3), length=32)
