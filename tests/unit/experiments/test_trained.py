"""Fig. 4 on small models: what is averaged, what is compared with what, and a figure from the file alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.pictures import through_file
from support.small_runs import make, make_all

import sih
from sih.experiments import trained
from sih.experiments.compared import FRESH_SEED
from sih.figures.kl_curves import draw_trained
from sih.runs.run_store import RunStore, open_run
from sih.training.config import TrainConfig

BASE = TrainConfig(
    lags=(1, 2, 3),
    states=3,
    length=20,
    heads=(1, 3, 1),
    dim=8,
    qk_dim=4,
    steps=2,
    batch=4,
    held_out=3,
    evaluate_every=2,
)
RUNS = {
    "a": BASE,
    "b": BASE.replace(seed=1),
    "lone": BASE.replace(heads=(1, 1, 1)),
    "two": BASE.replace(heads=(1, 2, 1)),
    "apart": BASE.replace(model="disentangled"),
    "pair": BASE.replace(lags=(1, 3), heads=(1, 1, 1)),
    "elsewhere": BASE.replace(matrix_seed=5),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("runs"), RUNS)


@pytest.fixture(scope="module")
def data(folder: Path) -> trained.TrainedCurves:
    names = [str(folder / name) for name in ("a", "b", "lone", "two", "apart", "pair")]
    sets = ((1, 2, 3), (1, 3), (2, 3))
    return trained.compute(
        trained.TrainedConfig(sets, (*names, "none such"), sequences=40, disentangled_sequences=9), RunStore()
    )


def test_panels_and_curves(data: trained.TrainedCurves) -> None:
    assert [panel.lags for panel in data.panels] == [(1, 2, 3), (1, 3), (2, 3)]
    ours = [{label: of.models for label, of in panel.compared.items() if of.trained} for panel in data.panels]
    several = {
        "trained standard, our recipe": ("a", "b"),
        "trained standard, 1 head, our recipe": ("lone",),
        "trained standard, [1,2,1], our recipe": ("two",),
        "trained disentangled, our recipe": ("apart",),
    }
    assert ours == [several, {"trained standard, our recipe": ("pair",)}, {}]  # for two lags one head is enough
    assert data.missing == ["none such"]
    compared = data.panels[0].compared
    assert compared["trained standard, our recipe"].heads == compared["construction"].heads == (1, 3, 1)
    assert (compared["trained standard, our recipe"].kind, compared["trained standard, our recipe"].seeds) == (
        "standard",
        (0, 1),
    )
    assert data.panels[1].compared["two lags, 1 head"].heads == (1, 1, 1)
    assert "two lags, 1 head" not in data.panels[0].kl
    assert data.panels[0].kl["trained disentangled, our recipe"].count == 9


def test_numbers_against_loops(data: trained.TrainedCurves, folder: Path) -> None:
    """Fresh sequences of the runs' own task; seeds averaged; the last position left out."""
    task = open_run(folder / "a").task
    batch = sih.sample(task, 40, rng=torch.Generator().manual_seed(FRESH_SEED))
    truth = sih.known_lag(batch.tokens, batch.lags, task)
    ml = sih.kl_to_truth(sih.maximum_likelihood(batch.tokens, task), batch, task)
    total, minus_ml, nearer = 0.0, 0.0, 0.0
    bayes, likeliest = (sih.bma(batch.tokens, task), sih.maximum_likelihood(batch.tokens, task))
    for name in ("a", "b"):
        with torch.no_grad():
            law = open_run(folder / name).model.predict(batch.tokens).double()
        for n in range(40):
            for i in range(3, 19):
                kl = sum((p * (p / q).log()).item() for p, q in zip(truth[n, i], law[n, i], strict=True))
                total += kl / 2 / 40 / 16
                minus_ml += (kl - ml[n, i].item()) / 2 / 40 / 16
                apart = [(law[n, i] - other[n, i]).abs().sum().item() / 2 for other in (bayes, likeliest)]
                nearer += (apart[0] - apart[1]) / 2 / 40 / 16
    panel = data.panels[0]
    assert len(panel.kl["ML"].by_position) == 19
    assert panel.kl["trained standard, our recipe"].mean == pytest.approx(total, rel=1e-6)
    assert panel.minus["ML"]["trained standard, our recipe"].mean == pytest.approx(minus_ml, rel=1e-6)
    assert panel.nearer_bma["trained standard, our recipe"].mean == pytest.approx(nearer, rel=1e-5)
    seeds = panel.seeds
    assert panel.kl["trained standard, our recipe"].mean == pytest.approx((seeds["a"].mean + seeds["b"].mean) / 2)
    assert seeds["a"].mean != seeds["b"].mean


def test_our_circuit_is_bma(data: trained.TrainedCurves) -> None:
    for panel in data.panels:
        assert panel.minus["BMA"]["Bayes-optimal construction"].mean == pytest.approx(0, abs=1e-5)
        assert panel.minus["midway"]["BMA"].mean < 0 < panel.minus["midway"]["ML"].mean


def test_nearer_bma_by_hand() -> None:
    law, bma, ml = (torch.tensor([[[p, 1 - p]]], dtype=torch.float64) for p in (0.5, 0.6, 0.9))
    assert trained.nearer_bma(law, bma, ml).item() == pytest.approx(0.1 - 0.4)
    assert trained.nearer_bma(ml, bma, ml).item() == pytest.approx(0.3)


def test_nearer_bma_in_the_data(data: trained.TrainedCurves) -> None:
    for panel in data.panels:
        found = panel.nearer_bma
        assert found["BMA"].mean == pytest.approx(-found["ML"].mean)
        assert found["BMA"].mean < 0
        assert found["Bayes-optimal construction"].mean == pytest.approx(found["BMA"].mean, abs=1e-4)


def test_models_of_two_matrices_have_two_panels(folder: Path) -> None:
    names = (str(folder / "a"), str(folder / "elsewhere"))
    data = trained.compute(trained.TrainedConfig(((1, 2, 3),), names, sequences=8), RunStore())
    assert [panel.compared["trained standard, our recipe"].models for panel in data.panels] == [("a",), ("elsewhere",)]
    assert data.panels[0].kl["ML"] != data.panels[1].kl["ML"]


def test_other_heads_and_widths_have_curves_of_their_own(folder: Path) -> None:
    make(folder / "wide", BASE.replace(dim=16))
    names = tuple(str(folder / name) for name in ("a", "wide", "two"))
    data = trained.compute(trained.TrainedConfig(((1, 2, 3),), names, sequences=4), RunStore())
    labels = [label for label, of in data.panels[0].compared.items() if of.trained]
    assert labels == [
        "trained standard, our recipe",
        "trained standard, our recipe, d=16",
        "trained standard, [1,2,1], our recipe",
    ]
    colours = {str(curve.get_label()): curve.get_color() for curve in draw_trained(data).axes[0].lines}
    assert len({colours[label] for label in labels}) == 1


def test_the_figure_needs_only_the_file(data: trained.TrainedCurves) -> None:
    again = through_file(data)
    assert again == data
    figure = draw_trained(again)
    titles = [ax.get_title() for ax in figure.axes if ax.get_visible()]
    assert titles == [
        f"lags {lags}; length {t}"
        for lags, t in (("{1,2,3}, least heads: 3", 20), ("{1,3}, least heads: 2", 20), ("{2,3}, least heads: 2", 128))
    ]
    (legend,) = figure.legends
    assert "trained disentangled, our recipe" in [text.get_text() for text in legend.get_texts()]
    assert legend.get_title().get_text() == "not shipped: none such"
    first = {str(curve.get_label()): curve for curve in figure.axes[0].lines}
    assert np.asarray(first["trained standard, our recipe"].get_ydata()).tolist() == pytest.approx(
        data.panels[0].kl["trained standard, our recipe"].by_position[2:]
    )
    assert np.asarray(first["trained standard, our recipe"].get_xdata()).tolist()[:2] == [3, 4]
    rows = trained.table(data)
    assert rows[0] == ["", "{1,2,3}", "{1,3}", "{2,3}"]
    assert {row[0]: row[2] for row in rows}["trained standard, 1 head, our recipe"] == ""


def test_the_band_of_several_seeds_is_their_range(data: trained.TrainedCurves) -> None:
    figure = draw_trained(data)
    place = list(data.panels[0].kl).index("trained standard, our recipe")
    band = np.asarray(figure.axes[0].collections[place].get_paths()[0].vertices)
    each = torch.tensor([data.panels[0].seeds[name].by_position[2:] for name in ("a", "b")])
    assert band[:, 1].max() == pytest.approx(each.max().item(), rel=1e-5)
    assert band[:, 1].min() == pytest.approx(each.min().item(), rel=1e-5)


def test_the_default_asks_for_the_papers_models() -> None:
    names = trained.reads(trained.EXPERIMENT.config, RunStore())
    assert {"standard-1.2.3", "standard-1.2.3-seed1", "disentangled-1.3"} <= set(names)
    assert trained.EXPERIMENT.config.lag_sets == ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
