from __future__ import annotations

import sih


def test_the_largest_shares_come_first() -> None:
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 2, 3), length=24)
    found = sih.evidence_flow(sih.construct(task), task, sih.sample(task, size=16, rng=0))
    (ax,) = found.plot().axes
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)
    assert len(widths) == 16
    assert "left out" in ax.get_xlabel()
