"""Pieces of a stream make the whole of it, and a score's matrix is found without knowing the weights."""

import pytest
import torch

import sih
from sih.attention.interventions import mean_values
from sih.beyond.evidence_paths.stream_pieces import (
    averaged,
    block_pieces,
    path_pieces,
    score_matrix,
)


@pytest.mark.parametrize("kind", ["standard", "disentangled"])
def test_pieces_put_together_are_the_stream(kind: str, rng: torch.Generator) -> None:
    if kind == "standard":
        model: sih.Transformer | sih.DisentangledTransformer = sih.Transformer(
            3, 9, dim=8, qk_dim=4, heads=(2, 2, 1)
        )
    else:
        model = sih.DisentangledTransformer(3, 9, (2, 2, 1))
    tokens = torch.randint(3, (6, 7), generator=rng)
    trace = model.trace(tokens)
    ways = [path_pieces(model, trace, mean_values(model, tokens, averaged(model)))]
    if kind == "disentangled":
        ways.append(block_pieces(model, trace))
    for pieces in ways:
        whole = torch.zeros_like(trace["2/stream"])
        for columns, value in pieces.values():
            whole[..., columns] += value
        assert torch.allclose(whole, trace["2/stream"], atol=1e-5)


@pytest.mark.parametrize("length", [5, 30])
def test_the_matrix_of_a_score_without_its_weights(length: int, rng: torch.Generator) -> None:
    """Also where the stream is wider than a sequence is long."""
    model = sih.Transformer(3, length, dim=12, qk_dim=4, heads=(1, 2), rng=rng).double()
    layer = model.each_layer()[1]
    expected = (layer.Q[1] @ layer.K[1].T).detach()
    assert torch.allclose(score_matrix(model, "2.2"), expected, atol=1e-12)
    disentangled = sih.DisentangledTransformer(3, length, (1, 2))
    assert torch.equal(score_matrix(disentangled, "2.2"), disentangled.A[1][1])


def test_a_score_that_knows_the_offset_has_no_one_matrix() -> None:
    model = sih.RelativeTransformer(3, reach=2, dim=6, qk_dim=4, heads=(1,), rng=0)
    with pytest.raises(ValueError, match=r"those of 1\.1 depend on the offset"):
        score_matrix(model, "1.1")
    model = sih.RelativeTransformer(3, reach=2, dim=6, qk_dim=4, heads=(1,), offsets="none", rng=0)
    layer = model.each_layer()[0]
    torch.testing.assert_close(score_matrix(model, "1.1"), (layer.Q[0] @ layer.K[0].T).detach())
