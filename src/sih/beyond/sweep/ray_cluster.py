"""A sweep on a Ray cluster: one task per run, all in one folder that every node can
write to.

Ray chooses the node of a run, and restarts it on another node if the first is lost. The
run then resumes from its checkpoint in the shared folder. So a run ends with the same
bytes on every node with the same kind of processor. Only the news of its end goes
through Ray.
"""

import importlib
import os
from collections.abc import Generator, Sequence
from typing import Any

from sih.base.errors import INSTALL
from sih.beyond.sweep.worker import Job, News, work

LOST_AT_MOST = 100
"""Number of lost workers after which a run counts as failed."""
SECONDS_A_LOOK = 1.0


def run_on_ray(jobs: Sequence[Job], address: str, **options: Any) -> Generator[News, None, None]:
    """Train all jobs on the cluster at `address`, or on a new one on this machine
    (`local`), and yield the news.

    `options` go to `ray.init`. After an early end, the active tasks are cancelled;
    their checkpoints stay.
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
