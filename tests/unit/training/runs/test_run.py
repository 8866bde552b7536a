from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from support.small_runs import SHORT, make

import sih
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED, RunStore, open_run
from sih.training.trainer import train


def test_a_finished_run_holds_what_was_trained(tmp_path: Path) -> None:
    make(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == [
        "config.json",
        "environment.json",
        "metrics.jsonl",
        "weights.safetensors",
        "weights.sha256",
    ]
    run = open_run(tmp_path / "run")
    steps = list(train(SHORT))
    for name, weight in steps[-1].model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], weight)
        assert torch.equal(sih.load(tmp_path / "run").state_dict()[name], weight)
    assert run.config == SHORT
    assert torch.equal(run.task.P, SHORT.task.steady().P)
    assert [line["step"] for line in run.metrics] == [0, 8, 10, 16, 20, 24]
    losses = [step.loss for step in steps[1:]]
    between = [losses[a:b] for a, b in ((0, 8), (8, 10), (10, 16), (16, 20), (20, 24))]
    assert [line["loss"] for line in run.metrics[1:]] == [
        sum(x for x in p if x) / len(p) for p in between
    ]
    wanted = [step.evaluation.mean_kl for step in steps if step.evaluation]
    assert [line["kl"] for line in run.evaluations] == pytest.approx(
        wanted, rel=1e-5
    )  # made of rounded numbers
    assert run.evaluations[0]["ml"] > run.evaluations[0]["bma"]
    assert len(run.evaluations[-1]["kl_along"]) == 12
    assert run.environment["torch"] == torch.__version__
    assert run.environment["threads"] == 1


def test_means_of_files_of_before_are_made_again_without_the_last_position(tmp_path: Path) -> None:
    make(tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = Run(tmp_path / "run").evaluations
    for line in lines:
        line |= {name: 9.0 for name in ("kl", "ml", "bma") if name in line}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert Run(tmp_path / "run").evaluations == wanted
    along, first = wanted[-1]["kl_along"], SHORT.task.lags[-1]
    assert wanted[-1]["kl"] == pytest.approx(sum(along[first:-1]) / (len(along) - 1 - first))


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


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("environment.json", "1", "must hold a JSON object; got int"),
        ("environment.json", "[]", "must hold a JSON object; got list"),
        ("environment.json", "", "Expecting value"),
        ("environment.json", '{"threads": "two"}', "threads must be int; got 'two'"),
        ("environment.json", "{}", "threads is missing"),
        ("metrics.jsonl", "[1]\n", "line 1: it must hold a JSON object; got list"),
        ("metrics.jsonl", '{"step": 0, "kl": 1.0}\n', "line 1: ml is missing"),
        (
            "metrics.jsonl",
            '{"step": 1}\n{"step": 2, "loss": "low"}\n',
            "line 2: loss must be int or float",
        ),
        ("metrics.jsonl", "gar\0bled\n", "line 1: "),
        (
            "metrics.jsonl",
            '{"step": 0, "kl": 1, "ml": 1, "bma": 1, "kl_along": ["a"]}\n',
            "line 1: kl_along must hold",
        ),
        ("metrics.jsonl", "", "holds no evaluation, though the run is finished"),
        ("config.json", '{"version": 2}', "'task' must be an object"),
        ("config.json", "7", "must hold a JSON object"),
    ],
)
def test_every_file_is_checked_and_named(
    file: str, content: str, said: str, tmp_path: Path
) -> None:
    shutil.copytree(SHIPPED / RunStore().names()[0], tmp_path / "run")
    (tmp_path / "run" / file).write_text(content)
    run = Run(tmp_path / "run")
    with pytest.raises(ValueError, match=rf"run/{file}.*{re.escape(said)}") as caught:
        _ = run.config, run.environment, run.metrics, run.evaluations
    assert "\n" not in str(caught.value)


def test_a_configuration_that_asks_for_more_than_the_weights_file_holds_builds_nothing(
    tmp_path: Path,
) -> None:
    make(tmp_path / "run")
    config = (tmp_path / "run" / "config.json").read_text()
    (tmp_path / "run" / "config.json").write_text(
        re.sub('"length": [0-9]+', '"length": 30000000', config, count=1)
    )
    with pytest.raises(ValueError, match=r"asks for [0-9,]+ weights, weights.safetensors holds"):
        _ = open_run(tmp_path / "run").model


def test_a_million_heads_are_not_made_to_be_counted(tmp_path: Path) -> None:
    make(tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["model"]["heads"] = [1, 1_000_000, 1]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"asks for 1,000,002 heads, weights.safetensors holds"):
        _ = open_run(tmp_path / "run").model


def test_where_maximum_likelihood_is_never_wrong_the_ratio_is_no_number(tmp_path: Path) -> None:
    config = SHORT.replace(lags=(1,))  # one lag: nothing to select
    make(tmp_path / "run", config)
    run = open_run(tmp_path / "run")
    assert run.evaluations[0]["ml"] == 0
    assert math.isinf(run.held_out_kl_over_ml)
