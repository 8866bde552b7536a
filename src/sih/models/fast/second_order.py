"""Second derivatives of functions with hand-written gradients."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def double_backward(
    plain: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    above: Sequence[Tensor],
) -> tuple[Tensor | None, ...]:
    r"""Return $(\partial f / \partial x)^\top g$ for each input x, as a function of x
    and g.

    Here f is `plain` and g is `above`. A hand-written backward pass works on numbers,
    so a second derivative through it would be silently wrong. Where one may follow
    (`torch.is_grad_enabled()` within it, that is `create_graph=True`), it calls this
    function: f is run again with torch's own operations, and torch differentiates them.
    None stands for an input that needs no gradient.

    f is run on views of the inputs. One input may have been made from another, and the
    dependence of one on the other is not part of this gradient.
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
