from __future__ import annotations

from dataclasses import replace

import pytest
from support.pictures import check_drawn_from_file

from sih.experiments import agreement
from sih.figures.share_curves import draw_agreement
from sih.runs.run_store import RunStore


def test_agreement_by_model_and_over_seeds(runs: dict[str, str]) -> None:
    names = ("standard-1.2", "standard-1.2-seed1", "disentangled-1.2", "two-layers", "one-head")
    config = agreement.AgreementConfig((*(runs[name] for name in names), "nothing"), sequences=8)
    data = agreement.compute(config, RunStore())
    assert tuple(data.models) == names
    assert data.missing == ["nothing"]
    assert (data.compared["disentangled-1.2"].kind, data.compared["two-layers"].heads) == ("disentangled", (1, 1))
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
    assert [len(row) for row in rows] == [len(rows[0])] * 7
    assert list(data.with_usual_heads(plain=False)) == ["one-head"]
    assert data.with_usual_heads(plain=True) == {}
    (ax,) = draw_agreement(data).axes
    assert ax.get_title() == "lags {1,2}"
    assert [str(line.get_label()) for line in ax.lines][:2] == [
        "standard, our recipe: true lag",
        "standard, our recipe: all lags",
    ]
    twice = {"one-head": "one-head", "another seed": "one-head"}
    both = replace(
        data,
        models={new: data.models[old] for new, old in twice.items()},
        compared={new: data.compared[old] for new, old in twice.items()},
    )
    labels = [line.get_label() for line in draw_agreement(both).axes[0].lines]
    assert [labels.count(f"standard, our recipe: {which}") for which in ("true lag", "all lags")] == [2, 2]
    with pytest.raises(ValueError, match="none of the models to compare is there: nothing"):
        agreement.compute(agreement.AgreementConfig(("nothing",)), RunStore())


def test_agreement_is_the_same_every_time(runs: dict[str, str]) -> None:
    config = agreement.AgreementConfig((runs["standard-1.2"],), sequences=4)
    assert agreement.compute(config, RunStore()) == agreement.compute(config, RunStore())
    assert agreement.EXPERIMENT.reads(config, RunStore()) == config.models
    names = agreement.EXPERIMENT.config.models
    assert len(set(names)) == len(names)


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
