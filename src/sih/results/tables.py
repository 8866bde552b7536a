"""Numbers, lag sets and kinds of matrices as written in tables, titles and captions."""

from __future__ import annotations

from collections.abc import Sequence

Rows = list[list[str]]
"""A table as text: its header, then its rows."""


def braces(lags: Sequence[int]) -> str:
    """Return a lag set in the notation {1,2,3}."""
    return "{" + ",".join(map(str, lags)) + "}"


def with_error(value: float, error: float) -> str:
    """Return a number and its error to 4 decimals: 0.0128±0.0003."""
    return f"{value:.4f}±{error:.4f}"


def law_in_words(law: str, concentration: float = 1.0) -> str:
    """Return the name of a distribution of random matrices.

    >>> law_in_words("uniform"), law_in_words("dirichlet", 0.4), law_in_words("sparse")
    ('uniform rows', 'Dirichlet(0.4) rows', 'sparse matrices')
    """
    words = {"uniform": "uniform rows", "dirichlet": f"Dirichlet({concentration:g}) rows"}
    return words.get(law, f"{law} matrices")
