"""How numbers and lag sets are written in tables and titles."""

from __future__ import annotations

import re
from collections.abc import Sequence

Rows = list[list[str]]
"""A table as text: its header, then its rows."""


def braces(lags: Sequence[int]) -> str:
    """Return a lag set as mathematics has it: {1,2,3}."""
    return "{" + ",".join(map(str, lags)) + "}"


def with_error(value: float, error: float) -> str:
    """Return a number and its error to 4 decimals, with no zero before the point: .0128±.0003."""
    return re.sub(r"(?<!\d)0\.", ".", f"{value:.4f}±{error:.4f}")
