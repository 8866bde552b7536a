import torch
import sih


def test_smoke(task, rng):
    b = sih.sample(task, 4, rng=rng)
    assert b.tokens.shape == (4, 32)
