"""The training loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from support.shapes import disentangled_models, standard_models
from torch import Tensor, nn

import sih
from sih.models.parts import default_rows


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
            torch.autograd.grad(3 * found, weights),
            torch.autograd.grad(3 * expected, weights),
            strict=True,
        ):
            torch.testing.assert_close(one_grad, other_grad, rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            torch.testing.assert_close(
                sih.next_token_loss(model, tokens, rows=2), expected, rtol=1e-9, atol=1e-9
            )


def soft_by_definition(model: nn.Module, tokens: Tensor, laws: Tensor) -> Tensor:
    output, total = model(tokens), torch.zeros(())
    for row in range(tokens.shape[0]):
        for i in range(tokens.shape[1] - 1):
            predicted = torch.softmax(output[row, i], dim=-1)
            for state, probability in enumerate(laws[row, i].tolist()):
                total = total - probability * predicted[state].log()
    return total / (tokens.shape[0] * (tokens.shape[1] - 1))


def some_laws(tokens: Tensor, states: int) -> Tensor:
    draws = torch.rand(
        *tokens.shape, states, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    draws[..., 0] *= draws[..., 0] > 0.5  # some are 0
    draws[..., 1] += 0.1
    return draws / draws.sum(dim=-1, keepdim=True)


@settings(max_examples=15)
@given(one=disentangled_models(), other=standard_models())
def test_with_distributions_it_is_the_mean_cross_entropy_with_them(
    one: tuple[sih.DisentangledTransformer, Tensor], other: tuple[sih.Transformer, Tensor]
) -> None:
    for model, tokens in (one, other):
        if tokens.shape[1] < 2:
            continue
        laws = some_laws(tokens, model.config.num_states)
        expected = soft_by_definition(model, tokens, laws)
        found = sih.next_token_loss(model, tokens, rows=2, laws=laws)
        torch.testing.assert_close(found, expected.to(found), rtol=1e-9, atol=1e-9)
        weights = list(model.parameters())
        pairs = zip(
            torch.autograd.grad(found, weights), torch.autograd.grad(expected, weights), strict=True
        )
        for found_grad, expected_grad in pairs:
            torch.testing.assert_close(found_grad, expected_grad, rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            value = sih.next_token_loss(model, tokens, rows=2, laws=laws)
            torch.testing.assert_close(value, expected.to(value), rtol=1e-9, atol=1e-9)


def test_distributions_that_are_sure_of_the_next_token_are_the_token() -> None:
    model = sih.Transformer(4, 12, dim=8, qk_dim=4, heads=(1, 2), dtype=torch.float64)
    tokens = torch.randint(4, (9, 12), generator=torch.Generator().manual_seed(0))
    sure = nn.functional.one_hot(torch.cat([tokens[:, 1:], tokens[:, :1]], dim=1), 4).double()
    torch.testing.assert_close(
        sih.next_token_loss(model, tokens, laws=sure), sih.next_token_loss(model, tokens)
    )


def test_no_gradient_passes_to_distributions() -> None:
    model, tokens = sih.Transformer(3, 6, 4, 3, (1, 1)), torch.zeros(5, 6, dtype=torch.int64)
    laws = torch.full((5, 6, 3), 1 / 3, requires_grad=True)
    sih.next_token_loss(model, tokens, laws=laws).backward()
    assert laws.grad is None


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        (
            torch.full((2, 6, 2), 0.5),
            r"laws must be a tensor of floats of shape \(2, 6, 3\), e.g. sih.truth",
        ),
        (torch.zeros(2, 6, 3, dtype=torch.int64), "of floats"),
        (torch.full((2, 6, 3), 0.5), "probabilities that sum to 1.* sums off by 0.5$"),
        (torch.tensor([1.5, -0.5, 0.0]).expand(2, 6, 3), "probabilities .* from -0.5 on"),
        (torch.full((2, 6, 3), torch.nan), "probabilities"),
    ],
)
def test_other_distributions_are_refused(laws: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sih.next_token_loss(sih.Transformer(3, 6), torch.zeros(2, 6, dtype=torch.int64), laws=laws)


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


def test_a_law_is_scored_as_a_law_by_a_distribution_too() -> None:
    """A state that both rule out counts 0, and passes no gradient that is not a number."""
    model = sih.DisentangledTransformer(3, 4, heads=(1,), readout="probability", init="zeros")
    model.readout_block("1.1/token")[:2] = torch.tensor([[0.25, 0.25, 0.25], [0.75, 0.75, 0.75]])
    laws = torch.tensor([0.5, 0.5, 0.0]).expand(1, 4, 3)
    loss = sih.next_token_loss(model, torch.tensor([[0, 1, 0, 1]]), laws=laws)
    torch.testing.assert_close(loss, -0.5 * torch.tensor(0.25 * 0.75).log())
    loss.backward()
    assert all(
        weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters()
    )
    by_hand = -(0.5 / 0.25) * torch.tensor(
        1.0
    )  # of the mean over three positions, all of which attend to the past
    grad = model.readout.grad
    assert grad is not None
    torch.testing.assert_close(grad[0, model.stream(1)["1.1/token"]].sum(), by_hand)


def test_one_token_has_no_next() -> None:
    with pytest.raises(ValueError, match=r"two tokens or more; got shape \(2, 1\)"):
        sih.next_token_loss(sih.Transformer(3, 6), torch.zeros(2, 1, dtype=torch.int64))


def test_short_sequences_go_more_at_a_time_and_each_thread_has_its_part() -> None:
    seen = []
    model = sih.Transformer(3, 128, dim=4, qk_dim=2, heads=(1,))
    model.register_forward_pre_hook(lambda _, args: seen.append(tuple(args[0].shape)))
    for batch, time, parts in (
        (256, 32, [128] * 2),
        (256, 128, [32] * 8),
        (100, 64, [64, 36]),
        (40, 16, [40]),
    ):
        seen.clear()
        sih.next_token_loss(model, torch.zeros(batch, time, dtype=torch.int64)).backward()
        assert seen == [(rows, time) for rows in parts]
    short = torch.zeros(256, 16, dtype=torch.int64)
    assert [default_rows(short, threads) for threads in (1, 2, 4, 8, 64)] == [256, 128, 64, 32, 32]


@pytest.mark.parametrize("soft", [False, True])
def test_threads_side_by_side_give_the_same_sums(soft: bool) -> None:
    """Parts on several threads, added in order: the same bits every time, and those of one thread."""
    model = sih.Transformer(4, 12, dim=8, qk_dim=4, heads=(1, 2), dtype=torch.float64)
    tokens = torch.randint(4, (24, 12), generator=torch.Generator().manual_seed(0))
    laws = some_laws(tokens, 4) if soft else None

    def gradients(threads: int) -> list[torch.Tensor]:
        torch.set_num_threads(threads)
        model.zero_grad()
        sih.next_token_loss(model, tokens, rows=4, laws=laws).backward()
        assert torch.get_num_threads() == threads
        return [
            parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None
        ]

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
