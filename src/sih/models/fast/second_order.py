"""Gradients that can be differentiated again, for functions whose own gradient is written out by hand."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def double_backward(
    plain: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    above: Sequence[Tensor],
) -> tuple[Tensor | None, ...]:
    r"""Compute $(\partial f / \partial x)^\top g$ for each input x of f = `plain`, as a function of x and g = `above`.

    A hand-written backward pass works on numbers, of which a second derivative would be silently wrong. Where one may
    be asked for (`torch.is_grad_enabled()` within it, that is `create_graph=True`), it goes through here: f is run
    again with torch's own operations, and torch differentiates them. None stands for an input that needs no gradient.

    f is run on views of the inputs. One input may have been made from another, and what f owes to the first through the
    second is not for this gradient to count.
    """
    with torch.enable_grad():
        views = [x.view_as(x) for x in inputs]
        outputs = plain(*views)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        wanted = [x for x in views if x.requires_grad]
        found = iter(
            torch.autograd.grad(outputs, wanted, above, create_graph=True, materialize_grads=True)
        )
    return tuple(next(found) if x.requires_grad else None for x in inputs)
