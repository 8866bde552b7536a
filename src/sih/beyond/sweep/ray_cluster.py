"""A sweep on a Ray cluster: a task for each run, all in one folder that every node can write to.

Ray decides where a run is trained, and runs it again on another node if its own is lost. The checkpoint in the shared
folder is what it then goes on from, as on one machine: so a run ends with the same bytes wherever it was trained, on
processors of one kind, and nothing has to be sent back through Ray but the news that it has ended.
"""

import importlib
import os
from collections.abc import Generator, Sequence
from typing import Any

from sih.base.errors import INSTALL
from sih.beyond.sweep.worker import Job, News, work

LOST_AT_MOST = 100
"""How often a run may lose its worker before it counts as failed."""
SECONDS_A_LOOK = 1.0


def run_on_ray(jobs: Sequence[Job], address: str, **options: Any) -> Generator[News, None, None]:
    """Train all jobs on the cluster at `address`, or on a new one on this machine (`local`), giving the news.

    `options` go to `ray.init`. Left early, the tasks that run are cancelled: their checkpoints stay.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise ValueError(
            f"--ray needs the extra cluster; in a clone: {INSTALL.format(extra='cluster')}"
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    place = {} if address == "local" else {"address": address}
    ray.init(**{"log_to_driver": False, "include_dashboard": None, **place, **options})
    try:
        task = ray.remote(num_cpus=1, max_retries=LOST_AT_MOST)(_task)
        waiting = {task.remote(job): job for job in jobs}
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1, timeout=SECONDS_A_LOOK)
                for reference in done:
                    job = waiting.pop(reference)
                    try:
                        yield ray.get(reference)
                    except ray.exceptions.RayError as error:
                        yield News(job.name, 0, "failed", str(error).splitlines()[0])
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
    finally:
        ray.shutdown()


def _task(job: Job) -> News:
    return work(job, lambda news: None)
