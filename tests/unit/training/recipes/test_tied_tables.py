from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles_shared as oracle

import sih
from sih.models.loss import next_token_loss
from sih.training.recipes.tied_tables import SharedWeights, diagonal_sums, toeplitz


def shared_weights(
    states: int = 3, length: int = 6, heads: tuple[int, ...] = (1, 2, 1), period: int = 4, seed: int = 0
) -> SharedWeights:
    model = sih.DisentangledTransformer(states, length, heads, dtype=torch.float64, init="zeros")
    shared = SharedWeights(model, period)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for table in shared.tables.values():
            table.copy_(torch.randn(table.shape, generator=rng, dtype=torch.float64))
    shared.spread()
    return shared


def tokens_of(shared: SharedWeights, batch: int = 4, seed: int = 0) -> torch.Tensor:
    config = shared.model.config
    shape = (batch, config.length)
    return torch.randint(config.num_states, shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 3), st.integers(1, 7), st.sampled_from([(1,), (2, 1), (1, 2, 1)]), st.integers(1, 5))
def test_weights_are_the_tables_looked_up(states: int, length: int, heads: tuple[int, ...], period: int) -> None:
    shared = shared_weights(states, length, heads, period)
    tables = {name: table.detach() for name, table in shared.tables.items()}
    for layer, count in enumerate(heads, 1):
        paths = len(shared.model.stream(layer - 1).routes)
        places = [(p, "token", s) for p in range(paths) for s in range(states)]
        places += [(p, "position", i) for p in range(paths) for i in range(length)]
        places.sort(key=lambda place: (place[0], place[1] == "position", place[2]))  # the stream's order
        A = shared.model.A[layer - 1].detach()
        rng = torch.Generator().manual_seed(layer)
        for _ in range(60):
            r, c = torch.randint(len(places), (2,), generator=rng).tolist()
            head = int(torch.randint(count, (), generator=rng))
            expected = oracle.weight(tables, layer, head, places[r], places[c], period)
            assert A[head, r, c].item() == pytest.approx(expected, abs=1e-12)
    stream = shared.model.stream(len(heads))
    for p, path in enumerate(stream.routes):
        token, position = (shared.model.readout_block(path + kind) for kind in ("token", "position"))
        assert torch.equal(token, tables["readout/token"][:, p])
        for s, i in itertools.product(range(states), range(length)):
            expected = oracle.at_position(tables["readout/position"][s, p].tolist(), i, period)
            assert position[s, i].item() == pytest.approx(expected, abs=1e-12)


def test_the_gradient_is_that_of_the_loss_in_the_tables() -> None:
    shared = shared_weights()
    tokens = tokens_of(shared)
    next_token_loss(shared.model, tokens).backward()
    shared.gather()
    rng = torch.Generator().manual_seed(1)
    step = 1e-6
    for name, table in shared.tables.items():
        assert table.grad is not None
        way = torch.randn(table.shape, generator=rng, dtype=torch.float64)
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                table.add_(sign * step * way)
                shared.spread()
                values.append(next_token_loss(shared.model, tokens).item())
                table.sub_(sign * step * way)
        slope = (values[0] - values[1]) / (2 * step)
        assert (table.grad * way).sum().item() == pytest.approx(slope, abs=1e-7, rel=1e-5), name


def test_gather_is_the_transpose_of_spread() -> None:
    shared = shared_weights()
    weights = list(shared.model.parameters())
    rng = torch.Generator().manual_seed(2)
    for weight in weights:
        weight.grad = torch.randn(weight.shape, generator=rng, dtype=torch.float64)
    shared.gather()
    there = sum((weight.detach() * weight.grad).sum() for weight in weights if weight.grad is not None)
    back = sum((table.detach() * table.grad).sum() for table in shared.tables.values() if table.grad is not None)
    assert torch.isclose(torch.as_tensor(there), torch.as_tensor(back), rtol=1e-10)


def test_toeplitz_and_its_transpose() -> None:
    values = torch.tensor([[-2.0, -1.0, 0.0, 1.0, 2.0]])  # at distances -2 .. 2
    assert torch.equal(toeplitz(values)[0], torch.tensor([[0.0, -1.0, -2.0], [1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]))
    matrix = torch.arange(9.0).view(1, 3, 3)
    assert diagonal_sums(matrix).tolist() == [[2.0, 1 + 5, 0 + 4 + 8, 3 + 7, 6.0]]


def test_what_a_model_starts_with() -> None:
    shared = shared_weights(heads=(1, 2, 1))
    shared.draw(torch.Generator().manual_seed(0))
    model = shared.model
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
    assert all(model.block(f"2.{h}", q, k).any() for h in (1, 2) for q in model.stream(1).names for k in ("token",))


def test_while_held_only_what_a_model_starts_with_moves() -> None:
    shared = shared_weights()
    shared.draw(torch.Generator().manual_seed(0))
    next_token_loss(shared.model, tokens_of(shared)).backward()
    shared.gather()
    shared.hold()
    for name, table in shared.tables.items():
        assert table.grad is not None
        if name.startswith("2/"):
            assert not table.grad.any()
        else:
            assert not table.grad[table == 0].any()
    assert all(shared.tables[name].grad.any() for name in ("1/token/token", "3/position/position", "readout/token"))  # type: ignore[union-attr]


def test_distances_past_the_largest_period_are_told_apart_by_residues_alone() -> None:
    shared = shared_weights(length=20, heads=(1,), period=3)
    block = shared.model.block("1.1", "position", "position")
    assert torch.isclose(block[19, 3], block[19, 9])  # distances 16 and 10, 6 apart
    assert not torch.isclose(block[19, 17], block[19, 11])  # distances 2 and 8: one is near


def test_a_period_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="max_period"):
        shared_weights(period=0)
