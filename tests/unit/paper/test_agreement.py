from __future__ import annotations

from dataclasses import replace

import pytest
from support.pictures import check_drawn_from_file, same

import sih
from sih.paper import agreement, agreement_figure
from sih.training.runs.run_store import RunStore


def test_agreement_by_model_and_over_seeds(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "standard-1.2-seed1", "disentangled-1.2", "two-layers", "one-head")
    config = agreement.AgreementConfig((*(runs[name] for name in names), "nothing"), sequences=8)
    data = agreement.compute(config, RunStore())
    assert tuple(data.models) == names
    assert data.missing == ("nothing",)
    assert (data.facts["disentangled-1.2"].kind, data.facts["two-layers"].heads) == (
        "disentangled",
        (1, 1),
    )
    first, second = (data.models[name] for name in names[:2])
    assert not same(first, second)
    seeds = data.seeds["standard-1.2"]
    assert list(data.seeds) == ["standard-1.2"]
    for key in ("selected", "candidates"):
        values = [entry.shares[key][0] for entry in (first, second)]
        assert seeds[key] == pytest.approx(
            (sum(values) / 2, abs(values[0] - values[1]) / 2), abs=1e-6
        )
    sizes = [abs(entry.correlation["tokens"][0]) for entry in (first, second)]
    assert seeds["correlation, tokens"][0] == pytest.approx(sum(sizes) / 2)
    check_drawn_from_file(agreement_figure.draw, data)
    rows = agreement_figure.table(data)
    assert [len(row) for row in rows] == [len(rows[0])] * 7
    assert data.selection["one-head"] == data.models["one-head"].selection
    assert data.selection["one-head"].sequences == 8
    # the figure has models of the paper's number of states alone
    data = replace(data, facts={name: replace(one, states=5) for name, one in data.facts.items()})
    (ax,) = agreement_figure.draw(data).axes
    assert ax.get_title() == "lags {1,2}"
    assert [str(line.get_label()) for line in ax.lines][:2] == [
        "standard, preset auto or harmonic: true lag",
        "standard, preset auto or harmonic: all lags",
    ]
    twice = {"one-head": "one-head", "another seed": "one-head"}
    both = replace(
        data,
        models={new: data.models[old] for new, old in twice.items()},
        facts={new: replace(data.facts[old], name=new) for new, old in twice.items()},
    )
    labels = [line.get_label() for line in agreement_figure.draw(both).axes[0].lines]
    assert [
        labels.count(f"standard, preset auto or harmonic: {which}")
        for which in ("true lag", "all lags")
    ] == [2, 2]
    with pytest.raises(ValueError, match="none of the models to compare is there: nothing"):
        agreement.compute(agreement.AgreementConfig(("nothing",)), RunStore())


def test_agreement_is_the_same_every_time(runs: dict[str, str]) -> None:
    config = agreement.AgreementConfig((runs["standard-1.2"],), sequences=4)
    assert same(agreement.compute(config, RunStore()), agreement.compute(config, RunStore()))
    assert agreement.EXPERIMENT.reads(config, RunStore()) == config.models


def test_a_plainly_trained_model_is_judged_on_more_sequences() -> None:
    """The share on the true lag, the posterior and their ratio, by plain loops."""
    config = agreement.AgreementConfig(("paper-1.3-length32",), sequences=4, selection_sequences=12)
    data = agreement.compute(config, RunStore())
    found, run = data.selection["paper-1.3-length32"], RunStore().run("paper-1.3-length32")
    first = run.task.max_lag
    batch = sih.sample(run.task, 12, rng=0)
    attention = run.model.trace(batch.tokens).attention[-1][:, 0].tolist()
    posterior = sih.lag_posterior(batch.tokens, run.task).tolist()
    selected, known = 0.0, 0.0
    for n, lag in enumerate(batch.lags.tolist()):
        for i in range(first, 31):
            selected += attention[n][i][i + 1 - lag] / 12 / (31 - first)
            known += posterior[n][i][run.task.lags.index(lag)] / 12 / (31 - first)
    assert found.sequences == 12
    assert found.selected[0] == pytest.approx(selected, rel=1e-5)
    assert found.posterior[0] == pytest.approx(known, rel=1e-5)
    assert found.relative[0] == pytest.approx(selected / known, rel=1e-5)
    row = agreement_figure.table(data)[1]
    assert row[-2] == "12"


def test_means_over_seeds_have_all_their_digits(runs: dict[str, str]) -> None:
    config = agreement.AgreementConfig(
        (runs["standard-1.2"], runs["standard-1.2-seed1"]), sequences=4
    )
    data = agreement.compute(config, RunStore())
    each = [entry.parents[0] for entry in data.models.values()]
    assert data.seeds["standard-1.2"]["parents"][0] == pytest.approx(sum(each) / 2, rel=1e-14)


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
