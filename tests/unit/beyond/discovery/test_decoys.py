from __future__ import annotations

import torch

import sih
from sih.beyond.discovery.decoys import rotated, with_decoys
from sih.beyond.discovery.edges import candidate_edges, circuit_edges


def test_decoys_are_live_and_the_law_stays(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), (1, 2, 3), length=10)
    model = sih.construct(task, beta=3.0)
    among = with_decoys(model, rng=0, shift=0.02)
    assert among.config.heads == (2, 4, 1)
    assert circuit_edges(among) == circuit_edges(model)
    assert len(candidate_edges(among)) > len(candidate_edges(model))
    tokens = sih.sample(task, 32, rng=5).tokens
    law = among.predict(tokens)
    torch.testing.assert_close(law.sum(-1), torch.ones_like(law[..., 0]))
    assert 0.001 < among.notes["moved"] <= 0.02
    assert (law - model.predict(tokens)).abs().max() < 0.04
    trace = among.trace(tokens)
    for head in ("1.2", "2.4"):  # attention that depends on the tokens
        assert trace[f"{head}/attention"].std(dim=0).max() > 0.05
    for block in ("token", "position"):  # and weights that read everything
        assert (among.block("3.1", "2.4/token", block) != 0).all()
    assert torch.equal(among.readout_block("3.1/token"), model.readout_block("3.1/token"))
    assert torch.equal(with_decoys(model, rng=0, shift=0.02).readout, among.readout)


def test_a_rotation_keeps_the_law_and_hides_the_blocks(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), (1, 2), length=8)
    model = sih.construct(task, beta=3.0)
    standard = rotated(model, rng=1)
    tokens = sih.sample(task, 8, rng=5).tokens
    torch.testing.assert_close(standard.predict(tokens), model.predict(tokens), rtol=0, atol=1e-9)
    torch.testing.assert_close(
        standard.trace(tokens).attention[2], model.trace(tokens).attention[2], rtol=0, atol=1e-9
    )
    assert (standard.token.abs() > 1e-6).double().mean() > 0.9
