"""The training loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from support.shapes import disentangled_models, standard_models
from torch import Tensor, nn

import sih
from sih.models.loss import usual_rows


def by_definition(model: nn.Module, tokens: Tensor) -> Tensor:
    output = model(tokens)
    terms = [
        -torch.log_softmax(output[row, i], dim=-1)[tokens[row, i + 1]]
        for row in range(tokens.shape[0])
        for i in range(tokens.shape[1] - 1)
    ]
    return torch.stack(terms).mean()


@given(one=disentangled_models(), other=standard_models())
def test_value_and_gradient_are_those_of_the_mean(
    one: tuple[sih.DisentangledTransformer, Tensor], other: tuple[sih.Transformer, Tensor]
) -> None:
    for model, tokens in (one, other):
        if tokens.shape[1] < 2:
            continue
        expected, found = by_definition(model, tokens), sih.next_token_loss(model, tokens, rows=2)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
        weights = list(model.parameters())
        for one_grad, other_grad in zip(
            torch.autograd.grad(3 * found, weights), torch.autograd.grad(3 * expected, weights), strict=True
        ):
            torch.testing.assert_close(one_grad, other_grad, rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            torch.testing.assert_close(sih.next_token_loss(model, tokens, rows=2), expected, rtol=1e-9, atol=1e-9)


def test_frozen_weights_get_no_gradient(rng: torch.Generator) -> None:
    model = sih.Transformer(3, 6, 4, 3, (1, 1), rng=rng)
    model.position.requires_grad_(False)
    sih.next_token_loss(model, torch.randint(3, (5, 6), generator=rng)).backward()
    assert model.position.grad is None
    assert model.token.grad is not None


def test_a_law_is_scored_as_a_law() -> None:
    model = sih.DisentangledTransformer(4, 6, heads=(1,), readout="probability", init="zeros")
    model.readout_block("1.1/token").fill_(0.25)
    loss = sih.next_token_loss(model, torch.tensor([[0, 1, 2, 3, 0, 1]]))
    torch.testing.assert_close(loss, torch.tensor(4.0).log())


def test_one_token_has_no_next() -> None:
    with pytest.raises(ValueError, match=r"two tokens or more; got shape \(2, 1\)"):
        sih.next_token_loss(sih.Transformer(3, 6), torch.zeros(2, 1, dtype=torch.int64))


def test_short_sequences_go_more_at_a_time_and_each_thread_has_its_part() -> None:
    seen = []
    model = sih.Transformer(3, 128, dim=4, qk_dim=2, heads=(1,))
    model.register_forward_pre_hook(lambda _, args: seen.append(tuple(args[0].shape)))
    for batch, time, parts in ((256, 32, [128] * 2), (256, 128, [32] * 8), (100, 64, [64, 36]), (40, 16, [40])):
        seen.clear()
        sih.next_token_loss(model, torch.zeros(batch, time, dtype=torch.int64)).backward()
        assert seen == [(rows, time) for rows in parts]
    short = torch.zeros(256, 16, dtype=torch.int64)
    assert [usual_rows(short, threads) for threads in (1, 2, 4, 8, 64)] == [256, 128, 64, 32, 32]


def test_threads_side_by_side_give_the_same_sums() -> None:
    """Parts on several threads, added in order: the same bits every time, and those of one thread."""
    model = sih.Transformer(4, 12, dim=8, qk_dim=4, heads=(1, 2), dtype=torch.float64)
    tokens = torch.randint(4, (24, 12), generator=torch.Generator().manual_seed(0))

    def gradients(threads: int) -> list[torch.Tensor]:
        torch.set_num_threads(threads)
        model.zero_grad()
        sih.next_token_loss(model, tokens, rows=4).backward()
        assert torch.get_num_threads() == threads
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    try:
        one, several, again = gradients(1), gradients(3), gradients(3)
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(several, again, strict=True))
    assert all((a - b).abs().max() < 1e-14 for a, b in zip(one, several, strict=True))


def test_an_error_in_a_thread_is_an_error() -> None:
    model = sih.Transformer(4, 12, dim=8, qk_dim=4, heads=(1,))
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="states"):
            sih.next_token_loss(model, torch.full((8, 12), 9), rows=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
