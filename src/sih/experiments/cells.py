"""How lag sets and numbers with errors are written in tables and titles."""

import re
from collections.abc import Sequence


def braces(lags: Sequence[int]) -> str:
    """Write a lag set as mathematics has it: {1,2,3}."""
    return "{" + ",".join(map(str, lags)) + "}"


def with_error(value: float, error: float) -> str:
    """Write a number and its error to 4 decimals, without a zero before the point: .0128±.0003."""
    return re.sub(r"(?<!\d)0\.", ".", f"{value:.4f}±{error:.4f}")
