from __future__ import annotations

from sih.experiments.experiment import no_models, no_table
from sih.experiments.table import EXPERIMENTS
from sih.runs.run_store import RunStore


def test_a_seed_changes_only_what_is_random() -> None:
    assert EXPERIMENTS["claim_histogram"].with_seed(7).config.seed == 7
    assert EXPERIMENTS["heads"].with_seed(7) == EXPERIMENTS["heads"]
    assert EXPERIMENTS["claim_histogram"].with_seed(0) == EXPERIMENTS["claim_histogram"]


def test_without_more_words_it_reads_no_models_and_has_no_table() -> None:
    heads = EXPERIMENTS["heads"]
    assert (heads.reads, heads.table) == (no_models, no_table)
    assert no_models(heads.config, RunStore()) == ()
    assert no_table(None) == []
