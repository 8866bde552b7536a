from __future__ import annotations

from sih.experiments.table import EXPERIMENTS
from sih.results.experiment import braces, no_models, no_table, with_error
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


def test_numbers_of_tables() -> None:
    assert with_error(0.01281, 0.0003) == ".0128±.0003"
    assert with_error(-0.5, 10.25) == "-.5000±10.2500"


def test_lag_sets() -> None:
    assert braces((1, 3, 4)) == "{1,3,4}"
