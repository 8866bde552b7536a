from __future__ import annotations

import pytest

from sih.beyond.shared_heads import few_heads, few_heads_figure
from sih.beyond.shared_heads.few_heads import BOTH, EXACT, ML, PAPER, TRAINED, UNMIXED
from sih.training.runs.run_store import RunStore


def test_fewer_heads_lose_more_in_the_paper_s_form_and_nothing_once_lags_mix() -> None:
    config = few_heads.FewHeadsConfig(
        lag_sets=((1, 2), (1, 2, 3)),
        num_states=3,
        length=32,
        matrices=2,
        sequences=40,
        models=("standard-1.2.3",),
    )
    data = few_heads.compute(config, RunStore())
    of = {(point.lags, point.series, point.heads): point.mean for point in data.points}
    assert of[(1, 2), EXACT, 1] == pytest.approx(1, abs=1e-4)
    assert of[(1, 2, 3), EXACT, 2] == pytest.approx(1, abs=1e-4)
    assert of[(1, 2, 3), UNMIXED, 3] == pytest.approx(1, abs=1e-4)
    assert of[(1, 2, 3), PAPER, 1] > of[(1, 2, 3), UNMIXED, 1] > of[(1, 2, 3), BOTH, 1] > 1
    assert of[(1, 2, 3), ML, 0] > of[(1, 2, 3), BOTH, 1]
    assert of[(1, 2, 3), TRAINED, 3] < 4
    rows = few_heads_figure.table(data)
    assert rows[0] == ["lags", "", "1 head", "2 heads", "3 heads"]
    assert len(rows) == 1 + 4 + 6
    assert len(few_heads_figure.draw(data).axes) == 2
    assert few_heads.EXPERIMENT.beyond  # left out of `sih reproduce` unless asked for
