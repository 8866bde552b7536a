from __future__ import annotations

from sih.claim import claim_theorem, claim_theorem_figure
from sih.claim.claim_theorem import TheoremConfig, classes_of
from sih.claim.claim_theorem_figure import proven
from sih.training.runs.run_store import RunStore


def test_the_papers_lags() -> None:
    data = claim_theorem.compute(TheoremConfig(), RunStore())
    assert proven(data.whole) == (101, 132)
    assert [proven(example) for example in data.examples] == [(5, 6), (4, 6)]
    rows = claim_theorem_figure.table(data)
    assert len(rows) == 133
    assert ["7", "28", "7 28", "7 28", "proven: Lemma E"] in rows
    assert ["9", "10", "9", "1 10 28", "proven: Lemma M"] in rows


def test_classes() -> None:
    data = classes_of((1, 2, 3, 5))
    assert data.classes == (
        ((1, 2, 3, 5),),
        ((2,), (1, 3, 5)),
        ((3,), (1,), (2, 5)),
        ((5,), (1,), (2,), (3,)),
    )
    assert data.members(2, 5) == (2, 5)
    assert [row[j] for j, row in enumerate(data.status)] == [""] * 4
