from __future__ import annotations

from pathlib import Path

import torch

import sih
from sih.analysis.lag_mass import attention_by_offset, heads_of, probabilities_in_layer_1
from sih.runs.run import open_run
from sih.runs.run_writer import Recorder
from sih.training.trainer import TrainConfig


def test_attention_by_offset_against_loops(rng: torch.Generator) -> None:
    attention = torch.softmax(
        torch.randn(3, 10, 10, generator=rng).masked_fill(torch.ones(10, 10).triu(1) > 0, -1e9), -1
    )
    residues, near, far = attention_by_offset(attention, 3, near=4)
    wanted, offsets, distant = [0.0] * 3, [0.0] * 4, 0.0
    for query in range(5, 10):
        for key in range(query + 1):
            mass = sum(attention[b, query, key].item() for b in range(3)) / 15
            wanted[(query - key) % 3] += mass
            if query - key < 4:
                offsets[query - key] += mass
            if query - key >= 2:
                distant += mass
    assert torch.allclose(residues, torch.tensor(wanted), atol=1e-6)
    assert torch.allclose(near, torch.tensor(offsets), atol=1e-6)
    assert abs(far - distant) < 1e-6


def test_a_head_written_by_hand_is_seen_for_what_it_is(tmp_path: Path) -> None:
    """Layer 1 attends to the lags by log P, the construction's; layer 2's heads to the residues."""
    config = TrainConfig(
        model="disentangled", lags=(1, 2), states=3, length=12, heads=(1, 2), steps=1, batch=2, held_out=2
    )
    for _ in Recorder(config, tmp_path / "run", threads=1):
        pass
    run = open_run(tmp_path / "run")
    model, task = run.model, run.task
    assert isinstance(model, sih.DisentangledTransformer)
    i = torch.arange(12)
    offset = i[:, None] - i
    scale = model.config.temperature
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.block("1.1", "token", "token").copy_(scale * task.P.log().T)
        model.block("1.1", "position", "position").copy_(100 * scale * ((offset == 1) | (offset == 2)))
        for head in (1, 2):
            model.block(f"2.{head}", "position", "position").copy_(100 * scale * (offset % 2 == head - 1))
    assert probabilities_in_layer_1(run) > 0.999
    first, even, odd = heads_of(run)
    assert torch.allclose(first.offsets[1:3].sum(), torch.tensor(1.0))
    assert even.residues[0] > 0.999
    assert odd.residues[1] > 0.999
    assert even.far > 0.4
    assert "head 2.2" in str(odd)
