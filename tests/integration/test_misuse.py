"""Wrong arguments of every public function: one clear line each, never an error from within."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import sih

TESTS = Path(__file__).parents[1]


def test_every_wrong_argument_is_refused_in_one_line() -> None:
    """In a process of its own: what checks shapes in the tests would be first to refuse."""
    command = [sys.executable, "-W", "error", "-m", "support.misuse"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")
    assert done.returncode == 0


def test_a_value_of_a_wrong_type_is_refused_or_has_an_effect() -> None:
    """In a process of its own, for the same reason. Its last line says how much it tried."""
    command = [sys.executable, "-W", "error", "-m", "support.wrong_types"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    *problems, last = done.stdout.splitlines()
    assert problems == []
    assert int(last.split()[0]) >= 395
    assert last.endswith("pairs of a callable and a parameter")


def test_tokens_of_any_whole_numbers_are_taken(task: sih.Task) -> None:
    tokens = sih.sample(task, 3, rng=0).tokens
    model = sih.construct(task)
    wanted = (
        sih.bma(tokens, task),
        sih.selective(tokens, task),
        sih.ngram(tokens, task),
        model.predict(tokens),
    )
    for given in (
        tokens.int(),
        tokens.to(torch.uint8),
        tokens.numpy(),
        tokens.numpy().astype(np.int16),
    ):
        found = (
            sih.bma(given, task),
            sih.selective(given, task),
            sih.ngram(given, task),
            model.predict(given),
        )
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
        assert torch.equal(sih.next_token_loss(model, given), sih.next_token_loss(model, tokens))
        assert torch.equal(
            model.trace(given)["3.1/attention"], model.trace(tokens)["3.1/attention"]
        )


def test_a_law_that_is_none_is_refused(task: sih.Task) -> None:
    batch = sih.sample(task, 3, rng=0)
    law = sih.bma(batch.tokens, task)
    assert (sih.kl_to_truth(law.float(), batch, task) > -1e-6).all()
    for wrong in (law.log(), 0.5 * law, law + 0.01, law.round(decimals=0) * 2 - 1):
        with pytest.raises(
            ValueError, match=r"prediction must be probabilities that sum to 1.*got numbers"
        ):
            sih.kl_to_truth(wrong, batch, task)
