"""Batches: `test_parents.py` and `test_fresh_task.py` have those that are drawn."""

from __future__ import annotations

import pytest
import torch

import sih
from sih.task.batch import Sequence, SequenceWithMatrix, check_batch


def test_what_a_batch_is_made_of() -> None:
    tokens, lags = torch.zeros(3, 4).long(), torch.tensor([1, 2, 1])
    plain = sih.Batch(tokens, lags)
    assert plain.P is None
    assert type(plain[0]) is Sequence
    assert [len(sequence) for sequence in plain] == [2, 2, 2]
    P = torch.full((3, 2, 2), 0.5)
    own = sih.Batch(tokens, lags, P)
    assert type(own[2]) is SequenceWithMatrix
    assert own[1:].P is not None
    moving = sih.Batch(tokens, torch.ones(3, 4).long())  # a lag for each token
    assert moving[0].lags.shape == (4,)
    assert moving[[0, 2]].lags.shape == (2, 4)
    with pytest.raises(ValueError, match="batch must be a Batch"):
        check_batch(tokens)
