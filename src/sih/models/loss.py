"""Computes the training loss and its gradient, a few sequences at a time.

A batch's activations are larger than any cache, and memory that large is asked of the system anew at every step. So the
gradient is computed together with the loss, on `ROWS` sequences after the other (more of short ones), in memory that
stays warm and bounded.

On a CPU the parts go to as many threads as torch may use, each of which works alone, unless the model's products are
large (`Model.large_products`): cores that share many small operations mostly wait for one another. The parts are added
up in their order, so that the result does not depend on which thread was first.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.checks import Tokens, as_tokens, check_sizes, is_concrete
from sih.markov import TokenTensor
from sih.models.base import Model, check_model
from sih.models.kernels.second_order import gradients_again
from sih.models.kernels.threads import side_by_side

ROWS, TOKENS = 32, 4096
"""Sequences at a time, and tokens that are always worth a part of their own: fewer make products too small, most of all
the disentangled model's; more no longer fit the cache."""


def next_token_loss(
    model: Model, tokens: Tokens, path: str | None = None, rows: int | None = None
) -> Float[Tensor, ""]:
    r"""Compute the mean of $-\log \hat p(s_{i+1} \mid s_{1:i})$ over sequences and positions, ready for `backward()`.

    Args:
        model: whose loss it is, of any kind.
        tokens: of shape (batch, time).
        path: the model's forward path, the fastest one here unless given.
        rows: sequences at a time, which bounds the memory; `usual_rows` unless given.

    >>> import sih
    >>> model = sih.Transformer(num_states=2, length=16, init="zeros")
    >>> loss = sih.next_token_loss(model, torch.tensor([[0, 1, 1, 0]]))
    >>> round(loss.item(), 4)  # log 2: it knows nothing
    0.6931
    >>> loss.backward()
    """
    check_model(model)
    check_sizes(rows=1 if rows is None else rows)
    tokens = as_tokens(tokens)
    if tokens.shape[1] < 2 or tokens.shape[0] < 1:
        raise ValueError(f"a loss needs sequences of two tokens or more; got shape {tuple(tokens.shape)}")
    if not is_concrete(tokens):
        return _summed(model, tokens, path) / _terms(tokens)
    path = model.choose_path(tokens, path)
    rows = rows or usual_rows(tokens, _threads(model, tokens))
    wanted = [weight for weight in model.parameters() if weight.requires_grad]
    if not wanted or not torch.is_grad_enabled():
        return torch.stack([_summed(model, part, path) for part in torch.split(tokens, rows)]).sum() / _terms(tokens)
    loss: Tensor = _NextTokenLoss.apply(model, tokens, path, rows, *wanted)  # type: ignore[no-untyped-call]
    return loss


def usual_rows(tokens: TokenTensor, threads: int) -> int:
    """Say how many sequences go at a time: `ROWS`; of short ones `TOKENS` tokens, if each thread has its part then.

    >>> [usual_rows(torch.zeros(256, time, dtype=torch.int64), threads=2) for time in (16, 32, 64, 128, 256)]
    [128, 128, 64, 32, 32]
    """
    batch, time = tokens.shape
    return max(ROWS, min(TOKENS // time, -(-batch // threads)))


def _threads(model: Model, tokens: Tensor) -> int:
    alone = model.large_products or tokens.device.type != "cpu"  # with large products memory counts, too
    return 1 if alone else torch.get_num_threads()


def _summed(model: Model, tokens: Tensor, path: str | None) -> Tensor:
    output = model(tokens, path=path)[:, :-1].flatten(0, 1)
    target = tokens[:, 1:].flatten()
    if model.config.readout == "probability":
        return nn.functional.nll_loss(output.log(), target, reduction="sum")
    return nn.functional.cross_entropy(output, target, reduction="sum")


def _terms(tokens: Tensor) -> int:
    return tokens.shape[0] * (tokens.shape[1] - 1)


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Let glibc keep what a part frees for the next: otherwise the system gets it, and clears every page anew.

    It keeps up to twice as much as the largest piece, of at most 32 MB, that was ever freed. This one is never touched.
    """
    torch.empty(32 * 2**20 - 2**16, dtype=torch.uint8, device="cpu")


class _NextTokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, model: Model, tokens: Tensor, path: str, rows: int, *wanted: Tensor) -> Tensor:
        _keep_freed_memory()

        def part(tokens: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
            with torch.enable_grad():
                summed = _summed(model, tokens, path)
            # materialize: a weight that no output depends on (the heads of one token, say) has gradient 0
            return summed.detach(), torch.autograd.grad(summed, wanted, allow_unused=True, materialize_grads=True)

        totals = [torch.zeros_like(parameter) for parameter in wanted]
        loss = wanted[0].new_zeros(())
        for summed, grads in side_by_side(part, torch.split(tokens, rows), _threads(model, tokens)):
            loss += summed
            for total, grad in zip(totals, grads, strict=True):
                total += grad
        ctx.model, ctx.tokens, ctx.wanted, ctx.grads = model, tokens, wanted, totals
        return loss / _terms(tokens)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            model, tokens = ctx.model, ctx.tokens

            def mean(*_: Tensor) -> Tensor:
                return _summed(model, tokens, model.paths[-1]) / _terms(tokens)

            return None, None, None, None, *gradients_again(mean, ctx.wanted, (above,))
        scale = above / _terms(ctx.tokens)
        return None, None, None, None, *(grad * scale for grad in ctx.grads)
