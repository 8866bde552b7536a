"""Hypothesis strategies: models of random shape with random weights, and sequences for them."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

import sih


@st.composite
def disentangled_models(
    draw: st.DrawFn, max_length: int = 9, dtype: torch.dtype = torch.float64
) -> tuple[sih.DisentangledTransformer, Tensor]:
    """A model with scores large enough to matter, and tokens for it, perhaps shorter than it could take."""
    length = draw(st.integers(1, max_length))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    model = sih.DisentangledTransformer(
        num_states=draw(st.integers(2, 4)),
        length=length,
        heads=draw(
            st.sampled_from([(1,), (2,), (1, 1), (2, 1), (1, 3, 1), (1, 2, 2), (1, 1, 1, 1)])
        ),
        temperature=draw(st.sampled_from([0.2, 1.0, 5.6])),
        dtype=dtype,
        rng=rng,
    )
    return model, _tokens(draw, model.config.num_states, length, rng)


@st.composite
def standard_models(
    draw: st.DrawFn, max_length: int = 9, dtype: torch.dtype = torch.float64
) -> tuple[sih.Transformer, Tensor]:
    length = draw(st.integers(1, max_length))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    model = sih.Transformer(
        num_states=draw(st.integers(2, 4)),
        length=length,
        dim=draw(st.integers(1, 6)),
        qk_dim=draw(st.integers(1, 4)),
        heads=draw(st.sampled_from([(1,), (3,), (2, 1), (1, 3, 1), (1, 1, 2, 1)])),
        mlp_dim=draw(st.sampled_from([None, 3, 7])),
        activation=draw(st.sampled_from(["relu", "gelu"])),
        temperature=draw(st.sampled_from([None, 0.3, 1.0])),
        dtype=dtype,
        rng=rng,
    )
    return model, _tokens(draw, model.config.num_states, length, rng)


def _tokens(draw: st.DrawFn, num_states: int, length: int, rng: torch.Generator) -> Tensor:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, length)))
    return torch.randint(num_states, shape, generator=rng)
