from __future__ import annotations

import pytest
from support.pictures import check_drawn_from_file

from sih.experiments import certificates
from sih.experiments.certificates import BAYES, MASKS, POSITIONS, POSTERIOR, TWO_LAGS
from sih.figures.error_points import draw_certificates
from sih.runs.run_store import RunStore


def test_each_lag_set_has_the_circuits_it_allows() -> None:
    sets = ((1, 2), (1, 3), (1, 3, 4))
    config = certificates.CertificatesConfig(lag_sets=sets, length=24, matrices=1, sequences=2)
    data = certificates.compute(config, RunStore())
    always = {POSITIONS, BAYES, POSTERIOR}
    assert [set(error) for error in data.error] == [{MASKS, TWO_LAGS, *always}, {TWO_LAGS, *always}, always]
    assert data.heads == [2, 2, 4]
    assert [error[TWO_LAGS] for error in data.error[:2]] == pytest.approx([0, 0], abs=1e-9)
    check_drawn_from_file(draw_certificates, data)
    assert [len(row) for row in certificates.table(data)] == [4] * 6
