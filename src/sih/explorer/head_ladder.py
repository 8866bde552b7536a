"""The circuit built with each number of second-layer heads, in words for the page's
slider.
"""

from functools import lru_cache
from typing import Any

from sih.circuits import Circuit
from sih.explorer.circuit_choice import too_large_to_fit
from sih.explorer.state import BOTH, ModelChoice
from sih.heads import head_offsets, least_heads
from sih.heads.mixing import exact_profile
from sih.heads.two_sided_fit import quick_two_sided


def ladder(choice: ModelChoice, circuit: Circuit) -> list[dict[str, Any]]:
    """Return a description of the circuit for each number of heads, up to the number
    that mixes no lags.
    """
    lags, length = circuit.lags, circuit.length
    if circuit.only_heads:
        return [_step(circuit.heads, circuit.target, circuit.only_heads)]
    if circuit.target == "paper":
        forms = [_unused(lags, heads) for heads in range(1, least_heads(lags).heads + 1)]
        return [
            _step(n, "paper", f"the paper's form{unused or ', nothing lost'}")
            for n, unused in enumerate(forms, 1)
        ]
    steps = list(_bayes_steps(lags, length))
    if choice.kind == BOTH:
        steps = [
            _both(step, lags, length) if step["built"] == "partial" else step for step in steps
        ]
    return steps


@lru_cache(maxsize=256)
def _bayes_steps(lags: tuple[int, ...], length: int) -> tuple[dict[str, Any], ...]:
    steps = []
    for heads in range(1, least_heads(lags).heads + 1):
        unused = _unused(lags, heads)
        if not unused:
            steps.append(_step(heads, "unmixed", "nothing mixed, exact"))
        elif exact_profile(lags, length, heads) is not None:
            steps.append(_step(heads, "mixed", "lags mix in a head, exact"))
        else:
            steps.append(_step(heads, "partial", f"nothing mixed{unused}"))
    return tuple(steps)


def _both(step: dict[str, Any], lags: tuple[int, ...], length: int) -> dict[str, Any]:
    heads = step["heads"]
    try:
        near = f"residual up to {_largest_residual(lags, length, heads):.2g}"
    except LookupError:
        near = (
            "too many lags to fit here"
            if too_large_to_fit(lags, length)
            else "to be fitted, some seconds, once"
        )
    return _step(heads, "both", f"read from both sides, approximate: {near}")


@lru_cache(maxsize=256)
def _largest_residual(lags: tuple[int, ...], length: int, heads: int) -> float:
    profile = quick_two_sided(lags, length, heads)
    if profile is None:
        raise LookupError("not fitted yet")
    return profile.residual.max().item()


@lru_cache(maxsize=1024)
def _unused(lags: tuple[int, ...], heads: int) -> str:
    used = head_offsets(lags, heads).used
    return "" if used == 1 else f", {1 - used} of the past unused"


def _step(heads: int, built: str, words: str) -> dict[str, Any]:
    return {"heads": heads, "built": built, "words": words}
