"""Fresh batches of a task without end, for torch's DataLoader."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from sih.base.errors import FieldError, check_sizes, derived, generator
from sih.base.types import Seed
from sih.task.batch import Batch
from sih.task.parents import CausalTask, check_task
from sih.task.sampling import sample


class FreshBatches(IterableDataset[Batch]):
    """An endless stream of fresh batches of a task.

    Pass it to torch:
    `DataLoader(FreshBatches(task, size=256, rng=0), batch_size=None)`.

    Each iteration starts again from the seed. Each worker of a DataLoader has its own
    stream, derived from the seed and the worker's number by NumPy's `SeedSequence`. No
    stream equals that of another seed or worker, or of
    `sih.sample(task, size, rng=seed)`. Without workers the stream is that of the first
    worker.

    Args:
        task: the task to sample from.
        size: sequences in a batch.
        rng: a seed, or a generator from which a seed is drawn: the next
            `torch.randint(2**63 - 1, (), generator=rng)`. Default: 0.
        seed: another name of `rng`.
        lag: the lag of all sequences. By default it is drawn for each sequence.

    >>> import sih
    >>> batches = iter(sih.FreshBatches(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8), size=4, rng=0))
    >>> next(batches)
    Batch(size=4, length=8, lags={1: 2, 2: 2})
    """

    def __init__(
        self,
        task: CausalTask,
        size: int,
        *,
        rng: Seed | None = None,
        seed: Seed | None = None,
        lag: int | None = None,
    ) -> None:
        check_task(task)
        check_sizes(size=size)
        if rng is not None and seed is not None:
            raise FieldError(
                "seed",
                f"seed is another name of rng: give one of them; got rng={rng!r}, seed={seed!r}",
            )
        given = _seed(rng, "rng") if seed is None else _seed(seed, "seed")
        self.task, self.size, self.seed, self.lag = task, size, given, lag

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        rng = stream(self.seed, worker.id if worker else 0)
        while True:
            yield sample(self.task, self.size, rng=rng, lag=self.lag)


def stream(seed: int, worker: int) -> torch.Generator:
    """Return a generator in the state
    `numpy.random.SeedSequence(seed, spawn_key=(worker,))`.

    A plain seed will not do here, because every plain seed is one of `sih.sample`.
    """
    return derived(np.random.SeedSequence(seed, spawn_key=(worker,)))


def _seed(rng: Seed | None, name: str) -> int:
    """Return the seed itself, a seed drawn from a generator, or 0 for None."""
    if rng is None:
        return 0
    checked = generator(rng, name)
    if not isinstance(rng, torch.Generator):
        return rng
    return int(torch.randint(2**63 - 1, (), generator=checked, device=checked.device))
