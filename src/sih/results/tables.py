"""How numbers and lag sets are written in tables and titles."""

from __future__ import annotations

from collections.abc import Sequence

Rows = list[list[str]]
"""A table as text: its header, then its rows."""


def braces(lags: Sequence[int]) -> str:
    """Return a lag set as mathematics has it: {1,2,3}."""
    return "{" + ",".join(map(str, lags)) + "}"


def with_error(value: float, error: float) -> str:
    """Return a number and its error to 4 decimals: 0.0128±0.0003."""
    return f"{value:.4f}±{error:.4f}"
