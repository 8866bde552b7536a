from pathlib import Path

import pytest
from support.pictures import check_drawn_from_file, same
from support.small_runs import make_all

from sih.beyond.evidence_paths import channels as account
from sih.beyond.evidence_paths import channels_figure
from sih.training.config import TrainConfig
from sih.training.runs.run_store import RunStore


def test_every_model_of_three_layers_and_the_circuits(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "disentangled-1.2", "one-head")
    config = account.AccountConfig(
        (*(runs[name] for name in names), "nothing"), sequences=10, reference=12
    )
    data = account.compute(config, RunStore())
    assert sorted(data.models) == sorted(names)
    assert data.missing == ("nothing",)
    assert {one.model.training for one in data.models.values()} == {
        "other"
    }  # batches of another size than the paper's
    one = data.models["standard-1.2"]
    assert sum(share for share, _ in one.channels.shares.values()) == pytest.approx(1)
    assert one.phases is not None
    assert set(one.phases.period) == {"2.1", "2.2"}
    assert same(data, account.compute(config, RunStore()))
    circuits = data.circuits["{1,2}"]
    assert circuits["looking, heads: 1"][0] == pytest.approx(circuits["BMA"][0], abs=1e-4)
    assert circuits["BMA"][0] < circuits["the paper's, heads: 2"][0]
    rows = channels_figure.table(data)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 1 + 3 + len(circuits)
    check_drawn_from_file(channels_figure.draw, data)


def test_a_model_whose_phases_cannot_be_read_is_measured_all_the_same(tmp_path: Path) -> None:
    sparse = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.2, 0.4, 0.4]]
    config = TrainConfig(
        lags=(1, 2), length=12, heads=(1, 2, 1), steps=1, batch=2, held_out=2, states=3, mlp_dim=4
    )
    make_all(tmp_path, {"mlp": config, "zeros": config.replace(matrix=sparse, mlp_dim=None)})
    data = account.compute(
        account.AccountConfig(("mlp", "zeros"), sequences=8, reference=8), RunStore(tmp_path)
    )
    assert [one.phases for one in data.models.values()] == [None] * 2
    assert (bool(data.models["mlp"].layer_1), data.models["zeros"].layer_1) == (True, {})
    assert len(channels_figure.table(data)[1]) == len(channels_figure.table(data)[0])


def test_by_default_all_that_have_a_layer_between(runs: dict[str, str]) -> None:
    names = account.reads(account.AccountConfig(), RunStore())
    assert "standard-1.2.3" in names
    assert "standard-1.2.3-1.3" not in names
    with pytest.raises(ValueError, match="no trained model of three layers or more is there"):
        account.compute(account.AccountConfig(("nothing",)), RunStore())
