from __future__ import annotations

import torch
from support.pictures import same

import sih
from sih.paper.over_matrices import MatricesConfig, panel_over_matrices
from sih.results.curves import Compared


def test_a_panel_over_matrices_leaves_out_the_last_position(rng: torch.Generator) -> None:
    """What has no next token is drawn nowhere and counts in no mean, as in the panels of trained models."""
    config = MatricesConfig(num_states=2, length=10, matrices=3, sequences=4)
    seen: list[tuple[sih.Task, torch.Tensor]] = []

    def predict(tokens: torch.Tensor, task: sih.Task) -> dict[str, tuple[Compared, torch.Tensor]]:
        seen.append((task, tokens))
        law = sih.stationary_law(tokens, task)
        spoiled = law.clone()
        spoiled[:, -1] = torch.tensor([1.0, 0.0])
        return {"law": (Compared("predictor"), law), "spoiled": (Compared("predictor"), spoiled)}

    found = panel_over_matrices(config, (1, 2), predict)
    assert len(seen) == 3
    assert same(found.kl["spoiled"], found.kl["law"])
    assert len(found.kl["law"].mean) == 9
    assert len(found.kl["law"].overall) == 3
