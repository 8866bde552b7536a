from __future__ import annotations

import itertools

import torch
from torch.utils.data import DataLoader

import sih


def test_batches_are_those_of_one_generator(task: sih.Task) -> None:
    rng = torch.Generator().manual_seed(3)
    for loaded in (sih.FreshBatches(task, 4, seed=3), DataLoader(sih.FreshBatches(task, 4, seed=3), batch_size=None)):
        rng.manual_seed(3)
        for batch in itertools.islice(loaded, 3):
            wanted = sih.sample(task, 4, rng=rng)
            assert torch.equal(batch.tokens, wanted.tokens)
            assert torch.equal(batch.lags, wanted.lags)


def test_each_worker_draws_its_own_and_a_lag_is_kept(task: sih.Task) -> None:
    loader = DataLoader(sih.FreshBatches(task, 2, seed=5, lag=3), batch_size=None, num_workers=2)
    first, second = itertools.islice(loader, 2)
    for batch, seed in ((first, 5), (second, 6)):
        assert torch.equal(batch.tokens, sih.sample(task, 2, rng=seed, lag=3).tokens)
        assert (batch.lags == 3).all()
