from __future__ import annotations

import torch

from sih.claim import claim_histogram
from sih.paper import heads
from sih.results.experiment import FRESH_SEED, Seeded, named_models, no_models
from sih.training.runs.run_store import RunStore


def test_a_seed_changes_only_what_is_random() -> None:
    histogram = claim_histogram.EXPERIMENT
    assert histogram.with_seed(7).config.seed == 7
    assert heads.EXPERIMENT.with_seed(7) == heads.EXPERIMENT
    assert histogram.with_seed(0) == histogram


def test_without_more_words_it_reads_no_models() -> None:
    assert heads.EXPERIMENT.reads == no_models
    assert no_models(heads.EXPERIMENT.config, RunStore()) == ()
    assert named_models(type("Config", (), {"models": ("a", "b")}), RunStore()) == ("a", "b")


def test_a_seeds_numbers_are_its_own() -> None:
    draws = {
        float(torch.rand((), generator=rng))
        for seed in (0, 1)
        for rng in (Seeded(seed=seed).rng(), Seeded(seed=seed).fresh_rng())
    }
    assert len(draws) == 4
    fresh = torch.Generator().manual_seed(FRESH_SEED + 1)
    assert torch.equal(
        torch.rand(3, generator=Seeded(seed=1).fresh_rng()), torch.rand(3, generator=fresh)
    )
