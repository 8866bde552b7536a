from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import sih
from sih.base.errors import WORDS, FieldError
from sih.task.fresh_batches import stream

SEEDS, WORKERS, BATCHES = range(8), 4, 50


def first(batches: Iterable[sih.Batch], count: int = 3) -> list[tuple[list[list[int]], list[int]]]:
    return [
        (batch.tokens.tolist(), batch.lags.tolist()) for batch in itertools.islice(batches, count)
    ]


def drawn_by(rng: torch.Generator, task: sih.Task, size: int) -> Iterator[sih.Batch]:
    while True:
        yield sih.sample(task, size, rng=rng)


def rows(batch: sih.Batch) -> list[bytes]:
    """Each sequence of a batch as bytes."""
    return [row.tobytes() for row in batch.tokens.to(torch.uint8).numpy()]


def test_a_stream_is_that_of_numpy() -> None:
    """NumPy's Mersenne Twister, given the same state, draws the same 32-bit numbers: torch keeps 24 bits of each."""
    for seed, worker in ((0, 0), (3, 1), (2**40, 2)):
        key = (
            np.random.SeedSequence(seed, spawn_key=(worker,))
            .generate_state(WORDS)
            .astype(np.uint32)
        )
        theirs = np.random.MT19937()
        theirs.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": WORDS}}
        ours = torch.rand(2000, generator=stream(seed, worker), dtype=torch.float32)
        assert ((theirs.random_raw(2000) % 2**24) / 2**24).tolist() == ours.tolist()


def test_batches_are_those_of_the_first_stream(task: sih.Task) -> None:
    wanted = first(drawn_by(stream(3, 0), task, 4))
    batches = sih.FreshBatches(task, 4, rng=3)
    assert first(batches) == wanted
    assert first(batches) == wanted  # a second iteration begins anew
    assert first(DataLoader(batches, batch_size=None)) == wanted
    assert first(sih.FreshBatches(task, 4, seed=3)) == wanted
    assert first(pickle.loads(pickle.dumps(batches))) == wanted
    assert first(sih.FreshBatches(task, 4)) == first(drawn_by(stream(0, 0), task, 4))


def test_each_worker_draws_its_own_and_a_lag_is_kept(task: sih.Task) -> None:
    loader = DataLoader(sih.FreshBatches(task, 2, rng=5, lag=3), batch_size=None, num_workers=2)
    for worker, batch in enumerate(itertools.islice(loader, 2)):
        assert torch.equal(batch.tokens, sih.sample(task, 2, rng=stream(5, worker), lag=3).tokens)
        assert (batch.lags == 3).all()


@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker")
def test_no_batch_is_shared_by_seeds_workers_and_sample() -> None:
    """Nor is a sequence: with 64 tokens of 5 states none comes twice by chance."""
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=64)
    loaders = [
        DataLoader(sih.FreshBatches(task, 8, rng=seed), batch_size=None, num_workers=WORKERS)
        for seed in SEEDS
    ]
    plain = [
        drawn_by(torch.Generator().manual_seed(seed), task, 8)
        for seed in range(len(SEEDS) + WORKERS)
    ]
    found = [batch for loader in loaders for batch in itertools.islice(loader, WORKERS * BATCHES)]
    found += [batch for batches in plain for batch in itertools.islice(batches, BATCHES)]
    sequences = [row for batch in found for row in rows(batch)]
    assert len(sequences) == 8 * BATCHES * (len(SEEDS) * WORKERS + len(plain))
    assert len(set(sequences)) == len(sequences)


def test_seeds_that_torch_takes_for_one_are_two(task: sih.Task) -> None:
    assert first(drawn_by(torch.Generator().manual_seed(2**32), task, 4)) == first(
        drawn_by(torch.Generator().manual_seed(0), task, 4)
    )
    assert first(sih.FreshBatches(task, 4, rng=2**32)) != first(sih.FreshBatches(task, 4, rng=0))
    seeds = [number + more for number in (0, 1) for more in (0, 2**32, 2**33, 2**40, 2**61)]
    drawn = {
        row for seed in seeds for row in rows(sih.sample(replace(task, length=64), 8, rng=seed))
    }
    assert len(drawn) == 8 * len(seeds)
    assert torch.equal(
        sih.sample(task, 4, rng=2**32 - 1).tokens,
        next(drawn_by(_torchs(2**32 - 1), task, 4)).tokens,
    )


def _torchs(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_generator_gives_the_seed(task: sih.Task) -> None:
    rng = torch.Generator().manual_seed(7)
    batches, others = sih.FreshBatches(task, 4, rng=rng), sih.FreshBatches(task, 4, seed=rng)
    assert batches.seed == int(
        torch.randint(2**63 - 1, (), generator=torch.Generator().manual_seed(7))
    )
    assert first(batches) == first(batches) == first(sih.FreshBatches(task, 4, rng=batches.seed))
    assert first(batches) != first(others)


@pytest.mark.parametrize("name", ["rng", "seed"])
@pytest.mark.parametrize("wrong", [-1, True, 2**63])
def test_a_wrong_seed_is_refused(task: sih.Task, name: str, wrong: int) -> None:
    with pytest.raises(
        FieldError, match=f"^{name} must be a torch.Generator or a seed, .*; got {wrong}$"
    ):
        sih.FreshBatches(task, 4, **{name: wrong})


def test_two_seeds_are_refused(task: sih.Task) -> None:
    with pytest.raises(
        FieldError, match=r"^seed is another name of rng: give one of them; got rng=1, seed=1$"
    ):
        sih.FreshBatches(task, 4, rng=1, seed=1)
