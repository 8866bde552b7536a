"""The training loss and its gradient, computed a few sequences at a time.

A batch's activations are larger than any cache, and the system allocates memory of this
size anew at every step. So loss and gradient are computed together, on `ROWS` sequences
after the other (more of short ones), in memory that stays warm and bounded.

On a CPU the parts go to as many threads as torch may use, each of which works alone,
unless the model's products are large (`Model.large_products`). Cores that share many
small operations mostly wait for one another. The parts are added up in their order, so
the result does not depend on the order in which threads finish.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.base.errors import FieldError, as_tokens, check_sizes, described, is_concrete
from sih.base.types import Law, Tokens, TokenTensor
from sih.models.base import Model, check_model
from sih.models.fast.threads import map_in_threads
from sih.models.parts import default_rows

LAW_TOLERANCE = 1e-3
"""How far the sum of a distribution may be from 1."""

Part = tuple[Tensor, Tensor | None]
"""Sequences, and the target distributions. None stands for the next tokens
themselves."""


def next_token_loss(
    model: Model,
    tokens: Tokens,
    path: str | None = None,
    rows: int | None = None,
    laws: Tensor | None = None,
) -> Float[Tensor, ""]:
    r"""Return the mean of $-\log \hat p(s_{i+1} \mid s_{1:i})$, ready for `backward()`.

    The mean is over sequences and positions. With `laws` it is the mean of the
    cross-entropy $-\sum_s p_i(s) \log \hat p(s \mid s_{1:i})$, with $p_i$ the
    distribution of the next token. If $p_i$ is the true distribution given all tokens
    so far, both losses have the same mean, and so do their gradients. The last position
    has no next token and counts in neither.

    Args:
        model: a model of any kind.
        tokens: (batch, time), the sequences.
        path: the model's backend. Default: the fastest on this machine.
        rows: sequences at a time, which bounds the memory. Default: `default_rows`.
        laws: (batch, time, state), distributions of the next token at every position,
            e.g. `sih.truth(batch, task)`.

    Returns:
        The loss, a scalar in nats.

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
        raise ValueError(
            f"a loss needs sequences of two tokens or more; got shape {tuple(tokens.shape)}"
        )
    laws = None if laws is None else _checked_laws(laws, (*tokens.shape, model.config.num_states))
    if not is_concrete(tokens):
        return _summed(model, (tokens, laws), path) / _terms(tokens)
    path = model.choose_path(tokens, path)
    rows = rows or default_rows(tokens, _threads(model, tokens))
    wanted = [weight for weight in model.parameters() if weight.requires_grad]
    if not wanted or not torch.is_grad_enabled():
        summed = [_summed(model, part, path) for part in _parts(tokens, laws, rows)]
        return torch.stack(summed).sum() / _terms(tokens)
    loss: Tensor = _NextTokenLoss.apply(model, tokens, laws, path, rows, *wanted)  # type: ignore[no-untyped-call]
    return loss


def _threads(model: Model, tokens: Tensor) -> int:
    alone = (
        model.large_products or tokens.device.type != "cpu"
    )  # with large products, memory matters, too
    return 1 if alone else torch.get_num_threads()


def _checked_laws(laws: object, shape: tuple[int, ...]) -> Law:
    """Return distributions of the next token as constants, or raise a FieldError."""
    if not isinstance(laws, Tensor) or tuple(laws.shape) != shape or not laws.is_floating_point():
        wanted = f"a tensor of floats of shape {shape}, e.g. sih.truth(batch, task)"
        raise FieldError("laws", f"laws must be {wanted}; got {described(laws)}")
    if is_concrete(laws):
        off = (laws.detach().sum(dim=-1) - 1).abs().amax().item()
        if not (off <= LAW_TOLERANCE and (laws >= 0).all()):
            found = f"numbers from {laws.min().item():.3g} on, sums off by {off:.3g}"
            raise FieldError(
                "laws",
                f"laws must be probabilities that sum to 1, e.g. sih.truth(batch, task); got {found}",
            )
    return laws.detach()


def _parts(tokens: TokenTensor, laws: Law | None, rows: int) -> list[Part]:
    """Return a batch split into parts of `rows` sequences."""
    some_tokens = torch.split(tokens, rows)
    some_laws = [None] * len(some_tokens) if laws is None else torch.split(laws, rows)
    return list(zip(some_tokens, some_laws, strict=True))


def _summed(model: Model, part: Part, path: str | None) -> Tensor:
    tokens, laws = part
    output = model(tokens, path=path)[:, :-1].flatten(0, 1)
    target = tokens[:, 1:].flatten() if laws is None else laws[:, :-1].flatten(0, 1).to(output)
    if model.config.readout != "probability":
        return nn.functional.cross_entropy(output, target, reduction="sum")
    if laws is None:
        return nn.functional.nll_loss(output.log(), target, reduction="sum")
    possible = torch.where(
        target > 0, output, 1.0
    )  # a state of probability 0 adds 0, whatever its prediction
    return -(target * possible.log()).sum()


def _terms(tokens: Tensor) -> int:
    return tokens.shape[0] * (tokens.shape[1] - 1)


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Free a block of 32 MB, so that glibc reuses freed memory from now on.

    Otherwise the system takes it back, and clears every page anew. glibc then keeps up
    to twice the largest piece that was ever freed, of at most 32 MB. This block is
    never used.
    """
    torch.empty(32 * 2**20 - 2**16, dtype=torch.uint8, device="cpu")


class _NextTokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        model: Model,
        tokens: Tensor,
        laws: Tensor | None,
        path: str,
        rows: int,
        *wanted: Tensor,
    ) -> Tensor:
        _keep_freed_memory()

        def gradient(part: Part) -> tuple[Tensor, Sequence[Tensor]]:
            with torch.enable_grad():
                summed = _summed(model, part, path)
            # materialize: a weight without effect on the output has gradient 0 (e.g. heads, for one token)
            return summed.detach(), torch.autograd.grad(
                summed, wanted, allow_unused=True, materialize_grads=True
            )

        totals = [torch.zeros_like(parameter) for parameter in wanted]
        loss = wanted[0].new_zeros(())
        for summed, grads in map_in_threads(
            gradient, _parts(tokens, laws, rows), _threads(model, tokens)
        ):
            loss += summed
            for total, grad in zip(totals, grads, strict=True):
                total += grad
        ctx.model, ctx.part, ctx.wanted, ctx.grads = model, (tokens, laws), wanted, totals
        return loss / _terms(tokens)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        terms = _terms(ctx.part[0])
        if torch.is_grad_enabled():
            mean = _summed(ctx.model, ctx.part, ctx.model.paths[-1]) / terms
            grads = torch.autograd.grad(
                mean, ctx.wanted, above, create_graph=True, materialize_grads=True
            )
            return None, None, None, None, None, *grads
        scale = above / terms
        return None, None, None, None, None, *(grad * scale for grad in ctx.grads)
