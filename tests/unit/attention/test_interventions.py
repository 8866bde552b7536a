"""Ablations and patches: against passes written out, along a path and everywhere."""

import pytest
import torch

import sih
from sih.task import Batch, Task


@pytest.fixture
def short(rng: torch.Generator) -> Task:
    return Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 10)


@pytest.fixture
def model(rng: torch.Generator) -> sih.Transformer:
    return sih.Transformer(3, 10, dim=8, qk_dim=4, heads=(1, 2, 1), rng=rng).double()


def test_a_mean_by_hand(model: sih.Transformer, short: Task) -> None:
    """One value in the middle of a pass, the rest of the pass written out."""
    batch, others = sih.sample(short, 5, rng=1), sih.sample(short, 70, rng=2)
    mean = model.run(others.tokens)["2.1/output"].mean(0)
    third = model.each_layer()[2]
    h = model.run(batch.tokens)["1/stream"]
    h = h + mean + model.run(batch.tokens)["2.2/output"]
    later = torch.ones(10, 10, dtype=torch.bool).triu(1)
    scores = (h @ third.Q[0] @ (h @ third.K[0]).mT).masked_fill(later, -torch.inf)
    h = h + torch.softmax(scores / model.config.temperature, -1) @ (h @ third.V[0])
    expected = torch.softmax(h @ model.readout.T, -1)
    assert torch.allclose(sih.ablate(model, batch, "2.1/output", reference=others), expected)
    assert torch.allclose(
        sih.ablate(model, batch.tokens, ["2.1/output"], "mean", others.tokens), expected
    )


def test_a_path_by_hand(model: sih.Transformer, short: Task) -> None:
    """Only the third layer's keys see the change: queries, values and the residual sum stay."""
    batch = sih.sample(short, 5, rng=1)
    trace = model.run(batch.tokens)
    third, h = model.each_layer()[2], trace["2/stream"]
    changed = h - trace["2.1/output"]
    later = torch.ones(10, 10, dtype=torch.bool).triu(1)
    scores = (h @ third.Q[0] @ (changed @ third.K[0]).mT).masked_fill(later, -torch.inf)
    out = h + torch.softmax(scores / model.config.temperature, -1) @ (h @ third.V[0])
    expected = torch.softmax(out @ model.readout.T, -1)
    assert torch.allclose(sih.ablate(model, batch, "2.1/output", "zero", into="3.1/key"), expected)
    everywhere = sih.ablate(model, batch, "2.1/output", "zero")
    assert not torch.allclose(everywhere, expected, atol=1e-3)


def test_all_readers_together_see_what_everything_sees(task: Task) -> None:
    """In a constructed model, whose readout reads the third layer alone."""
    circuit, batch = sih.construct(task), sih.sample(task, 4, rng=0)
    readers = ["3.1/query", "3.1/key", "3.1/value"]
    for names in (["2.1/attention"], ["2.2/1.1/position", "2.3/value"]):
        assert torch.allclose(
            sih.ablate(circuit, batch, names), sih.ablate(circuit, batch, names, into=readers)
        )


def test_a_donors_evidence_moves_the_choice_and_nothing_else_does(task: Task) -> None:
    """Of the paper's circuit the values hold the evidence, of the looking circuit the attention does."""
    clean, corrupt = (sih.sample(task, 16, rng=seed, lag=lag) for seed, lag in ((1, 1), (2, 3)))
    attention, values = (
        [f"2.{head}/{what}" for head in (1, 2, 3)] for what in ("attention", "value")
    )
    scores = ("3.1/query", "3.1/key")
    for options, holds, idle in (
        ({}, values, attention),
        ({"target": "looking"}, attention[:2], values[:2]),
    ):
        circuit = sih.construct(task, **options)  # type: ignore[call-overload]
        own, other = (
            sih.known_lag(clean.tokens, torch.full((16,), lag), task)[:, -1] for lag in (1, 3)
        )
        moved = sih.patch(circuit, clean, corrupt, holds, into=scores)[:, -1]
        kept = sih.patch(circuit, clean, corrupt, idle, into=scores)[:, -1]
        assert (moved - other).abs().sum(-1).median() < 0.2 < (moved - own).abs().sum(-1).mean()
        assert (kept - own).abs().sum(-1).median() < 0.2


def test_patching_with_itself_changes_nothing_and_batches_do_not_matter(
    model: sih.Transformer, short: Task
) -> None:
    batch, donors = sih.sample(short, 70, rng=1), sih.sample(short, 70, rng=2)
    names = ["1.1/attention", "2.2/value"]
    assert torch.allclose(
        sih.patch(model, batch, batch, names), model.predict(batch.tokens, path="plain")
    )
    whole = sih.patch(model, batch, donors, names, into="3.1/query")
    last = sih.patch(model, batch.tokens[-1:], donors.tokens[-1:], names, into="3.1/query")
    assert torch.allclose(whole[-1:], last)


def test_resampling_takes_another_sequence_of_those_given(
    model: sih.Transformer, short: Task
) -> None:
    pair = sih.sample(short, 2, rng=3)
    swapped = sih.patch(model, pair.tokens, pair.tokens.flip(0), "1.1/output")
    assert torch.equal(sih.ablate(model, pair, "1.1/output", "resample"), swapped)
    one = Batch(pair.tokens[:1], pair.lags[:1])
    other = sih.ablate(model, one, "1.1/output", "resample", reference=pair.tokens[1:])
    assert torch.allclose(other, swapped[:1])
    many = sih.sample(short, 40, rng=4)
    first, again, else_ = (
        sih.ablate(model, many, "1.1/output", "resample", rng=seed) for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, else_)
    generator = torch.Generator().manual_seed(5)
    assert torch.equal(first, sih.ablate(model, many, "1.1/output", "resample", rng=generator))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": "2.3/output"}, "nothing to replace is called '2.3/output'"),
        ({"names": []}, "names has at least one name of a value"),
        ({"how": "median"}, "how must be one of mean, zero, resample; got 'median'"),
        ({"into": "4.1/key"}, "4.1/key"),
        ({"reference": torch.zeros(3, 4, dtype=torch.int64)}, "the batch's 10 positions; got 4"),
        ({"how": "resample"}, "two sequences or a reference"),
    ],
)
def test_wrong_input_gets_one_clear_line(
    change: dict[str, object], message: str, model: sih.Transformer, short: Task
) -> None:
    batch = sih.sample(short, 1, rng=0)
    options = {"names": "2.1/output", "how": "zero", **change}
    with pytest.raises(ValueError, match=message) as caught:
        sih.ablate(model, batch, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="a pair in each row"):
        sih.patch(model, batch, sih.sample(short, 2, rng=0), "2.1/output")
