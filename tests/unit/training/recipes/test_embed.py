from __future__ import annotations

import torch

import sih
from sih.training.trainer import Trainer


def test_embeddings_are_standard_normal_and_the_rest_is_that_of_gpt2() -> None:
    """Five standard errors of the standard deviation of 8,512 embeddings: errs with probability 6e-7."""
    config = sih.TrainConfig(heads=(1, 1, 1), seed=5)
    found, gpt2 = (Trainer(config.replace(init=init)).model for init in ("embed", "gpt2"))
    small = dict(gpt2.named_parameters())
    embeddings = []
    for name, weight in found.named_parameters():
        if name in ("token", "position"):
            embeddings.append(weight.detach().flatten())
            torch.testing.assert_close(weight, 50 * small[name])
        else:
            assert torch.equal(weight, small[name]), name
    together = torch.cat(embeddings)
    assert abs(together.std().item() - 1) < 5 / (2 * together.numel()) ** 0.5
