"""Modifications that hide circuits: random heads beside the true ones, noise in place
of zeros, a rotated stream.

In a circuit from `construct`, every edge outside the circuit scores exactly 0 under any
method. Here decoy heads attend to random tokens and write into separate blocks. Small
weights read everything; they are so small that the predictions hardly change.
"""

from dataclasses import replace
from typing import TypeVar

import torch

from sih.base.errors import generator
from sih.base.types import Seed
from sih.circuits.verification import circuit_and_task
from sih.models.disentangled.as_standard import to_standard
from sih.models.disentangled.blocks import head_names
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.models.standard.transformer import Transformer
from sih.task import sample

InBlocks = TypeVar("InBlocks", DisentangledTransformer, DisentangledRelativeTransformer)

DECOYS = (1, 1, 0)
"""Decoy heads added to each layer, after the true ones, which keep their names."""


@torch.no_grad()
def with_decoys(
    model: InBlocks,
    *,
    rng: Seed,
    decoys: tuple[int, ...] = DECOYS,
    shift: float = 0.01,
) -> InBlocks:
    """Return the same circuit among decoys and noise, which change no predicted
    probability by more than `shift`.

    The change is measured on sequences of the task. The notes contain it, with circuit
    and task.
    """
    rng = generator(rng)
    config, clean = model.config, model.written_blocks()
    heads = tuple(true + extra for true, extra in zip(config.heads, decoys, strict=True))
    dtype = model.readout.dtype
    among = type(model).from_config(replace(config, heads=heads)).to(dtype)
    noise = [torch.randn(A.shape, generator=rng, dtype=dtype) for A in among.A]
    readout = torch.randn(among.readout.shape, generator=rng, dtype=dtype)
    readout -= readout.mean(dim=0)  # so that predictions sum to 1
    tokens = sample(circuit_and_task(model)[1], 32, rng=rng).tokens
    law, size = model.predict(tokens), 0.1
    while True:
        for layer, A in enumerate(among.A):
            A.copy_(size * noise[layer])
            A[config.heads[layer] :] = (
                4 / len(among.stream(layer).names) * noise[layer][config.heads[layer] :]
            )
        among.readout.copy_(size * readout)
        for name in head_names(config.heads):
            for (query, key), block in clean.A[name].items():
                among.block(name, query, key).copy_(block)
        for name, block in clean.readout.items():
            among.readout_block(name).copy_(block)
        moved = float((among.predict(tokens) - law).abs().max())
        if moved <= shift:
            break
        size /= 2
    among.notes = {**model.notes, "decoys": list(decoys), "noise": size, "moved": moved}
    return among.requires_grad_(False)


@torch.no_grad()
def rotated(model: DisentangledTransformer, *, rng: Seed) -> Transformer:
    """Return the model as a standard transformer, with its stream h rotated by a random
    R: h R in place of h.
    """
    standard = to_standard(model)
    dim, dtype = standard.config.dim, standard.readout.dtype
    R = torch.linalg.qr(torch.randn(dim, dim, generator=generator(rng), dtype=dtype))[0]
    for weight in (standard.token, standard.position, standard.readout):
        weight.copy_(weight @ R)
    for layer in standard.each_layer():
        layer.Q.copy_(R.T @ layer.Q)
        layer.K.copy_(R.T @ layer.K)
        layer.V.copy_(R.T @ layer.V @ R)
    standard.notes = dict(model.notes)
    return standard.requires_grad_(False)
