"""A disentangled model as a standard one."""

from __future__ import annotations

import torch
from hypothesis import given
from support.shapes import disentangled_models
from torch import Tensor

import sih


@given(case=disentangled_models(max_length=6))
def test_the_outputs_and_attentions_are_equal(
    case: tuple[sih.DisentangledTransformer, Tensor],
) -> None:
    model, tokens = case
    standard = sih.to_standard(model)
    assert standard.config.mlp_dim is None
    torch.testing.assert_close(standard(tokens), model(tokens), rtol=0, atol=1e-10)
    torch.testing.assert_close(standard.predict(tokens), model.predict(tokens), rtol=0, atol=1e-10)
    for layer, attention in enumerate(model.trace(tokens).attention):
        torch.testing.assert_close(
            standard.trace(tokens).attention[layer], attention, rtol=0, atol=1e-10
        )


def test_the_readouts_meaning_is_kept() -> None:
    model = sih.DisentangledTransformer(3, 4, heads=(1,), readout="probability", init="zeros")
    assert sih.to_standard(model).config.readout == "probability"
