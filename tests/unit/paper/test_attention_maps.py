from __future__ import annotations

import pytest
import torch
from support.pictures import check_drawn_from_file

import sih
from sih.attention.reference_circuit import sequence_of_lag
from sih.paper import attention_maps, attention_maps_figure
from sih.results.experiment import FRESH_SEED
from sih.training.runs.run_store import RunStore


def test_maps_of_the_models_and_the_construction(runs: dict[str, str]) -> None:
    """All rows see the same sequence, as long as the shortest model reads; heads of the model in matched order."""
    config = attention_maps.MapsConfig(
        (runs["standard-1.2"], runs["disentangled-1.2"], "no-such-model"), true_lag=2, shown=8
    )
    data = attention_maps.compute(config, RunStore())
    assert [row.name for row in data.rows] == ["standard-1.2", "disentangled-1.2", "constructed"]
    assert data.missing == ("no-such-model: not shipped",)
    run = sih.open_run(runs["standard-1.2"])
    task = run.task.with_length(16)
    tokens = sequence_of_lag(task, 2, rng=torch.Generator().manual_seed(FRESH_SEED))
    with torch.no_grad():
        found = run.model.trace(tokens).attention
    wanted = sih.construct(task).trace(tokens).attention
    row = data.rows[0]
    assert sorted(row.numbers[1].tolist()) == [1, 2]
    for layer in range(3):
        for head, number in enumerate(row.numbers[layer].tolist()):
            assert number > 0
            own, built = found[layer][0, number - 1].double(), wanted[layer][0, head]
            assert torch.equal(row.maps[layer][head], own[:8, :8])
            far = [(own[i] - built[i]).abs().sum().item() / 2 for i in range(data.first, 15)]
            assert row.variation[layer][head].item() == pytest.approx(sum(far) / len(far))
    third = found[2][0, 0]
    assert row.selected == pytest.approx(
        sum(third[i, i - 1].item() for i in range(data.first, 15)) / (15 - data.first)
    )
    assert [far.tolist() for far in data.rows[-1].variation] == [[0.0], [0.0, 0.0], [0.0]]
    check_drawn_from_file(attention_maps_figure.draw, data)
    assert [len(line) for line in attention_maps_figure.table(data)] == [6] * 4


def test_models_that_cannot_be_compared_are_named_with_the_reason(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "another-matrix", "two-layers", "one-head")
    data = attention_maps.compute(
        attention_maps.MapsConfig(tuple(runs[name] for name in names), true_lag=1, shown=12),
        RunStore(),
    )
    assert [row.name for row in data.rows] == ["standard-1.2", "one-head", "constructed"]
    assert data.missing == (
        "another-matrix: trained on another task",
        "two-layers: has 2 layers, the construction 3",
    )
    assert data.rows[1].numbers[1].tolist().count(0) == 1
    assert data.rows[1].variation[1].isnan().sum() == 1
    figure = attention_maps_figure.draw(data)
    assert sum(not ax.get_visible() for ax in figure.axes) == 1
    with pytest.raises(ValueError, match="none of the models of this figure is there: nothing"):
        attention_maps.compute(attention_maps.MapsConfig(("nothing",)), RunStore())
    with pytest.raises(ValueError, match=r"the true lag is one of the task's, \(1, 2\); got 3"):
        attention_maps.compute(
            attention_maps.MapsConfig((runs["standard-1.2"],), true_lag=3), RunStore()
        )


def test_one_head_for_two_lags_is_compared_with_the_circuit_for_it(runs: dict[str, str]) -> None:
    data = attention_maps.compute(
        attention_maps.MapsConfig((runs["one-head"],), true_lag=2, shown=20), RunStore()
    )
    second = data.rows[-1].maps[1][0]
    assert [(row > 1e-6).nonzero().flatten().tolist() for row in second[6:9]] == [
        [2, 4, 6],
        [3, 5, 7],
        [2, 4, 6, 8],
    ]


def test_the_papers_figures_by_name() -> None:
    found = {experiment.name: experiment for experiment in attention_maps.EXPERIMENTS}
    figures = ("3.5.7_lag3", *(f"1.2.3.4.5_heads{n}" for n in (1, 2, 3)), "1.2_lag2")
    figures += tuple(f"{lags}_lag{k}" for lags in ("1.2.3", "1.3.4") for k in lags.split("."))
    assert list(found) == [f"attention_maps_{figure}" for figure in figures]
    for figure in figures[4:]:
        assert f"lag{found[f'attention_maps_{figure}'].config.true_lag}" == figure.partition("_")[2]
    expected = ("paper-1.3.4-length32", "standard-1.3.4", "disentangled-1.3.4")
    assert found["attention_maps_1.3.4_lag4"].config.models == expected
    assert (
        found["attention_maps_1.2.3_lag1"].config.models[1] == "paper-disentangled-1.2.3-length32"
    )
    config = found["attention_maps_3.5.7_lag3"].config
    assert config == attention_maps.MapsConfig()
    assert attention_maps.EXPERIMENTS[0].reads(config, RunStore()) == config.models
