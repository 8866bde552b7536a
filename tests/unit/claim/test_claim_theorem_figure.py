"""What the drawing says is what is proven."""

from __future__ import annotations

from collections import Counter

from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from sih.claim import claim_theorem, claim_theorem_figure
from sih.results import style
from sih.training.runs.run_store import RunStore

DATA = claim_theorem.compute(claim_theorem.TheoremConfig(), RunStore())


def test_every_pair_has_its_colour() -> None:
    ax = claim_theorem_figure.draw(DATA).axes[-1]
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    colours = Counter(to_hex(patch.get_facecolor()).upper() for patch in cells)
    assert colours == {
        style.SKY: 53, style.BLUE: 42, style.GREEN: 3, style.PURPLE: 3, "#FFFFFF": 31, style.RED: 12,
    }  # fmt: skip
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_fill()]
    assert len(boxes) == 11 + 5 + 3  # rivals in the class of true lags 1, 2, and of 7, 11, 13
    assert "101 of 132" in ax.get_title()
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "true lag ($k$)", "exchange (X)", "Lemma D (D)", "Lemma E (E)", "Lemma M (M)", "Lemma T (T)", "open (?)",
    ]  # fmt: skip


def test_every_rival_has_its_letter() -> None:
    axes = claim_theorem_figure.draw(DATA).axes[:-1]
    letters = [
        [text.get_text() for text in ax.texts if text.get_text() in ("X", "D", "E", "T", "M", "?")]
        for ax in axes
    ]
    assert letters == [["?", "T"], ["D", "D"], ["X", "X"], ["?", "?"], ["D", "D"], ["X", "X"]]


def test_arrows_are_the_transitions_of_each_chain() -> None:
    """{1, 2, 3}: three under lag 1; under lag 2 one within the odd lags and one to the next token; one under lag 3."""
    assert [len(ax.patches) for ax in claim_theorem_figure.draw(DATA).axes[:3]] == [3, 2, 1]
