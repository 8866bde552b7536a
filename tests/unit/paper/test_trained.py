"""Fig. 4 on small models: what is averaged, what is compared with what, and a figure from the file alone."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from support.pictures import same, through_file
from support.small_runs import make, make_all

import sih
from sih.paper import trained, trained_figure
from sih.results.experiment import FRESH_SEED
from sih.training.config import TrainConfig
from sih.training.runs.run_store import RunStore, open_run

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
        trained.TrainedConfig(sets, (*names, "none such"), sequences=40, disentangled_sequences=9),
        RunStore(),
    )


def test_panels_and_curves(data: trained.TrainedCurves) -> None:
    assert [panel.lags for panel in data.panels] == [(1, 2, 3), (1, 3), (2, 3)]
    ours = [
        {label: of.models for label, of in panel.compared.items() if of.trained}
        for panel in data.panels
    ]
    several = {
        "trained standard, K heads, uniform start, Adam": ("a", "b"),
        "trained standard, 1 head, uniform start, Adam": ("lone",),
        "trained standard, [1,2,1], uniform start, Adam": ("two",),
        "trained disentangled, K heads, uniform start, Adam": ("apart",),
    }
    assert ours == [
        several,
        {"trained standard, 1 head, uniform start, Adam": ("pair",)},
        {},
    ]  # for two lags one head is enough
    assert data.missing == ("none such",)
    compared = data.panels[0].compared
    assert (
        compared["trained standard, K heads, uniform start, Adam"].heads
        == compared["construction"].heads
        == (1, 3, 1)
    )
    assert (
        compared["trained standard, K heads, uniform start, Adam"].heads
        == compared["construction"].heads
        == (1, 3, 1)
    )
    assert (
        compared["trained standard, K heads, uniform start, Adam"].kind,
        compared["trained standard, K heads, uniform start, Adam"].seeds,
    ) == (
        "standard",
        (0, 1),
    )
    assert data.panels[1].compared["two lags, 1 head"].heads == (1, 1, 1)
    assert "two lags, 1 head" not in data.panels[0].kl
    assert (
        len(data.panels[0].kl["trained disentangled, K heads, uniform start, Adam"].overall) == 18
    )  # twice as many below length 128


def test_numbers_against_loops(data: trained.TrainedCurves, folder: Path) -> None:
    """Fresh sequences of the runs' own task; the KL averaged over the lag; the last position left out."""
    task = open_run(folder / "a").task
    tokens = sih.sample(
        task, 80, rng=torch.Generator().manual_seed(FRESH_SEED)
    ).tokens  # twice as many below 128
    posterior = sih.lag_posterior(tokens, task).tolist()
    P, s = task.P.tolist(), tokens.tolist()

    def mean_kl(law: torch.Tensor) -> float:
        total = 0.0
        for n, i in itertools.product(range(80), range(3, 19)):
            q = law[n, i].tolist()
            for weight, lag in zip(posterior[n][i], task.lags, strict=True):
                p = P[s[n][i - lag + 1]]
                total += (
                    weight * sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) / 80 / 16
                )
        return total

    panel = data.panels[0]
    with torch.no_grad():
        each = [
            mean_kl(open_run(folder / name).model.predict(tokens).double()) for name in ("a", "b")
        ]
    circuit = mean_kl(sih.construct(task, beta=100.0, lam=500.0).predict(tokens))
    assert len(panel.kl["ML"].mean) == 19
    assert panel.kl[
        "trained standard, K heads, uniform start, Adam"
    ].whole.mean.item() == pytest.approx(sum(each) / 2, rel=1e-6)
    for name, kl in zip(("a", "b"), each, strict=True):
        found = panel.models[name]
        assert found.kl.whole.mean.item() == pytest.approx(kl, rel=1e-6)
        assert found.circuit.reference == "construction"
        assert found.circuit.mean[0] == pytest.approx(kl / circuit, rel=1e-5)
        assert {*found.circuit.windows, *found.circuit.left_out} == {"4-8", "9-16", "17-19"}
    assert each[0] != each[1]


def test_each_model_is_beside_the_circuit_with_its_own_heads(data: trained.TrainedCurves) -> None:
    assert {one.model.name: one.circuit.reference for one in data.models} == {
        "a": "construction",
        "b": "construction",
        "lone": "construction, 1 head",
        "two": "construction, 2 heads",
        "apart": "construction",
        "pair": "two lags, 1 head",
    }


def test_our_circuit_is_bma(data: trained.TrainedCurves) -> None:
    for panel in data.panels:
        bayes, bma, ml = (
            panel.kl[label].whole.mean.item()
            for label in ("Bayes-optimal construction", "BMA", "ML")
        )
        assert bayes == pytest.approx(bma, abs=1e-5)
        assert bma < ml


def test_a_place_between_bma_and_ml() -> None:
    """By hand: what is at BMA has 0, at ML 1, and where the two do not differ there is no place."""
    base = torch.rand(30, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ml = base + 0.5
    for weight in (0.0, 0.3, 1.0, 2.0):
        found = trained.place_between((1 - weight) * base + weight * ml, base, ml, 2)
        assert list(found) == ["3-8", "9-11"]
        assert all(
            place == pytest.approx(weight) and error < 1e-9 for place, error in found.values()
        )
    assert trained.place_between(base, base, base, 2) == {}


def test_models_of_two_matrices_have_two_panels(folder: Path) -> None:
    names = (str(folder / "a"), str(folder / "elsewhere"))
    data = trained.compute(trained.TrainedConfig(((1, 2, 3),), names, sequences=8), RunStore())
    assert [
        panel.compared["trained standard, K heads, uniform start, Adam"].models
        for panel in data.panels
    ] == [
        ("a",),
        ("elsewhere",),
    ]
    assert not same(data.panels[0].kl["ML"], data.panels[1].kl["ML"])


def test_other_heads_and_widths_have_curves_of_their_own(folder: Path) -> None:
    make(folder / "wide", BASE.replace(dim=16))
    names = tuple(str(folder / name) for name in ("a", "wide", "two"))
    data = trained.compute(trained.TrainedConfig(((1, 2, 3),), names, sequences=4), RunStore())
    labels = [label for label, of in data.panels[0].compared.items() if of.trained]
    assert labels == [
        "trained standard, K heads, uniform start, Adam",
        "trained standard, K heads, uniform start, Adam, d=16",
        "trained standard, [1,2,1], uniform start, Adam",
    ]
    colours = {
        str(curve.get_label()): curve.get_color()
        for curve in trained_figure.draw(data).axes[0].lines
    }
    assert len({colours[label] for label in labels}) == 1


def test_the_figure_needs_only_the_file(data: trained.TrainedCurves) -> None:
    again = through_file(data)
    assert same(again, data)
    figure = trained_figure.draw(again)
    titles = [ax.get_title() for ax in figure.axes if ax.get_visible()]
    assert titles == [
        f"{lags}, T = {t}, Dirichlet(1) matrix 0"
        for lags, t in (("{1,2,3}, K = 3", 20), ("{1,3}, K = 2", 20), ("{2,3}, K = 2", 128))
    ]
    (legend,) = figure.legends
    assert "trained disentangled, K heads, uniform start, Adam" in [
        text.get_text() for text in legend.get_texts()
    ]
    assert legend.get_title().get_text() == "not shipped: none such"
    first = {str(curve.get_label()): curve for curve in figure.axes[0].lines}
    assert np.asarray(
        first["trained standard, K heads, uniform start, Adam"].get_ydata()
    ).tolist() == pytest.approx(
        data.panels[0].kl["trained standard, K heads, uniform start, Adam"].mean[2:].tolist()
    )
    assert np.asarray(first["trained standard, K heads, uniform start, Adam"].get_xdata()).tolist()[
        :2
    ] == [3, 4]
    rows = trained_figure.table(data)
    assert rows[0] == ["", *titles]
    assert {row[0]: row[2] for row in rows}["trained standard, K heads, uniform start, Adam"] == ""


def test_the_band_of_several_seeds_is_their_range(data: trained.TrainedCurves) -> None:
    figure = trained_figure.draw(data)
    place = list(data.panels[0].kl).index("trained standard, K heads, uniform start, Adam")
    band = np.asarray(figure.axes[0].collections[place].get_paths()[0].vertices)
    each = torch.stack([data.panels[0].models[name].kl.mean[2:] for name in ("a", "b")])
    assert band[:, 1].max() == pytest.approx(each.max().item(), rel=1e-5)
    assert band[:, 1].min() == pytest.approx(each.min().item(), rel=1e-5)


def test_every_panel_is_on_the_papers_axes(data: trained.TrainedCurves) -> None:
    """Positions are linear from 0 to the length, the KL runs from 1e-4 to 1; nothing is cut on the right."""
    figure = trained_figure.draw(data)
    assert [panel.length for panel in data.panels] == [20, 20, 128]
    for ax, panel in zip(figure.axes, data.panels, strict=False):
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, panel.length), (1e-4, 1))
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
        assert max(float(np.max(np.asarray(line.get_xdata()))) for line in ax.lines) < panel.length


def test_recipes_and_matrices_are_told_apart(folder: Path) -> None:
    """Runs of two recipes are two curves of two colours, never seeds of one; the title says the matrix."""
    make(folder / "soft", BASE.replace(target="distribution"))
    make(folder / "uniform", BASE.replace(matrix_law="uniform", matrix_seed=11))
    names = tuple(str(folder / name) for name in ("a", "b", "soft", "uniform"))
    data = trained.compute(trained.TrainedConfig(((1, 2, 3),), names, sequences=4), RunStore())
    first = {label: of for label, of in data.panels[0].compared.items() if of.trained}
    assert {label: of.models for label, of in first.items()} == {
        "trained standard, K heads, uniform start, Adam": ("a", "b"),
        "trained standard, K heads, uniform start, Adam, distribution as target": ("soft",),
    }
    assert [panel.matrix for panel in data.panels] == ["Dirichlet(1) matrix 0", "uniform matrix 11"]
    figure = trained_figure.draw(data)
    colours = {str(line.get_label()): line.get_color() for line in figure.axes[0].lines}
    assert len({colours[label] for label in first}) == 2


def test_the_default_asks_for_every_shipped_model_that_is_chosen() -> None:
    names = trained.reads(trained.EXPERIMENT.config, RunStore())
    assert {
        "standard-1.2.3",
        "standard-1.2.3-seed1",
        "disentangled-1.3",
        "paper-1.2.3-length64",
    } <= set(names)
    lags = {RunStore().run(name).task.lags for name in names}
    assert lags == set(trained.EXPERIMENT.config.lag_sets)
    fewer = trained.TrainedConfig(lag_sets=((1, 3),))
    assert {RunStore().run(name).task.lags for name in trained.reads(fewer, RunStore())} == {(1, 3)}
    assert trained.EXPERIMENT.config.lag_sets[:4] == ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
