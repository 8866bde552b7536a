from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from support.small_runs import SHORT, make

import sih
from sih.runs.run_store import RunStore, open_run
from sih.training.trainer import train


def test_a_finished_run_holds_what_was_trained(tmp_path: Path) -> None:
    make(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["config.json", "environment.json", "metrics.jsonl", "weights.safetensors"]
    run = open_run(tmp_path / "run")
    steps = list(train(SHORT))
    for name, weight in steps[-1].model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], weight)
        assert torch.equal(sih.load(tmp_path / "run").state_dict()[name], weight)
    assert run.config == SHORT
    assert torch.equal(run.task.P, SHORT.task.build().P)
    assert [line["step"] for line in run.metrics] == [0, 8, 10, 16, 20, 24]
    losses = [step.loss for step in steps[1:]]
    between = [losses[a:b] for a, b in ((0, 8), (8, 10), (10, 16), (16, 20), (20, 24))]
    assert [line["loss"] for line in run.metrics[1:]] == [sum(x for x in p if x) / len(p) for p in between]
    wanted = [step.evaluation.mean_kl for step in steps if step.evaluation]
    assert [line["kl"] for line in run.evaluations] == wanted
    assert run.evaluations[0]["ml"] > run.evaluations[0]["bma"]
    assert len(run.evaluations[-1]["kl_along"]) == 12
    assert run.environment["torch"] == torch.__version__
    assert run.environment["threads"] == 1


@pytest.mark.parametrize("name", RunStore().names())
def test_a_shipped_model_is_as_good_as_its_record_says(name: str) -> None:
    """On fresh sequences of its task, within the sampling error of both numbers."""
    run = open_run(name)
    assert run.finished
    batch = sih.sample(run.task, 512, rng=torch.Generator().manual_seed(987_654_321))
    with torch.no_grad():
        law = run.model.predict(batch.tokens)
    kl = sih.mean_kl(sih.kl_to_truth(law, batch, run.task), run.task)
    error = kl.std().item() / math.sqrt(512) * math.sqrt(1 + 512 / run.config.evaluation.held_out)
    assert abs(kl.mean().item() - run.evaluations[-1]["kl"]) < 5 * error
