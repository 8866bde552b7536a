"""A fast backend run on parts of a batch, on as many at once as torch may use threads.

A batch's activations are larger than any cache, and cores that share many small
operations mostly wait for one another. So a user's training step, `model(tokens)` of a
whole batch and a loss of the output, works on parts like those of
`sih.next_token_loss`. Each part's pass, and later its gradient, runs in one thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import TokenTensor
from sih.models.fast.threads import map_in_threads

ROWS, TOKENS = 32, 4096
"""Sequences at a time, and tokens that always deserve a part of their own.

Fewer make products too small, most of all in the disentangled model. More no longer fit
the cache.
"""

Pass = Callable[[TokenTensor], Tensor]


def default_rows(tokens: TokenTensor, threads: int) -> int:
    """Return the number of sequences at a time.

    It is `ROWS`, or `TOKENS` tokens of short sequences if each thread then has its
    part.

    >>> [default_rows(torch.zeros(256, time, dtype=torch.int64), threads=2) for time in (16, 32, 64, 128, 256)]
    [128, 128, 64, 32, 32]
    """
    batch, time = tokens.shape
    return max(ROWS, min(TOKENS // time, -(-batch // threads)))


def in_parts(
    fast: Pass, equations: Pass, tokens: TokenTensor, weights: Sequence[Tensor]
) -> Float[Tensor, "batch time state"]:
    """Return `fast(tokens)`, computed in parts, as a function of all its weights.

    A gradient of a gradient is that of the equations.
    """
    output: Tensor = _InParts.apply(fast, equations, tokens, *weights)  # type: ignore[no-untyped-call]
    return output


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fast: Pass, equations: Pass, tokens: Tensor, *weights: Tensor) -> Tensor:
        threads = torch.get_num_threads()

        def output(part: Tensor) -> Tensor:
            with torch.enable_grad():
                return fast(part)

        ctx.parts = torch.split(tokens, default_rows(tokens, threads))
        outputs = list(map_in_threads(output, ctx.parts, threads))
        ctx.save_for_backward(*outputs)  # with their graphs, which are freed with this one
        ctx.again, ctx.weights = lambda: equations(tokens), weights
        return torch.cat([part.detach() for part in outputs])

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        wanted = [weight for weight in ctx.weights if weight.requires_grad]
        how = {"allow_unused": True, "materialize_grads": True}
        if torch.is_grad_enabled():
            found = iter(torch.autograd.grad(ctx.again(), wanted, above, create_graph=True, **how))
        else:
            pairs = list(
                zip(
                    ctx.saved_tensors,
                    torch.split(above, [len(part) for part in ctx.parts]),
                    strict=True,
                )
            )
            totals = [torch.zeros_like(weight) for weight in wanted]

            def gradient(pair: tuple[Tensor, Tensor]) -> Sequence[Tensor]:
                return torch.autograd.grad(pair[0], wanted, pair[1], retain_graph=True, **how)

            for grads in map_in_threads(gradient, pairs, torch.get_num_threads()):
                for total, grad in zip(totals, grads, strict=True):
                    total += grad
            found = iter(totals)
        return (
            None,
            None,
            None,
            *(next(found) if weight.requires_grad else None for weight in ctx.weights),
        )
