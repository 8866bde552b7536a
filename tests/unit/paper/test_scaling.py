from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.pictures import same, through_file
from support.small_runs import make_all

import sih
from sih.paper import scaling, scaling_figure
from sih.predictors.averaged_kl import averaged_kl
from sih.results.experiment import FRESH_SEED
from sih.training.config import TrainConfig
from sih.training.runs.run_store import RunStore, open_run

BASE = TrainConfig(
    lags=(1, 2, 3),
    states=3,
    length=18,
    heads=(1, 2),
    qk_dim=4,
    steps=1,
    batch=2,
    held_out=3,
    evaluate_every=1,
)
RUNS = {
    "two": BASE,
    "three": BASE.replace(heads=(1, 3, 1)),
    "again": BASE.replace(heads=(1, 3, 1), seed=1),
    "wide": BASE.replace(heads=(1, 3, 1), dim=128),
    "four": BASE.replace(heads=(1, 1, 1, 1)),
    "heads": BASE.replace(heads=(1, 2, 1)),
    "elsewhere": BASE.replace(matrix_seed=3),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("runs"), RUNS)


@pytest.fixture(scope="module")
def data(folder: Path) -> scaling.ScalingCurves:
    layers = tuple(str(folder / name) for name in ("two", "three", "again", "wide", "four"))
    heads = tuple(str(folder / name) for name in ("heads", "three"))
    lags = (1, 2, 3)
    return scaling.compute(
        scaling.ScalingConfig(
            *((*layers, "none such"), heads, heads[:1], lags, lags, (1, 2, 3, 7)),
            sequences=30,
            others=heads,
        ),
        RunStore(),
    )


def test_curves_and_their_models(data: scaling.ScalingCurves) -> None:
    assert list(data.layers.kl) == ["BMA", "ML", "[1,2]", "[1,3,1]", "[1,3,1], d=128", "[1,1,1,1]"]
    written = ["construction, 1", "construction, 2", "construction, 3", "construction, 7"]
    assert list(data.heads.kl) == ["BMA", "ML", "[1,2,1]", "[1,3,1]", *written]
    assert list(data.plain_heads.kl) == ["BMA", "ML", "[1,2,1]", *written]
    assert same(data.plain_heads.kl["[1,2,1]"], data.heads.kl["[1,2,1]"])
    assert data.layers.compared["[1,3,1]"].models == ("three", "again")
    assert data.layers.compared["[1,3,1], d=128"].dim == 128
    assert data.heads.compared["[1,2,1]"].models == ("heads",)
    assert data.heads.compared["construction, 2"].heads == (1, 2, 1)
    assert {
        name: sorted(others) for name, others in data.heads.over.items()
    } == {  # every two models, and ML
        "heads": ["ML", "three"],
        "three": ["ML", "heads"],
    }
    assert [list(row.models) for row in data.others] == [["heads", "three"]]
    assert list(map(id, data.rows)) == list(
        map(id, (data.layers, data.heads, data.plain_heads, *data.others))
    )
    assert data.missing == ("none such",)
    assert same(data.heads.kl["construction, 7"], data.heads.kl["construction, 3"])
    assert not same(data.heads.kl["construction, 1"], data.heads.kl["construction, 3"])


def test_numbers(data: scaling.ScalingCurves, folder: Path) -> None:
    runs = [open_run(folder / name) for name in ("three", "again")]
    batch = sih.sample(runs[0].task, 30, rng=torch.Generator().manual_seed(FRESH_SEED))
    with torch.no_grad():
        laws = [run.model.predict(batch.tokens).double() for run in runs]
    means = [averaged_kl(law, batch.tokens, runs[0].task)[:, 3:-1].mean().item() for law in laws]
    assert data.layers.kl["[1,3,1]"].whole.mean.item() == pytest.approx(sum(means) / 2)
    assert data.heads.kl["[1,3,1]"].whole.mean.item() == pytest.approx(means[0])
    model = sih.construct(runs[0].task, heads=2, third="position", lam=500.0)
    kl = averaged_kl(model.predict(batch.tokens), batch.tokens, runs[0].task)[:, 3:-1]
    assert data.heads.kl["construction, 2"].whole.mean.item() == pytest.approx(kl.mean().item())
    over = data.layers.over["again"]["three"]
    assert over.mean[0] == pytest.approx(means[1] / means[0])
    assert [*over.windows, *over.left_out] == ["4-8", "9-16", "17-17"]
    assert data.others[0].over["heads"]["three"] == data.heads.over["heads"]["three"]


def test_models_of_a_row_share_a_task(folder: Path) -> None:
    names = (str(folder / "two"), str(folder / "elsewhere"))
    with pytest.raises(
        ValueError, match=r"share lags \(1, 2, 3\), length and matrix; elsewhere has others"
    ):
        scaling.compute(
            scaling.ScalingConfig(layers=names, others=("none",), sequences=4), RunStore()
        )


def test_the_figure_needs_only_the_file(data: scaling.ScalingCurves) -> None:
    again = through_file(data)
    assert same(again, data)
    figure = scaling_figure.draw(again)
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == list(data.layers.kl)[
        2:
    ]
    assert len(figure.axes[0].lines) == 6
    assert [len(figure.axes[row].lines) for row in (2, 4)] == [
        3,
        4,
    ]  # constructions are shown on the right only
    assert [figure.axes[row].get_title() for row in (2, 4)] == [
        "lags {1,2,3}, unaided Adam",
        "lags {1,2,3}, preset auto",
    ]
    rows = scaling_figure.table(data)
    assert [len(row) for row in rows] == [6] * 22
    assert {row[1] for row in rows[1:]} == {"18"}


def test_without_any_model_the_references_are_left() -> None:
    data = scaling.compute(
        scaling.ScalingConfig(
            ("none",),
            ("no",),
            ("nor this",),
            constructed_heads=(),
            sequences=3,
            others=("nor that",),
        ),
        RunStore(),
    )
    assert list(data.layers.kl) == list(data.heads.kl) == list(data.plain_heads.kl) == ["BMA", "ML"]
    assert data.missing == (
        "none",
        "no",
        "nor this",
        "nor that",
    )
    assert data.others == ()
    assert scaling_figure.draw(data).axes[1].get_title() == "by heads of each layer"


def test_kl_over_ml_of_a_shipped_model_is_its_evaluation() -> None:
    none = ("none",)
    config = scaling.ScalingConfig(
        ("standard-1.2.3-1.1",), none, none, constructed_heads=(), sequences=3, others=none
    )
    data = scaling.compute(config, RunStore())
    kept = sih.evaluate("standard-1.2.3-1.1")
    assert data.layers.over["standard-1.2.3-1.1"]["ML"].mean == kept.kl_over_ml.pair()


def test_the_rows_are_of_one_way_of_training_each() -> None:
    layers, heads, plain = scaling.rows_of(scaling.ScalingConfig())
    assert "standard-1.2.3-dim128" in layers
    assert "standard-1.2.3-1.1.1" not in layers  # depth is not mixed with fewer heads
    assert all(name.startswith("paper-1.2.3.4.5") for name in plain)
    assert all(name.startswith("standard-1.2.3.4.5") for name in heads)


def test_the_other_rows_are_of_one_task_and_one_way_of_training_each() -> None:
    """Every shipped standard model that has a fellow with other heads, by its configuration alone."""
    fellows: dict[object, dict[str, tuple[int, ...]]] = {}
    for name in RunStore().names(papers_task=True):
        config = RunStore().run(name).config
        if (
            config.model.kind == "standard"
            and config.task.states == 5
            and len(config.heads) == 3
            and "dim" not in config.unusual()
        ):
            way = (config.task.lags, config.task.length, config.recipe.name, config.optimiser.name)
            fellows.setdefault(way, {})[name] = config.heads
    wanted = {name for each in fellows.values() if len(set(each.values())) > 1 for name in each}
    others = set(scaling.others_of(scaling.ScalingConfig()))
    assert others == {name for name in wanted if "1.2.3.4.5" not in name}
    assert {"paper-1.2.3-length32-seed1", "standard-1.3.4-1.1.1"} <= others
