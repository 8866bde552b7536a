"""Circuits with relative positions: Prop. 1 and Bayes at any length, against loops over their definitions."""

from __future__ import annotations

import inspect
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sih
from sih.base.errors import FieldError
from sih.circuits.circuit_table import read_circuit
from sih.circuits.relative import GENTLER, RelativeCircuit, kappa
from sih.cli import main
from sih.models.offsets import attention_at

Row = list[float]
SETS = [lags for n in range(1, 7) for lags in itertools.combinations(range(1, 7), n)]
ZEROS = [[0, 0.5, 0.5, 0], [0.3, 0, 0.3, 0.4], [0.25, 0.25, 0.5, 0], [1, 0, 0, 0.0]]
BLOCKS = [
    ("1.1", "token", "token"),
    ("1.1", "token", "offset"),
    ("2.1", "token", "1.1/token"),
    ("2.1", "token", "token"),
    ("3.1", "2.1/1.1/offset", "offset"),
    ("3.1", "token", "token"),
    ("3.1", "token", "offset"),
]


def task_of(
    lags: tuple[int, ...], length: int = 20, states: int = 5, seed: int = 0, even: bool = True
) -> sih.Task:
    P = sih.random_transition_matrix(states, rng=seed)
    prior = None if even else torch.arange(1, len(lags) + 1) / sum(range(1, len(lags) + 1))
    return sih.Task(P, lags, length, lag_prior=prior)


def softmax(scores: Row) -> Row:
    powers = [math.exp(s - max(scores)) for s in scores]
    return [power / sum(powers) for power in powers]


def proposition_1(tokens: list[int], task: sih.Task, beta: float) -> list[Row]:
    """The weights at each position by the paper's formula: softmax of beta times the mean of p-tilde."""
    P, total, count, rows = task.P.tolist(), [0.0] * len(task.lags), 0, []
    for i, token in enumerate(tokens):
        if i >= max(task.lags):
            chances = [P[tokens[i - k]][token] for k in task.lags]
            if not sum(chances):
                chances = [1.0] * len(chances)
            total = [t + p / sum(chances) for t, p in zip(total, chances, strict=True)]
            count += 1
        rows.append(softmax([beta * t / max(count, 1) for t in total]))
    return rows


def posterior(tokens: list[int], task: sih.Task) -> list[Row]:
    """Bayes' rule at each position."""
    P, rows = task.P.tolist(), []
    scores = [math.log(p) for p in task.lag_prior.tolist()]
    for i, token in enumerate(tokens):
        if i >= max(task.lags):
            for n, k in enumerate(task.lags):
                chance = P[tokens[i - k]][token]
                scores[n] += math.log(chance) if chance else -1e6
        rows.append(softmax(scores))
    return rows


def laws(tokens: list[int], task: sih.Task, weights: list[Row]) -> list[Row]:
    """The law of the next token at each position: rows of P, or the stationary one where no lag reaches."""
    P, rows = task.P.tolist(), []
    for i in range(len(tokens)):
        if i + 1 < max(task.lags):
            rows.append(task.stationary.tolist())
            continue
        copied = [P[tokens[i - k + 1]] for k in task.lags]
        rows.append(
            [
                sum(w * row[s] for w, row in zip(weights[i], copied, strict=True))
                for s in range(len(P))
            ]
        )
    return rows


def worst(model: Any, task: sih.Task, tokens: Tensor, rule: Any) -> float:
    """The largest error of a weight, or of a law at any position."""
    found = attention_at(
        model.trace(tokens)["3.1/attention"][:, 1:, 1:], [k - 1 for k in task.lags]
    )
    predicted, off = model.predict(tokens), 0.0
    for b, row in enumerate(tokens.tolist()):
        weights = rule(row)
        first = task.max_lag - 1
        near = (found[b].double() - torch.tensor(weights, dtype=torch.float64)).abs()[first:]
        law = torch.tensor(laws(row, task, weights), dtype=torch.float64)
        off = max(off, near.max().item(), (predicted[b].double() - law).abs().max().item())
    return off


def mixed(task: sih.Task, length: int, count: int = 2) -> Tensor:
    """Sequences of the task and, where all transitions are possible, coin tosses and one whose lag changes."""
    drawn = sih.sample(task.with_length(length), count, rng=length).tokens
    if not (task.P > 0).all():
        return drawn
    rng = torch.Generator().manual_seed(length)
    tossed = torch.randint(task.num_states, (1, length), generator=rng)
    row = tossed[0, : task.max_lag].tolist()
    for i in range(task.max_lag, length):
        law = task.P[row[i - task.lags[i // 16 % len(task.lags)]]]
        row.append(int(torch.multinomial(law, 1, generator=rng)))
    return torch.cat([drawn, tossed, torch.tensor(row)[None]])


@pytest.mark.parametrize("form", ["disentangled", "standard"])
@pytest.mark.parametrize("lags", [(1, 2, 3), (3, 5, 7)], ids=str)
def test_proposition_1_to_the_letter_at_lengths_it_was_not_written_for(
    lags: tuple[int, ...], form: Any
) -> None:
    task = task_of(lags)
    model = sih.construct(task, kind="relative", form=form)
    assert model.config.heads == (1, 1, 1)
    for length in (20, 60, 200):
        rule = lambda row: proposition_1(row, task, 100.0)  # noqa: E731
        assert worst(model, task, mixed(task, length), rule) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("length", [20, 60, 200, 1024])
@pytest.mark.parametrize("form", ["disentangled", "standard"])
def test_proposition_1_for_all_63_sets_at_four_lengths(length: int, form: Any) -> None:
    for lags in SETS:
        task = task_of(lags, states=3)
        model = sih.construct(task, kind="relative", form=form)
        tokens = mixed(task, length, count=1)[: 1 if length > 200 else None]
        assert worst(model, task, tokens, lambda row: proposition_1(row, task, 100.0)) < 1e-12  # noqa: B023


def test_proposition_1_for_all_63_sets() -> None:
    for lags in SETS:
        task = task_of(lags, states=3)
        model = sih.construct(task, kind="relative", beta=30.0)
        tokens = sih.sample(task, 1, rng=1).tokens
        assert worst(model, task, tokens, lambda row: proposition_1(row, task, 30.0)) < 1e-12  # noqa: B023


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_zero_entries(lags: tuple[int, ...], dtype: torch.dtype) -> None:
    task = sih.Task(ZEROS, lags, 40, lag_prior=[0.5, 0.3, 0.2])
    double = dtype == torch.float64
    tokens = mixed(task, 80)
    model = sih.construct(task, kind="relative", beta=20.0, dtype=dtype)
    near = 1e-12 if double else 1e-5
    assert worst(model, task, tokens, lambda row: proposition_1(row, task, 20.0)) < near
    bayes = sih.construct(task, kind="relative", target="bayes", dtype=dtype)
    near = 1e-6 if double else 0.02
    assert worst(bayes, task, tokens, lambda row: posterior(row, task)) < near
    assert sih.verify(model, task).ok
    assert sih.verify(bayes, task).ok


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4)], ids=str)
def test_bayes(lags: tuple[int, ...]) -> None:
    """One set of weights, at each length, with a prior; in float32 to three digits."""
    task = task_of(lags, even=False)
    rule = lambda row: posterior(row, task)  # noqa: E731
    model = sih.construct(task, kind="relative", target="bayes")
    single = sih.construct(task, kind="relative", target="bayes", dtype=torch.float32)
    assert model.config.heads == (2, 1, 1)
    for length in (20, 128):
        assert worst(model, task, mixed(task, length), rule) < 1e-8
        assert worst(single, task, mixed(task, length), rule) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4), (3, 5, 7), (1, 2, 3, 4, 5)], ids=str)
def test_bayes_at_great_lengths(lags: tuple[int, ...]) -> None:
    """Sums of many numbers that are nearly alike lose digits, where the difference of two heads is not taken first."""
    task = task_of(lags, even=False)
    blocks = sih.construct(task, kind="relative", target="bayes")
    standard = sih.construct(task, kind="relative", target="bayes", form="standard")
    single = sih.construct(
        task, kind="relative", target="bayes", form="standard", dtype=torch.float32
    )
    for length, near in ((300, 1e-8), (1024, 2e-8)):
        tokens, rule = mixed(task, length), lambda row: posterior(row, task)
        assert worst(blocks, task, tokens, rule) < near
        assert worst(standard, task, tokens, rule) < 1e-8
        assert worst(single, task, tokens, rule) < (1e-3 if length == 300 else 3e-3)


@pytest.mark.parametrize("symmetric", [False, True])
def test_bayes_as_a_standard_transformer(symmetric: bool) -> None:
    task = task_of((1, 2, 3), even=False)
    words: dict[str, Any] = {"target": "bayes", "form": "standard", "symmetric": symmetric}
    model = sih.construct(task, kind="relative", **words)
    assert isinstance(model, sih.RelativeTransformer)
    assert model.config.heads == (1 + symmetric, 1, 1)
    off = worst(model, task, mixed(task, 256), lambda row: posterior(row, task))
    assert off < (1e-8 if symmetric else 1e-4)


def test_sizes_are_those_of_section_10() -> None:
    """Five states and three lags: the widths that the proofs name, whatever the length."""
    short, long = (task_of((1, 2, 3), length) for length in (5, 900))
    kinds: tuple[dict[str, Any], ...] = ({}, {"target": "bayes"}, {"form": "standard"})
    for words in kinds:
        one, other = (sih.construct(task, kind="relative", **words) for task in (short, long))
        assert one.circuit == other.circuit
        for x, y in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(x, y)
    model = sih.construct(short, kind="relative")
    assert sum(weight.numel() for weight in model.parameters()) == 2_571
    standard = sih.construct(short, kind="relative", form="standard")
    assert (standard.config.dim, standard.config.qk_dim, standard.config.reach) == (19, 6, 4)


def test_it_agrees_with_the_absolute_circuit_and_with_the_predictors() -> None:
    """Where both must: one lag apart the absolute heads take equal shares, and every position is a multiple of K."""
    task = task_of((1, 2, 3), 42, even=False)
    tokens = sih.sample(task, 4, rng=0).tokens
    paper, bayes = (sih.construct(task, kind="relative", target=t) for t in ("paper", "bayes"))
    weights = sih.selective_weights(tokens, task, beta=100.0)
    law = sih.mixture(weights, tokens, task)
    assert (paper.predict(tokens) - law).abs().max() < 1e-12
    assert (bayes.predict(tokens) - sih.bma(tokens, task)).abs().max() < 1e-8
    absolute = sih.construct(task, target="bayes")
    gap = (bayes.predict(tokens) - absolute.predict(tokens))[:, task.max_lag - 1 :]
    assert gap.abs().max() < 1e-7
    assert (sih.circuit_weights(tokens, task, paper.circuit) - weights)[:, 2:].abs().max() < 1e-12
    summed = sih.construct(task, heads=3, beta=100.0 / 3).predict(tokens)
    i = 41  # with 39 transitions, 13 for each head
    assert (paper.predict(tokens) - summed)[:, i].abs().max() < 1e-12


def test_logits_are_laws_too() -> None:
    task = task_of((1, 3))
    model = sih.construct(task, kind="relative", readout="logit", beta=math.inf)
    tokens = sih.sample(task, 8, rng=0).tokens
    law = model.predict(tokens)
    assert (law[:, 0] - task.stationary).abs().max() < 1e-12
    known = [task.P[tokens[:, 19 - k + 1]] for k in task.lags]
    near = torch.stack([(law[:, -1] - row).abs().amax(dim=-1) for row in known]).amin(dim=0)
    assert near.max() < 1e-3
    assert sih.verify(model, task).ok


@pytest.mark.parametrize("form", ["disentangled", "standard"])
@pytest.mark.parametrize("target", ["paper", "bayes"])
def test_verified_at_any_length(target: str, form: Any) -> None:
    task = task_of((1, 2, 3), even=False)
    for dtype in (torch.float64, torch.float32):
        model = sih.construct(task, kind="relative", target=target, form=form, dtype=dtype)
        for length in (4, 20, 150):
            found = sih.verify(model, task.with_length(length), size=4)
            assert found.ok
            assert found.comparisons[-1].site == "output"
            assert found.comparisons[-1].first == 0
            if target == "bayes":
                assert found.bound is not None
                assert found.posterior_error is not None
                assert found.posterior_error < found.bound < (1e-5 if dtype == torch.float64 else 1)


@pytest.mark.parametrize("target", ["paper", "bayes"])
@pytest.mark.parametrize("length", [20, 100])
def test_a_changed_weight_is_found(target: str, length: int) -> None:
    """Each block in turn is emptied, and a single number of the first and of the readout moved."""
    task = task_of((1, 2, 3), even=False)
    built = sih.construct(task, kind="relative", target=target)
    known = {
        (head, *pair): block.abs().sum().item()
        for head in ("1.1", "2.1", "3.1")
        for pair in itertools.product(
            built.stream(int(head[0]) - 1).names, (*built.stream(int(head[0]) - 1).names, "offset")
        )
        if (block := built.block(head, *pair)).any() and "1.2" not in "".join(pair)
    }
    assert sorted(known) == sorted(BLOCKS)
    for head, query, key in BLOCKS:
        model = sih.construct(task, kind="relative", target=target)
        model.block(head, query, key).zero_()
        assert not sih.verify(model, task.with_length(length), size=1).ok, (head, query, key)
    model = sih.construct(task, kind="relative", target=target)
    model.block("1.1", "token", "token")[0, 1] *= 1.01
    assert not sih.verify(model, task.with_length(length), size=1).ok
    model = sih.construct(task, kind="relative", target=target)
    model.readout_block("3.1/token")[2, 5] += 1e-5
    assert not sih.verify(model, task.with_length(length), size=1).ok
    if target == "bayes":
        model = sih.construct(task, kind="relative", target=target)
        model.block("1.2", "token", "token").zero_()
        assert not sih.verify(model, task.with_length(length), size=1).ok


@pytest.mark.parametrize("form", ["disentangled", "standard"])
@pytest.mark.parametrize("target", ["paper", "bayes"])
def test_saved_with_its_notes_and_verified_by_them(target: str, form: Any, tmp_path: Path) -> None:
    task = task_of((1, 3), even=False)
    model = sih.construct(task, kind="relative", target=target, form=form)
    assert model.circuit.length is None
    assert "length" not in model.notes["circuit"]
    sih.save(model, tmp_path / "m")
    again = sih.load(tmp_path / "m")
    assert again.circuit == model.circuit == read_circuit(model.notes["circuit"], model.Shape.kind)
    assert isinstance(again.circuit, RelativeCircuit)
    assert sih.verify(again) == sih.verify(model, task)
    assert sih.verify(again, task.with_length(60)).ok
    notes = tmp_path / "m" / "notes.json"
    kept = json.loads(notes.read_text())
    notes.write_text(json.dumps({**kept, "circuit": {**kept["circuit"], "length": 300}}))
    with pytest.raises(ValueError, match="no entry 'length'; got 300") as refusal:
        sih.load(tmp_path / "m")
    assert "\n" not in str(refusal.value)
    other = {"disentangled": "standard", "standard": "disentangled"}[form]
    notes.write_text(json.dumps({**kept, "circuit": {**kept["circuit"], "form": other}}))
    with pytest.raises(ValueError, match="model and circuit do not fit: the model is of the kind"):
        sih.verify(sih.load(tmp_path / "m"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"heads": 2},
            "the circuit 'paper' has no option 'heads'; its options are form, lam, beta",
        ),
        ({"third": "mask"}, "has no option 'third'"),
        ({"target": "bayes", "reading": "both"}, "the circuit 'bayes' has no option 'reading'"),
        ({"target": "looking"}, "target is 'paper' or 'bayes'; got 'looking'"),
        ({"lam": 3.0}, "lam=3 is too small: in the worst case more than 1e-06 .* use lam >= "),
        ({"kind": "disentangled", "form": "standard"}, "'paper' has no option 'form'; its options"),
        ({"kind": "rotary"}, "kind must be one of disentangled, standard, relative; got 'rotary'"),
    ],
    ids=str,
)
def test_bad_options_are_one_line(words: dict[str, Any], said: str) -> None:
    with pytest.raises(FieldError, match=said) as refusal:
        sih.construct(task_of((1, 3)), **{"kind": "relative", **words})
    assert "\n" not in str(refusal.value)


def test_other_tasks_are_one_line() -> None:
    model = sih.construct(task_of((1, 3)), kind="relative")
    with pytest.raises(
        ValueError, match=r"the circuit is for lags \(1, 3\), at any length, and the"
    ):
        sih.verify(model, task_of((1, 2)))
    with pytest.raises(
        ValueError, match="the weights were written for another matrix P"
    ) as refusal:
        sih.verify(model, task_of((1, 3), seed=4))
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match="the weights were written for another prior of lags"):
        sih.verify(model, task_of((1, 3), even=False))
    model.notes = sih.construct(task_of((2, 3)), kind="relative").notes
    with pytest.raises(ValueError, match="the weights were written for other lags than the task's"):
        sih.verify(model, task_of((1, 3)))
    parents = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], [[-1, 0, 1], [-1, 0, 0]], length=2)
    fresh = sih.FreshTask(2, (1, 2), 20)
    for task in (parents, fresh, sih.SwitchingTask(task_of((1, 2)).P, (1, 2), 20, 0.1)):
        with pytest.raises(FieldError, match=r"is for lags|a task with lags"):
            # the types are checked before
            inspect.unwrap(sih.construct)(task, kind="relative")


@pytest.mark.parametrize("form", ["disentangled", "standard"])
@pytest.mark.parametrize("target", ["paper", "bayes"])
def test_weights_of_other_lags_are_one_line(target: str, form: Any) -> None:
    """All sets of one reach have weights of one shape, or nearly: each is told from every other."""
    sets = [lags for lags in SETS if lags[-1] == 3]
    built = {
        lags: sih.construct(task_of(lags), kind="relative", target=target, form=form)
        for lags in sets
    }
    known = {lags: (model.circuit, model.notes) for lags, model in built.items()}
    for lags, model in built.items():
        assert model.circuit.lags_of(model) == lags
        for other in sets:
            if other == lags:
                continue
            model.circuit, model.notes = known[other]
            with pytest.raises(ValueError, match="the weights are those of other lags") as refusal:
                sih.verify(model)
            assert f"{lags}; circuit and task have {other}" in str(refusal.value)
            assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("form", ["disentangled", "standard"])
def test_a_single_weight_does_not_make_other_lags(form: Any) -> None:
    """Whatever number in the weights is changed, and to what: it is a check that fails, not another circuit."""
    model = sih.construct(task_of((1, 3), states=2), kind="relative", form=form)
    for weight in model.parameters():
        flat = weight.detach().view(-1)
        for index, value in enumerate(flat.tolist()):
            for wrong in (0.0, 1.0, 100.0, -200.0, -800.0):
                flat[index] = wrong
                assert model.circuit.lags_of(model) in (None, (1, 3))
            flat[index] = value
    assert model.circuit.lags_of(model) == (1, 3)


def test_other_lags_in_the_notes_are_bad_input_and_damage_a_failed_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = sih.construct(task_of((1, 3)), kind="relative")
    sih.save(model, tmp_path / "m")
    path = tmp_path / "m" / "notes.json"
    notes = json.loads(path.read_text())
    assert main(["verify", str(tmp_path / "m")]) == 0
    for entry in ("circuit", "task"):
        notes[entry]["lags"] = [2, 3]
    path.write_text(json.dumps(notes))
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err.strip()
    assert "the weights are those of other lags, (1, 3); circuit and task have (2, 3)" in said
    assert "\n" not in said
    damaged = sih.construct(task_of((1, 3)), kind="relative")
    assert isinstance(damaged, sih.DisentangledRelativeTransformer)
    damaged.block("1.1", "token", "offset")[0, 2] = 0.0  # as if offset 2 were a lag for state 0
    sih.save(damaged, tmp_path / "d")
    assert main(["verify", str(tmp_path / "d")]) == 1


def test_the_factor_of_lemma_10_2() -> None:
    """A common factor on the evidence moves a weight by at most kappa times its logarithm, and nearly by that."""
    rng = torch.Generator().manual_seed(0)
    for prior in ([0.5, 0.5], [0.2, 0.3, 0.5]):
        pi, bound = torch.tensor(prior).double(), kappa(min(prior))
        E = torch.randn(20_000, len(prior), generator=rng).double() * 4
        E[::2] = -E[::2, :1] * (torch.arange(len(prior)) > 0)
        found = [torch.softmax(pi.log() + phi * E, dim=-1) for phi in (1.0, 1.02)]
        moved = (found[1] - found[0]).abs().max().item() / math.log(1.02)
        assert moved <= bound
        assert moved > (0.9 * bound if prior[0] == 0.5 else 0.3 * bound)
    assert kappa(1.0) == 0.0


def test_the_exponent_is_gentler_than_the_bound_asks() -> None:
    """It is a fixed multiple of the certified best, and the certificate is that of the exponent there is."""
    task = task_of((1, 2, 3))
    built = sih.construct(task, kind="relative", target="bayes")
    best = built.circuit.temper / GENTLER[torch.float64]
    gentle = sih.construct(task, kind="relative", target="bayes", temper=best)
    found, certified = (sih.verify(model, task) for model in (built, gentle))
    assert certified.bound is not None
    assert found.bound is not None
    assert certified.bound < found.bound
    assert found.posterior_error is not None
    assert found.posterior_error <= found.bound


def test_it_is_told_in_words() -> None:
    task = task_of((1, 2, 3))
    paper = sih.construct(task, kind="relative").circuit
    assert "one head in every layer, offsets up to 4, any length" in "\n".join(paper.describe())
    bayes = sih.construct(task, kind="relative", target="bayes", form="standard").circuit
    assert "a standard transformer: two heads in layer 1" in "\n".join(bayes.describe())
    assert "length" not in repr(paper)
    with pytest.raises(ValueError, match="do not share out the past"):
        paper.plot()
