"""Fresh batches of a task without end, for torch's DataLoader."""

from collections.abc import Iterator

from torch.utils.data import IterableDataset, get_worker_info

from sih.checks import check_kind, check_sizes, generator
from sih.task.batch import Batch
from sih.task.parents import CausalTask, check_task
from sih.task.sampling import sample


class FreshBatches(IterableDataset[Batch]):
    """Draws one batch after the other, none twice: `DataLoader(FreshBatches(task, size=256, seed=0), batch_size=None)`.

    Each iteration begins anew from the seed. Workers of a DataLoader draw apart, from seed, seed + 1, ...

    Args:
        task: what is sampled.
        size: sequences in a batch.
        seed: where the random numbers begin.
        lag: the lag of all sequences, drawn for each unless given.

    >>> import sih
    >>> batches = iter(sih.FreshBatches(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8), size=4))
    >>> next(batches)
    Batch(size=4, length=8, lags={1: 1, 2: 3})
    """

    def __init__(self, task: CausalTask, size: int, *, seed: int = 0, lag: int | None = None) -> None:
        check_task(task)
        check_sizes(size=size)
        check_kind("seed", seed, int, "a whole number from 0 on, e.g. 0")
        generator(seed)
        self.task, self.size, self.seed, self.lag = task, size, seed, lag

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        rng = generator(self.seed + (worker.id if worker else 0))
        while True:
            yield sample(self.task, self.size, rng=rng, lag=self.lag)
