from __future__ import annotations

import numpy as np
import pytest
import torch
from support.pictures import check_drawn_from_file

import sih
from sih.attention.reference_circuit import sequence_of_lag
from sih.paper import attention_maps, attention_maps_figure
from sih.results.experiment import FRESH_SEED
from sih.training.runs.run_store import RunStore


def test_maps_of_the_models_and_the_construction(runs: dict[str, str]) -> None:
    """All rows see the same sequence, each model as much of it as it reads."""
    config = attention_maps.MapsConfig(
        (runs["standard-1.2"], runs["disentangled-1.2"], "no-such-model"), true_lag=2, shown=18
    )
    data = attention_maps.compute(config, RunStore())
    assert [row.name for row in data.rows] == ["construction", "standard-1.2", "disentangled-1.2"]
    assert data.missing == ("no-such-model: not shipped",)
    task = sih.open_run(runs["standard-1.2"]).task
    tokens = sequence_of_lag(task, 2, rng=torch.Generator().manual_seed(FRESH_SEED))
    built = sih.construct(task, target="two-lags").trace(tokens).attention
    for row, length in zip(data.rows[1:], (20, 16), strict=True):
        with torch.no_grad():
            found = sih.open_run(runs[row.name]).model.trace(tokens[:, :length]).attention
        assert (row.length, row.heads) == (length, (1, 2, 1))
        shown = min(18, length - 1)  # the last position is not drawn
        for layer in range(3):
            far = [
                [(own[i] - wanted[i]).abs().sum().item() / 2 for i in range(data.first, length - 1)]
                for wanted in [built[layer][0, 0, :length, :length]]
                for own in found[layer][0].double()
            ]
            means = [sum(each) / len(each) for each in far]
            head = row.numbers[layer] - 1
            assert means[head] == min(means)
            assert row.variation[layer] == pytest.approx(means[head])
            own = found[layer][0, head].double()
            assert torch.equal(row.maps[layer], own[:shown, :shown])
        third = found[2][0, 0]
        assert row.selected == pytest.approx(
            sum(third[i, i - 1].item() for i in range(data.first, length - 1))
            / (length - 1 - data.first)
        )
    assert data.construction.variation == (0.0, 0.0, 0.0)
    check_drawn_from_file(attention_maps_figure.draw, data)
    assert [len(line) for line in attention_maps_figure.table(data)] == [6] * 4


def test_models_trained_as_in_the_paper_stand_above_the_construction() -> None:
    names = ("standard-1.2", "paper-1.2-length32")
    data = attention_maps.compute(attention_maps.MapsConfig(names, true_lag=2), RunStore())
    assert [row.name for row in data.rows] == ["paper-1.2-length32", "construction", "standard-1.2"]
    assert [row.as_in_the_paper for row in data.rows] == [True, False, False]
    assert [len(row.maps[0]) for row in data.rows] == [31, 48, 48]
    labels = [attention_maps_figure.label(row).split("\n") for row in data.rows]
    assert labels[0] == ["standard", "as the paper trains", "[1,1,1], length 32"]
    assert labels[2] == ["standard", "preset auto", "[1,1,1], length 128"]


def test_of_several_heads_the_constructions_first_is_shown() -> None:
    config = attention_maps.MapsConfig(("paper-1.2.3-1.1.1-length32",), true_lag=1)
    data = attention_maps.compute(config, RunStore())
    task = sih.open_run("paper-1.2.3-1.1.1-length32").task
    tokens = sequence_of_lag(task, 1, rng=torch.Generator().manual_seed(FRESH_SEED))
    built = sih.construct(task).trace(tokens).attention
    assert (data.construction.heads, data.construction.numbers) == ((1, 3, 1), (1, 1, 1))
    assert torch.equal(data.construction.maps[1], built[1][0, 0, :31, :31])
    assert attention_maps_figure.note(data, data.construction, 1) == "head 1 of 3"


def test_each_layer_has_a_scale_of_its_own() -> None:
    """The darkest is the construction's usual largest: of layer 3 nearly 1, of layer 2 much less."""
    config = attention_maps.MapsConfig(("standard-1.2.3-1.1.1",), true_lag=2)
    data = attention_maps.compute(config, RunStore())
    tops = [attention_maps_figure.darkest(data, layer) for layer in range(3)]
    for layer, top in enumerate(tops):
        rows = data.construction.maps[layer][24:].tolist()
        assert top == pytest.approx(sum(map(max, rows)) / 24)
    assert tops[1] < 0.15 < 0.3 < tops[0] < 0.9 < tops[2]
    figure = attention_maps_figure.draw(data)
    first, second = (figure.axes[index].images[0].get_array() for index in (0, 1))
    own = data.rows[0].maps[0].numpy()
    assert abs(np.asarray(first) * tops[0] - own).max() < 1e-12
    assert np.asarray(second).max() > 1
    assert all(ax.images[0].get_clim() == (0, 1) for ax in figure.axes[:6])


def test_models_that_cannot_be_compared_are_named_with_the_reason(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "another-matrix", "two-layers", "one-head")
    data = attention_maps.compute(
        attention_maps.MapsConfig(tuple(runs[name] for name in names), true_lag=1, shown=12),
        RunStore(),
    )
    assert [row.name for row in data.rows] == ["construction", "standard-1.2", "one-head"]
    assert data.missing == (
        "another-matrix: trained on another task",
        "two-layers: has 2 layers, the construction 3",
    )
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
    second = data.construction.maps[1]
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
    expected = ("paper-1.3.4-length32", "standard-1.3.4-1.1.1", "disentangled-1.3.4")
    assert found["attention_maps_1.3.4_lag4"].config.models == expected
    assert found["attention_maps_1.2.3_lag1"].config.models[0] == "paper-1.2.3"
    assert {found[f"attention_maps_{name}"].config.true_lag for name in figures[1:4]} == {1}
    config = found["attention_maps_3.5.7_lag3"].config
    assert config == attention_maps.MapsConfig()
    assert attention_maps.EXPERIMENTS[0].reads(config, RunStore()) == config.models
