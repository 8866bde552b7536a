from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles_tables as oracle
from support.small_configs import small
from torch import Tensor

import sih
from sih.models.loss import next_token_loss
from sih.training.config import TrainConfig
from sih.training.optimiser import Adam
from sih.training.presets import preset
from sih.training.recipes.tied_tables import (
    TiedParametrisation,
    TiedTables,
    diagonal_sums,
    toeplitz,
)
from sih.training.trainer import Trainer, train


def tied_model(
    states: int = 3,
    length: int = 6,
    heads: tuple[int, ...] = (1, 2, 1),
    period: int = 4,
    seed: int = 0,
) -> TiedParametrisation:
    model = sih.DisentangledTransformer(states, length, heads, dtype=torch.float64, init="zeros")
    start = TiedParametrisation(model, period)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for table in start.parameters.values():
            table.copy_(torch.randn(table.shape, generator=rng, dtype=torch.float64))
    start.update_weights()
    return start


def test_nothing_is_frozen_unless_it_is_asked_for() -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=0), (1, 2), 6)
    shape = preset("auto", model="disentangled", heads=(1, 2, 1)).model
    for asked, steps in ((0, 0), (3, 3)):
        recipe = TiedTables(frozen_steps=asked)
        rng, device = torch.Generator().manual_seed(0), torch.device("cpu")
        assert recipe.start(shape, task, rng, device).frozen_steps == steps


def tokens_of(start: TiedParametrisation, batch: int = 4, seed: int = 0) -> torch.Tensor:
    config = start.model.config
    shape = (batch, config.length)
    return torch.randint(config.num_states, shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 7),
    st.sampled_from([(1,), (2, 1), (1, 2, 1)]),
    st.integers(1, 5),
)
def test_weights_are_the_tables_looked_up(
    states: int, length: int, heads: tuple[int, ...], period: int
) -> None:
    start = tied_model(states, length, heads, period)
    tables = {name: table.detach() for name, table in start.parameters.items()}
    for layer, count in enumerate(heads, 1):
        paths = len(start.model.stream(layer - 1).routes)
        places = [(p, "token", s) for p in range(paths) for s in range(states)]
        places += [(p, "position", i) for p in range(paths) for i in range(length)]
        places.sort(
            key=lambda place: (place[0], place[1] == "position", place[2])
        )  # the stream's order
        A = start.model.A[layer - 1].detach()
        rng = torch.Generator().manual_seed(layer)
        for _ in range(60):
            r, c = torch.randint(len(places), (2,), generator=rng).tolist()
            head = int(torch.randint(count, (), generator=rng))
            expected = oracle.weight(tables, layer, head, places[r], places[c], period)
            assert A[head, r, c].item() == pytest.approx(expected, abs=1e-12)
    stream = start.model.stream(len(heads))
    for p, path in enumerate(stream.routes):
        token, position = (start.model.readout_block(path + kind) for kind in ("token", "position"))
        assert torch.equal(token, tables["readout/token"][:, p])
        for s, i in itertools.product(range(states), range(length)):
            expected = oracle.at_position(tables["readout/position"][s, p].tolist(), i, period)
            assert position[s, i].item() == pytest.approx(expected, abs=1e-12)


def test_the_gradient_is_that_of_the_loss_in_the_tables() -> None:
    start = tied_model()
    tokens = tokens_of(start)
    next_token_loss(start.model, tokens).backward()
    start.table_gradients()
    rng = torch.Generator().manual_seed(1)
    step = 1e-6
    for name, table in start.parameters.items():
        assert table.grad is not None
        way = torch.randn(table.shape, generator=rng, dtype=torch.float64)
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                table.add_(sign * step * way)
                start.update_weights()
                values.append(next_token_loss(start.model, tokens).item())
                table.sub_(sign * step * way)
        slope = (values[0] - values[1]) / (2 * step)
        assert (table.grad * way).sum().item() == pytest.approx(slope, abs=1e-7, rel=1e-5), name


def test_collecting_is_the_transpose_of_writing() -> None:
    start = tied_model()
    weights = list(start.model.parameters())
    rng = torch.Generator().manual_seed(2)
    for weight in weights:
        weight.grad = torch.randn(weight.shape, generator=rng, dtype=torch.float64)
    start.table_gradients()
    there = sum(
        (weight.detach() * weight.grad).sum() for weight in weights if weight.grad is not None
    )
    back = sum(
        (table.detach() * table.grad).sum()
        for table in start.parameters.values()
        if table.grad is not None
    )
    assert torch.isclose(torch.as_tensor(there), torch.as_tensor(back), rtol=1e-10)


def test_toeplitz_and_its_transpose() -> None:
    values = torch.tensor([[-2.0, -1.0, 0.0, 1.0, 2.0]])  # at distances -2 .. 2
    assert torch.equal(
        toeplitz(values)[0], torch.tensor([[0.0, -1.0, -2.0], [1.0, 0.0, -1.0], [2.0, 1.0, 0.0]])
    )
    matrix = torch.arange(9.0).view(1, 3, 3)
    assert diagonal_sums(matrix).tolist() == [[2.0, 1 + 5, 0 + 4 + 8, 3 + 7, 6.0]]


def test_what_a_model_starts_with() -> None:
    start = tied_model(heads=(1, 2, 1))
    start.draw(torch.Generator().manual_seed(0))
    model = start.model
    assert model.block("1.1", "token", "token").abs().min() > 0
    for query, key in (("token", "position"), ("position", "token"), ("position", "position")):
        assert not model.block("1.1", query, key).any()
    last = model.stream(2).names
    for query, key in itertools.product(last, last):
        silent = any("1.1/" in name and name.endswith("token") for name in (query, key))
        assert bool(model.block("3.1", query, key).any()) != silent, (query, key)
    for name in model.stream(3).names:
        read = name.startswith("3.1/") and not ("1.1/" in name and name.endswith("token"))
        assert bool(model.readout_block(name).any()) == read, name
    assert all(
        model.block(f"2.{h}", q, k).any()
        for h in (1, 2)
        for q in model.stream(1).names
        for k in ("token",)
    )


def test_while_frozen_only_what_a_model_starts_with_moves() -> None:
    start = tied_model()
    start.draw(torch.Generator().manual_seed(0))
    next_token_loss(start.model, tokens_of(start)).backward()
    start.table_gradients()
    start.freeze_gradients()
    for name, table in start.parameters.items():
        assert table.grad is not None
        if name.startswith("2/"):
            assert not table.grad.any()
        else:
            assert not table.grad[table == 0].any()
    for name in ("1/token/token", "3/position/position", "readout/token"):
        grad = start.parameters[name].grad
        assert grad is not None
        assert grad.any()


def test_distances_past_the_largest_period_are_told_apart_by_residues_alone() -> None:
    start = tied_model(length=20, heads=(1,), period=3)
    block = start.model.block("1.1", "position", "position")
    assert torch.isclose(block[19, 3], block[19, 9])  # distances 16 and 10, 6 apart
    assert not torch.isclose(block[19, 17], block[19, 11])  # distances 2 and 8: one is near


def test_a_period_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="max_period"):
        TiedTables(max_period=0)


def adam_on_tables(config: TrainConfig) -> dict[str, Tensor]:
    """Adam where autograd goes all the way to the tables: A as a sum over indicators, one table entry at a time."""
    rng = torch.Generator().manual_seed(config.seed)
    task, recipe, adam = config.task.build(), config.recipe, config.optimiser
    assert isinstance(recipe, TiedTables)
    assert isinstance(adam, Adam)
    start = recipe.start(config.model, task, rng, torch.device("cpu"))
    model = start.model
    tables = {
        name: table.detach().clone().requires_grad_() for name, table in start.parameters.items()
    }
    effects: dict[
        str, dict[str, Tensor]
    ] = {}  # what one unit of each entry does to the model's weights
    for name, own in start.parameters.items():
        columns = []
        for entry in itertools.product(*map(range, own.shape)):
            for other in start.parameters.values():
                other.data.zero_()
            own.data[entry] = 1
            start.update_weights()
            columns.append(
                {key: weight.detach().clone() for key, weight in model.named_parameters()}
            )
        effects[name] = {
            key: torch.stack([column[key] for column in columns], dim=-1) for key in columns[0]
        }
    moments = {
        name: (torch.zeros_like(table), torch.zeros_like(table)) for name, table in tables.items()
    }
    weights: dict[str, Tensor] = {}
    for step in range(1, adam.steps + 2):
        weights = {key: torch.zeros(weight.shape) for key, weight in model.named_parameters()}
        for name, table in tables.items():
            weights = {
                key: weight + effects[name][key] @ table.flatten()
                for key, weight in weights.items()
            }
        if step > adam.steps:
            break
        tokens = sih.sample(task, adam.batch, rng=rng).tokens
        output = torch.func.functional_call(model, weights, (tokens,))
        loss = torch.nn.functional.cross_entropy(
            output[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        )
        grads = torch.autograd.grad(loss, list(tables.values()))
        b1, b2 = adam.betas
        with torch.no_grad():
            for (name, table), grad in zip(tables.items(), grads, strict=True):
                grad = (
                    grad * start.moves_at_first(name)
                    if step <= (recipe.frozen_steps or 0)
                    else grad
                )
                m, v = moments[name]
                m.mul_(b1).add_((1 - b1) * grad)
                v.mul_(b2).add_((1 - b2) * grad**2)
                table.sub_(
                    adam.learning_rate * (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + 1e-8)
                )
    return {key: weight.detach() for key, weight in weights.items()}


def test_a_disentangled_models_tables_are_moved_by_adam() -> None:
    config = TrainConfig(
        model="disentangled", lags=(1, 2), states=2, length=5, heads=(1, 1), init="harmonic", max_period=2, steps=5,
        batch=16, learning_rate=0.02, frozen_steps=2, held_out=4,
    )  # fmt: skip
    *_, last = train(config)
    tokens = config.held_out_batch(config.task.build()).tokens
    expected = torch.func.functional_call(last.model, adam_on_tables(config), (tokens,)).softmax(-1)
    # By their laws: a constant added to all scores of a row changes none, and Adam turns its rounding into steps.
    assert (last.model.predict(tokens) - expected).abs().max() < 2e-4
    assert (Trainer(config).model.predict(tokens) - expected).abs().max() > 0.02


def test_a_disentangled_model_keeps_to_its_parts_while_frozen_and_to_its_tables_for_ever() -> None:
    config = small(
        model="disentangled",
        init="harmonic",
        max_period=3,
        heads=(1, 2, 1),
        frozen_steps=2,
        length_schedule=((3, 6),),
    )
    trainer = Trainer(config)
    begin = trainer.state()
    for _ in range(2):
        trainer.advance()
    frozen = trainer.state()
    assert torch.equal(frozen["model/A.1"], begin["model/A.1"])
    assert not frozen["table/1/position/position"].any()
    assert not torch.equal(frozen["table/1/token/token"], begin["table/1/token/token"])
    trainer.advance()
    trainer.advance()
    free = trainer.state()
    assert not torch.equal(free["model/A.1"], begin["model/A.1"])
    assert free["table/1/position/position"].any()
    assert isinstance(trainer.model, sih.DisentangledTransformer)
    block = trainer.model.block("1.1", "position", "position")
    assert torch.equal(block[1:, 1:], block[:-1, :-1])


@pytest.mark.parametrize(
    ("name", "word"), [("disentangled-1.2.3", "harmonic"), ("disentangled-1.3.4", "auto")]
)
def test_shipped_models_were_trained_by_its_lengths_and_frozen_steps(name: str, word: str) -> None:
    config = sih.open_run(name).config
    ours = preset(word, model="disentangled", lags=config.task.lags, steps=config.optimiser.steps)
    assert ours.recipe == config.recipe
