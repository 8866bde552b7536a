"""Teaser, mechanism, attention maps, agreement: what is computed, and that the saved data draws the same figure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.oracles_circuit import normalised
from support.pictures import check_drawn_from_file

import sih
from sih.analysis.reference_circuit import sequence_of_lag
from sih.experiments import agreement, attention_maps, mechanism, teaser
from sih.experiments.compared import FRESH_SEED
from sih.figures.heat_maps import draw_attention_maps
from sih.figures.sequence_arrows import draw_teaser
from sih.figures.share_curves import draw_agreement
from sih.figures.stored_cells import draw_mechanism
from sih.runs.run_store import RunStore
from sih.runs.run_writer import RunWriter
from sih.training.config import HELD_OUT_SEED, TrainConfig

SMALL = TrainConfig(lags=(1, 2), states=3, length=20, heads=(1, 2, 1), steps=1, batch=2, held_out=2)


def _trained(folder: Path, config: TrainConfig) -> str:
    for _ in RunWriter(config, folder, threads=1):
        pass
    return str(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Hardly trained, but trained: by name, their folders."""
    parent = tmp_path_factory.mktemp("runs")
    configs = {
        "standard-1.2": SMALL,
        "standard-1.2-seed1": SMALL.replace(seed=1),
        "disentangled-1.2": SMALL.replace(model="disentangled", length=16),
        "another-matrix": SMALL.replace(matrix_seed=1),
        "two-layers": SMALL.replace(heads=(1, 1)),
        "one-head": SMALL.replace(heads=(1, 1, 1)),
    }
    return {name: _trained(parent / name, config) for name, config in configs.items()}


def test_maps_of_the_models_and_the_construction(runs: dict[str, str]) -> None:
    """All rows see the same sequence, as long as the shortest model reads; heads of the model in matched order."""
    config = attention_maps.MapsConfig(
        (runs["standard-1.2"], runs["disentangled-1.2"], "no-such-model"), true_lag=2, shown=8
    )
    data = attention_maps.compute(config, RunStore())
    assert [row.label for row in data.rows] == ["standard-1.2", "disentangled-1.2", "constructed"]
    assert data.missing == ["no-such-model: not shipped"]
    run = sih.open_run(runs["standard-1.2"])
    task = run.task.with_length(16)
    tokens = sequence_of_lag(task, 2, rng=torch.Generator().manual_seed(FRESH_SEED))
    with torch.no_grad():
        found = run.model.trace(tokens).attention
    wanted = sih.construct(task).trace(tokens).attention
    row = data.rows[0]
    assert sorted(n for n in row.numbers[1] if n is not None) == [1, 2]
    for layer in range(3):
        for head, number in enumerate(row.numbers[layer]):
            assert number is not None
            own, built = found[layer][0, number - 1].double(), wanted[layer][0, head]
            torch.testing.assert_close(torch.tensor(row.maps[layer][head]).double(), own[:8, :8], rtol=0, atol=1e-5)
            far = [(own[i] - built[i]).abs().sum().item() / 2 for i in range(data.first, 15)]
            assert row.variation[layer][head] == pytest.approx(sum(far) / len(far))
    third = found[2][0, 0]
    assert row.selected == pytest.approx(sum(third[i, i - 1].item() for i in range(data.first, 15)) / (15 - data.first))
    assert data.rows[-1].variation == [[0.0], [0.0, 0.0], [0.0]]
    check_drawn_from_file(draw_attention_maps, data)
    assert [len(line) for line in attention_maps.table(data)] == [6] * 4


def test_models_that_cannot_be_compared_are_named_with_the_reason(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "another-matrix", "two-layers", "one-head")
    data = attention_maps.compute(
        attention_maps.MapsConfig(tuple(runs[name] for name in names), true_lag=1, shown=12), RunStore()
    )
    assert [row.label for row in data.rows] == ["standard-1.2", "one-head", "constructed"]
    assert data.missing == ["another-matrix: trained on another task", "two-layers: has 2 layers, the construction 3"]
    assert data.rows[1].numbers[1].count(None) == 1
    figure = draw_attention_maps(data)
    assert sum(not ax.get_visible() for ax in figure.axes) == 1
    with pytest.raises(ValueError, match="none of the models of this figure is there: nothing"):
        attention_maps.compute(attention_maps.MapsConfig(("nothing",)), RunStore())
    with pytest.raises(ValueError, match=r"the true lag is one of the task's, \(1, 2\); got 3"):
        attention_maps.compute(attention_maps.MapsConfig((runs["standard-1.2"],), true_lag=3), RunStore())


def test_one_head_for_two_lags_is_compared_with_the_circuit_for_it(runs: dict[str, str]) -> None:
    data = attention_maps.compute(attention_maps.MapsConfig((runs["one-head"],), true_lag=2, shown=20), RunStore())
    second = torch.tensor(data.rows[-1].maps[1][0])
    assert [(row > 1e-6).nonzero().flatten().tolist() for row in second[6:9]] == [[2, 4, 6], [3, 5, 7], [2, 4, 6, 8]]


def test_the_papers_figures_by_name() -> None:
    found = {experiment.name: experiment for experiment in attention_maps.EXPERIMENTS}
    assert next(iter(found)) == "attention_maps_3.5.7_lag3"
    assert len(found) == 11
    assert found["attention_maps_1.3.4_lag4"].config.models == ("standard-1.3.4", "disentangled-1.3.4")
    config = found["attention_maps_3.5.7_lag3"].config
    assert config == attention_maps.MapsConfig()
    assert attention_maps.reads(config, RunStore()) == ("standard-3.5.7", "disentangled-3.5.7")


def test_a_sequence_of_the_lag_asked_for() -> None:
    """P moves on by one every step, so a token tells its parent; the first tokens are nobody's children."""
    cycle = (1 - 1e-9) * torch.eye(5, dtype=torch.float64).roll(1, 1) + 1e-9 / 5
    task = sih.Task(cycle / cycle.sum(dim=-1, keepdim=True), (1, 2, 4), 40)
    for lag in task.lags:
        tokens = sequence_of_lag(task, lag, rng=torch.Generator().manual_seed(lag))[0]
        assert ((tokens[4:] - tokens[4 - lag : 40 - lag]) % 5 == 1).all()


def test_agreement_by_model_and_over_seeds(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "standard-1.2-seed1", "disentangled-1.2", "two-layers")
    config = agreement.AgreementConfig((*(runs[name] for name in names), "nothing"), sequences=8)
    data = agreement.compute(config, RunStore())
    assert tuple(data.models) == names
    assert data.missing == ["nothing"]
    first, second = (data.models[name] for name in names[:2])
    assert first != second
    seeds = data.seeds["standard-1.2"]
    assert list(data.seeds) == ["standard-1.2"]
    for key in ("selected", "candidates"):
        values = [entry.shares[key][0] for entry in (first, second)]
        assert seeds[key] == pytest.approx((sum(values) / 2, abs(values[0] - values[1]) / 2), abs=1e-6)
    sizes = [abs(entry.correlation["tokens"][0]) for entry in (first, second)]
    assert seeds["correlation, tokens"][0] == pytest.approx(sum(sizes) / 2)
    check_drawn_from_file(draw_agreement, data)
    rows = agreement.table(data)
    assert [len(row) for row in rows] == [len(rows[0])] * 6
    assert [ax.get_title() for ax in draw_agreement(data).axes] == ["lags {1,2}"]
    with pytest.raises(ValueError, match="none of the models to compare is there: nothing"):
        agreement.compute(agreement.AgreementConfig(("nothing",)), RunStore())


def test_fresh_sequences_are_others_than_those_of_training(runs: dict[str, str]) -> None:
    run = sih.open_run(runs["standard-1.2"])
    fresh, trained, held_out = (
        sih.sample(run.task, 32, rng=torch.Generator().manual_seed(seed)).tokens
        for seed in (FRESH_SEED, run.config.seed, HELD_OUT_SEED + run.config.task.matrix_seed)
    )
    assert not torch.equal(fresh, trained)
    assert not torch.equal(fresh, held_out)


def test_agreement_is_the_same_every_time(runs: dict[str, str]) -> None:
    config = agreement.AgreementConfig((runs["standard-1.2"],), sequences=4)
    assert agreement.compute(config, RunStore()) == agreement.compute(config, RunStore())
    assert agreement.reads(config, RunStore()) == config.models
    names = agreement.EXPERIMENT.config.models
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("lags", "length"), [((1, 2, 3), 10), ((1, 3, 4), 14)])
def test_the_mechanism_against_the_definition(lags: tuple[int, ...], length: int) -> None:
    data = mechanism.compute(mechanism.MechanismConfig(lags=lags, length=length, true_lag=3), RunStore())
    rng = torch.Generator().manual_seed(0)
    P = sih.random_transition_matrix(5, rng=rng)
    tokens = sequence_of_lag(sih.Task(P, lags, length), 3, rng=rng)[0].tolist()
    colours = sih.construct(sih.Task(P, lags, length)).circuit.head_of_offset
    seen = range(lags[-1], length)
    for token in seen:
        p = normalised(tokens, P.tolist(), list(lags), token)
        row = [0.0] * length
        for k, value in zip(lags, p, strict=True):
            row[token - k] = value
        assert data.stored[token] == pytest.approx(row, abs=1e-9)
    for head in range(len(data.gathered)):
        own = [token for token in seen if colours[(length - 1 - token) % len(colours)] == head]
        wanted = [0.0] * length
        source = [-1] * length
        for token in own:
            for k, value in zip(lags, normalised(tokens, P.tolist(), list(lags), token), strict=True):
                wanted[token - k] += value / len(own)
                source[token - k] = token
        assert data.gathered[head] == pytest.approx(wanted, abs=1e-9)
        assert data.source[head] == source
        assert data.purity[head] == pytest.approx([1.0] * length)
    check_drawn_from_file(draw_mechanism, data)


def test_the_teaser_shows_what_it_says() -> None:
    data = teaser.compute(teaser.TeaserConfig(), RunStore())
    assert list(data.examples) == ["1", "2"]
    assert sum(data.weights.values()) == pytest.approx(1)
    assert len(data.maps) == 3
    unsure = teaser.compute(teaser.TeaserConfig(concentration=1000.0), RunStore())
    third = torch.tensor(unsure.maps[2])
    assert unsure.weights == pytest.approx({"1": third[15, 15].item(), "2": third[15, 14].item()})
    assert 0.01 < unsure.weights["2"] < 0.99
    arrows = [len(ax.patches) - 2 * data.config.shown for ax in draw_teaser(data).axes[:3]]
    assert arrows == [14, 14, 2]
    check_drawn_from_file(draw_teaser, data)
    more = teaser.compute(teaser.TeaserConfig(lags=(1, 3, 4), true_lag=4, shown=12), RunStore())
    assert more.heads == [1, 4, 1]
    check_drawn_from_file(draw_teaser, more)
    with pytest.raises(ValueError, match="shown is between the largest lag and the length of 32; got 40"):
        teaser.compute(teaser.TeaserConfig(shown=40), RunStore())


@pytest.mark.slow
def test_the_shipped_models_read_transition_probabilities_and_select_the_lag() -> None:
    """What the paper says of trained models and holds here; the sign of the correlation is the model's choice."""
    names = ("standard-1.2.3", "standard-3.5.7")
    data = agreement.compute(agreement.AgreementConfig(names, sequences=32, seed=5), RunStore())
    for name in names:
        entry = data.models[name]
        assert abs(entry.correlation["tokens"][0]) > 0.9
        assert entry.variation["3"][0] < 0.15
        assert entry.shares["candidates"][0] > 0.97
        assert entry.shares["selected"][0] > 0.9 * entry.shares["posterior"][0]
