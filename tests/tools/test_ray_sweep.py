"""A sweep on a real Ray cluster of several nodes, all on the loopback device, one of which is lost on the way."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.small_runs import SHORT

from sih.beyond.sweep.local import run_here
from sih.beyond.sweep.ray_cluster import run_on_ray
from sih.beyond.sweep.worker import Job
from sih.training.config_file import to_json
from sih.training.runs.run import list_runs, read_checkpoint

ray = pytest.importorskip("ray", reason='needs the extra "cluster"')

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


@pytest.fixture
def cluster() -> Iterator[Any]:
    Cluster = importlib.import_module("ray.cluster_utils").Cluster
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    here = {"num_cpus": 0, "node_ip_address": "127.0.0.2", "include_dashboard": False}
    made = Cluster(
        initialize_head=True, head_node_args=here
    )  # not 127.0.0.1, which Ray takes for another device
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def job(folder: Path, seed: int, steps: int) -> Job:
    config = SHORT.replace(seed=seed, steps=steps)
    return Job(
        f"run{seed}", to_json(config), str(folder / f"run{seed}"), "plain", checkpoint_seconds=0.2
    )


def step_of(job: Job) -> int:
    path = Path(job.folder) / "checkpoint.safetensors"
    return int(read_checkpoint(path)[0]["step"]) if path.exists() else 0


def test_a_lost_node_loses_nothing_and_bytes_are_those_of_a_local_sweep(
    cluster: Any, tmp_path: Path
) -> None:
    nodes = [cluster.add_node(num_cpus=1, node_ip_address=f"127.0.0.{last}") for last in (3, 4)]
    short, *long = todo = [
        job(tmp_path / "ray", seed, steps) for seed, steps in enumerate((24, 900, 900))
    ]
    saved, over = dict[str, int](), threading.Event()

    def lose_a_node() -> None:
        while not all(map(step_of, long)):  # both nodes are at work, and have made a checkpoint
            if over.wait(0.05):
                return
        saved.update({each.name: step_of(each) for each in long})
        cluster.remove_node(nodes[0], allow_graceful=False)

    watcher = threading.Thread(target=lose_a_node, daemon=True)
    watcher.start()
    ended = list(run_on_ray(todo, cluster.address, _node_ip_address="127.0.0.2"))
    over.set()
    watcher.join()
    assert {each.name: (each.state, each.why) for each in ended} == {
        each.name: ("finished", "") for each in todo
    }
    assert [0 < step < 900 for step in saved.values()] == [True, True]
    local = [replace(each, folder=str(tmp_path / "local" / each.name)) for each in todo]
    assert {each.state for each in run_here(local, 2)} <= {"running", "finished"}
    for run in list_runs(tmp_path / "local"):
        for name in FILES:
            assert (tmp_path / "ray" / run.name / name).read_bytes() == (
                run.folder / name
            ).read_bytes()
    again = [
        each.state for each in run_on_ray([short], cluster.address, _node_ip_address="127.0.0.2")
    ]
    assert again == ["finished"]
