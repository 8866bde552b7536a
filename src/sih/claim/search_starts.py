"""Starting points of descents, and families of matrices: FAMILIES from logits to
matrices, STARTS of logits.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

LOGIT_BOUND = 15.0
"""Logits are in [-15, 15], so entries of P go down to about 1e-13."""

Logits = Float[Tensor, "start state state"]


def _symmetric(logits: Logits) -> Logits:
    """Return symmetric weights divided by the largest row sum. The rest of each row is
    the probability to stay.
    """
    weights = ((logits + logits.mT) / 2).exp()
    sums = weights.sum(dim=-1)
    largest = sums.amax(dim=-1, keepdim=True)
    return weights / largest[..., None] + torch.diag_embed(1 - sums / largest)


FAMILIES: dict[str, Callable[[Logits], Logits]] = {
    "any": lambda logits: logits.softmax(dim=-1),
    "reversible": lambda logits: ((logits + logits.mT) / 2).softmax(
        dim=-1
    ),  # symmetric weights over their row sums
    "symmetric": _symmetric,
}
"""The families of matrices to which a search can be restricted."""


def _random(starts: int, num_states: int, rng: torch.Generator) -> Logits:
    """Return logits from almost equal rows to almost deterministic ones, half leaning
    towards a random permutation.
    """
    scale = _uniform(-1, 1.5, starts, rng).exp()
    noise = torch.randn(starts, num_states, num_states, dtype=torch.float64, generator=rng)
    order = torch.rand(starts, num_states, generator=rng).argsort(dim=-1)
    lean = _uniform(-4, 6, starts, rng).clamp_min(0)
    return scale * noise + lean * torch.nn.functional.one_hot(order, num_states)


def _uniform(
    low: float, high: float, starts: int, rng: torch.Generator
) -> Float[Tensor, "start 1 1"]:
    return torch.empty(starts, 1, 1, dtype=torch.float64).uniform_(low, high, generator=rng)


def _rotation(starts: int, num_states: int, rng: torch.Generator) -> Logits:
    """Return logits of states on a circle, with steps of random mean and width: slow
    rotations and sharp ones.
    """
    place = torch.arange(num_states, dtype=torch.float64)
    width = _uniform(math.log(0.4), math.log(num_states / 3), starts, rng).exp()
    mean = _uniform(0, num_states / 2, starts, rng)
    ahead = (place - place[:, None] - mean + num_states / 2) % num_states - num_states / 2
    return -((ahead / width) ** 2) / 2


def _tree(starts: int, num_states: int, rng: torch.Generator) -> Logits:
    """Return logits of a walk on a random tree: each state is tied to an earlier one,
    up and down with random weights.
    """
    logits = torch.zeros(starts, num_states, num_states, dtype=torch.float64)
    up, down = _uniform(1, 9, starts, rng)[:, 0, 0], _uniform(1, 9, starts, rng)[:, 0, 0]
    every = torch.arange(starts)
    for child in range(1, num_states):
        parent = torch.randint(0, child, (starts,), generator=rng)
        logits[every, child, parent], logits[every, parent, child] = up, down
    return logits


def _blocks(starts: int, num_states: int, rng: torch.Generator) -> Logits:
    """Return logits of a cycle of a few blocks of states, with a place in the block
    that moves slowly.
    """
    blocks = torch.randint(2, 5, (starts, 1, 1), generator=rng)
    state = torch.arange(num_states)
    block = state % blocks  # (start, 1, state)
    next_block = (block.mT + 1) % blocks == block
    return _rotation(starts, num_states, rng) + _uniform(1, 10, starts, rng) * next_block


STARTS: dict[str, Callable[[int, int, torch.Generator], Logits]] = {
    "random": _random,
    "rotation": _rotation,
    "tree": _tree,
    "blocks": _blocks,
}
"""Functions that draw the first logits: (number, number of states, rng)."""


def starting_logits(kind: str, starts: int, num_states: int, rng: torch.Generator) -> Logits:
    """Return the logits at which descents begin. Structured ones get a little noise, so
    that no two are equal.
    """
    logits = STARTS[kind](starts, num_states, rng)
    if kind != "random":
        logits = logits + 0.1 * torch.randn(logits.shape, dtype=torch.float64, generator=rng)
        logits = logits - logits.amax(dim=-1, keepdim=True) + LOGIT_BOUND / 2
    return logits.clamp(-LOGIT_BOUND, LOGIT_BOUND)
