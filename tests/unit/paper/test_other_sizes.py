from __future__ import annotations

import dataclasses

import pytest
import torch
from support.pictures import check_drawn_from_file

import sih
from sih.paper import other_sizes, other_sizes_figure, other_sizes_statements
from sih.paper.other_sizes import OtherSizes, SizesConfig
from sih.predictors.averaged_kl import averaged_kl
from sih.training.runs.run_store import RunStore


@pytest.fixture(scope="module")
def data() -> OtherSizes:
    return other_sizes.compute(SizesConfig(sequences=64), RunStore())


def test_every_size_has_a_panel_and_a_model(data: OtherSizes) -> None:
    assert [panel.states for panel in data.panels] == [3, 5, 10]
    for panel in data.panels:
        assert {"BMA", "ML", "construction", "trained by preset auto"} <= panel.kl.keys()
        for name, one in panel.models.items():
            run = sih.open_run(name)
            assert run.config.task.states == one.model.states == panel.states
            assert run.evaluation is not None
            assert one.ways == {at: way.pair() for at, way in run.evaluation.ways.items()}
            assert list(one.ways) == ["17-32", "33-64", "65-127"]
    check_drawn_from_file(other_sizes_figure.draw, data)
    assert other_sizes_figure.table(data)[0] == ["", "3 states", "5 states", "10 states"]


def test_a_curve_is_the_kl_of_the_predictions(data: OtherSizes) -> None:
    run = sih.open_run("standard-1.2.3-states10")
    rng = other_sizes.EXPERIMENT.config.fresh_rng()
    batch = sih.sample(run.task, 64, rng=rng)
    with torch.no_grad():
        law = run.model.predict(batch.tokens)
    kl = averaged_kl(law.double(), batch.tokens, run.task)
    panel = data.panels[2]
    found = panel.kl["trained by preset auto"]
    assert found.mean.tolist() == pytest.approx(kl.mean(dim=0)[:-1].tolist(), rel=1e-5)


def test_the_construction_is_judged_at_every_size(data: OtherSizes) -> None:
    found = other_sizes_statements.OTHER_SIZES_CONSTRUCTION.judge(data)
    assert [one.label for one in found.each] == ["3 states", "5 states", "10 states"]
    for one, panel in zip(found.each, data.panels, strict=True):
        built, likely = (panel.kl[label].overall.mean() for label in ("construction", "ML"))
        assert one.value == pytest.approx((built / likely).item())
    wrong = dataclasses.replace(
        data,
        panels=tuple(
            dataclasses.replace(
                panel,
                kl={**panel.kl, "construction": dataclasses.replace(
                    panel.kl["construction"], overall=2 * panel.kl["construction"].overall
                )},
            )
            for panel in data.panels
        ),
    )  # fmt: skip
    assert other_sizes_statements.OTHER_SIZES_CONSTRUCTION.judge(wrong).verdict == "does not hold"


def test_models_of_one_size_share_their_task(runs: dict[str, str]) -> None:
    names = (runs["standard-1.2"], runs["another-matrix"])
    config = SizesConfig((3,), (1, 2), names, sequences=8)
    with pytest.raises(ValueError, match="models of one size share length and matrix; another-"):
        other_sizes.compute(config, RunStore())
