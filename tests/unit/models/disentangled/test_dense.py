"""The disentangled transformer: the oracle, causality, initial weights, the paper's worked example."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from support import oracles_models as oracles
from support.shapes import disentangled_models
from torch import Tensor

import sih
from sih.models.disentangled import structured

Case = tuple[sih.DisentangledTransformer, Tensor]


@pytest.fixture(autouse=True)
def small_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 rows, so that small models have several, and a ragged last one."""
    monkeypatch.setattr(structured, "BLOCK_ROWS", 3)


@settings(max_examples=15)
@given(case=disentangled_models(max_length=6))
def test_dense_path_is_the_papers_equations(case: Case) -> None:
    model, tokens = case
    trace = model.trace(tokens, path="dense")
    A = [layer.detach().tolist() for layer in model.A]
    depth = len(A)
    for row in range(len(tokens)):
        output, attention, stream = oracles.disentangled(
            tokens[row].tolist(),
            model.config.num_states,
            model.config.length,
            A,
            model.readout.tolist(),
            model.config.temperature,
        )
        torch.testing.assert_close(
            trace.output[row], torch.tensor(output, dtype=torch.float64), rtol=0, atol=1e-12
        )
        torch.testing.assert_close(
            trace.stream(f"{depth}/stream")[row],
            torch.tensor(stream, dtype=torch.float64),
            rtol=0,
            atol=1e-12,
        )
        for layer in range(depth):
            expected = torch.tensor(attention[layer], dtype=torch.float64)
            torch.testing.assert_close(trace.attention[layer][row], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("path", ["dense", "structured"])
def test_gradients_against_finite_differences(path: str, rng: torch.Generator) -> None:
    model = sih.DisentangledTransformer(
        2, 4, heads=(1, 2), temperature=0.5, dtype=torch.float64, rng=rng
    )
    tokens = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 1]])

    def output(*weights: Tensor) -> Tensor:
        named = dict(zip((name for name, _ in model.named_parameters()), weights, strict=True))
        result: Tensor = torch.func.functional_call(model, named, (tokens,), {"path": path})
        return result

    assert torch.autograd.gradcheck(output, tuple(model.parameters()), atol=1e-7)


@given(case=disentangled_models(max_length=9), data=st.data())
def test_no_position_sees_a_later_token(case: Case, data: st.DataObject) -> None:
    model, tokens = case
    cut = data.draw(st.integers(1, tokens.shape[1]))
    changed = tokens.clone()
    changed[:, cut:] = (changed[:, cut:] + 1) % model.config.num_states
    model.requires_grad_(False)
    for path in model.paths:
        full = model(tokens, path=path)
        torch.testing.assert_close(
            model(changed, path=path)[:, :cut], full[:, :cut], rtol=0, atol=1e-12
        )
        torch.testing.assert_close(
            model(tokens[:, :cut], path=path), full[:, :cut], rtol=0, atol=1e-12
        )


def test_the_papers_worked_example(rng: torch.Generator) -> None:
    """T = 10, lags {1, 2, 3}: A^(1), the attention of layer 1 and where the stream then holds it (Sec. 5.1)."""
    P = sih.random_transition_matrix(4, rng=rng)
    lam = 500.0
    # "+" is +lambda, "." is -lambda, copied from the printed matrix
    printed = """
        . . . . . . . . . .
        + . . . . . . . . .
        + + . . . . . . . .
        + + + . . . . . . .
        . + + + . . . . . .
        . . + + + . . . . .
        . . . + + + . . . .
        . . . . + + + . . .
        . . . . . + + + . .
        . . . . . . + + + ."""
    signs = torch.tensor(
        [[1.0 if x == "+" else -1.0 for x in row.split()] for row in printed.strip().splitlines()]
    )
    model = sih.DisentangledTransformer(
        4, 10, heads=(1, 3, 1), temperature=1.0, init="zeros", dtype=torch.float64
    )
    model.block("1.1", "token", "token").copy_(P.log().T)
    model.block("1.1", "position", "position").copy_(lam * signs)
    assert torch.equal(model.A[0][0, 4:, 4:], lam * signs.double())
    assert model.A[0][0, :4, 4:].abs().max() == 0

    tokens = torch.randint(4, (3, 10), generator=rng)
    model.requires_grad_(False)
    for path in model.paths:
        trace = model.trace(tokens, path=path)
        for row, s in enumerate(tokens.tolist()):
            expected = torch.zeros(10, 10, dtype=torch.float64)
            expected[0, 0] = 1
            for i in range(1, 10):
                weights = {k: P[s[i - k], s[i]].item() for k in (1, 2, 3) if k <= i}
                for k, p in weights.items():
                    expected[i, i - k] = p / sum(weights.values())
            torch.testing.assert_close(trace.attention[0][row, 0], expected, rtol=0, atol=1e-12)
            # "directly copy the normalized transition probabilities" into element S + (i - k)
            torch.testing.assert_close(
                trace.stream("1.1/position")[row], expected, rtol=0, atol=1e-12
            )
            mixed = torch.zeros(10, 4, dtype=torch.float64)
            for i in range(10):
                for j in range(10):
                    mixed[i, s[j]] += expected[i, j]
            torch.testing.assert_close(trace.stream("1.1/token")[row], mixed, rtol=0, atol=1e-12)


def test_weights_by_name_land_where_the_stream_says() -> None:
    model = sih.DisentangledTransformer(3, 4, heads=(1, 2), init="zeros")
    model.block("2.2", "1.1/position", "token")[1, 2] = 7.0
    model.readout_block("2.2/1.1/token")[0, 1] = 5.0
    assert model.A[1].nonzero().tolist() == [[1, 7 + 3 + 1, 2]]
    assert model.readout.nonzero().tolist() == [[0, 2 * 14 + 7 + 1]]
    with pytest.raises(ValueError, match=r"no block '2\.1/token'"):
        model.block("2.1", "2.1/token", "token")


def test_the_same_generator_state_gives_the_same_weights() -> None:
    one, other = (
        sih.DisentangledTransformer(3, 5, heads=(1, 2), rng=torch.Generator().manual_seed(4))
        for _ in range(2)
    )
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.A[0], sih.DisentangledTransformer(3, 5, heads=(1, 2)).A[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": ()}, r"heads must be the number of heads of each layer.*got \(\)"),
        ({"heads": (1, 0)}, r"heads\.1 must be a whole number, at least 1; got 0"),
        ({"length": 0}, "length must be a whole number, at least 1; got 0"),
        ({"temperature": 0.0}, "temperature must be a number greater than 0, and finite; got 0.0"),
        ({"readout": "softmax"}, "readout must be one of logit, probability; got 'softmax'"),
        ({"dtype": torch.float16}, "dtype must be torch.float32 or torch.float64"),
        ({"init": "ones"}, "init must be one of uniform, zeros; got 'ones'"),
    ],
)
def test_bad_sizes_are_one_clear_error(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sih.DisentangledTransformer(**{"num_states": 3, "length": 4, "heads": (1,), **change})  # type: ignore[arg-type]
