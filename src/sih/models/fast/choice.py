"""The faster implementation of attention on this machine, measured once and cached.

Torch's operations and attention.c give the same numbers up to rounding. The faster one
depends on the processor, on the libraries below torch and on the compiler. So a layer
of the paper's size is run forward and backward by both, a few times in turn. The
quicker one is this machine's choice.
"""

import hashlib
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache

import torch

from sih.base.files import read_json, write_json
from sih.models.fast import compiled
from sih.models.fast.causal import causal_attention
from sih.models.fast.threads import limited_threads

ROUNDS = 5
BATCH, TIME, HEADS, QK_DIM, VALUES = 32, 128, 3, 32, 64


@dataclass(frozen=True)
class Choice:
    """The faster implementation, and the seconds of each.

    `why` is the reason why one could not be measured.
    """

    compiled: bool
    seconds: dict[str, float]
    why: str = ""


@lru_cache(maxsize=1)
def fastest() -> Choice:
    """Return this machine's choice, from the cache if it was measured before."""
    if compiled.library() is None:
        return Choice(False, {}, compiled.missing())
    kept = compiled.cache_folder() / f"attention-{_machine()}.json"
    try:
        found = read_json(kept)
        return Choice(
            bool(found["compiled"]), {str(name): float(s) for name, s in found["seconds"].items()}
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        choice = measure()
    with suppress(ValueError, OSError):  # without a writable cache, every process measures again
        write_json(kept, asdict(choice))
    return choice


@limited_threads(1)
@torch.inference_mode(False)
@torch.enable_grad()
def measure() -> Choice:
    """Return the choice by times of both, in turn, on one thread.

    The least time of each counts, because other processes can only add to it. Gradients
    are enabled here, even if the caller disabled them.
    """
    qkv = torch.randn(
        BATCH, TIME, HEADS * (2 * QK_DIM + VALUES), generator=torch.Generator().manual_seed(0)
    )
    least = {"torch": float("inf"), "compiled": float("inf")}
    for _ in range(1 + ROUNDS):
        for name in least:
            x = qkv.clone().requires_grad_()
            began = time.perf_counter()
            causal_attention(x, HEADS, QK_DIM, compiled=name == "compiled").sum().backward()
            least[name] = min(least[name], time.perf_counter() - began)
    return Choice(
        least["compiled"] < least["torch"], {name: round(s, 6) for name, s in least.items()}
    )


def _machine() -> str:
    """Return a digest of everything that the choice depends on.

    This is the source, torch and its settings, and the processor.
    """
    told = [
        torch.__version__,
        torch.backends.cpu.get_cpu_capability(),
        compiled.processor(),
        compiled.built_name(),
    ]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
