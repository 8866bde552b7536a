from __future__ import annotations

import pytest
import torch

import sih
from sih.models.sites import Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 2, 3), length=64)
    return sih.construct(task).trace(sih.sample(task, size=2, rng=0).tokens)


def test_a_map_for_each_head(trace: Trace) -> None:
    axes = trace.plot(sequence=1, length=16).axes
    assert [ax.get_title() for ax in axes[:-1]] == [
        f"head {name}" for name in ("1.1", "2.1", "2.2", "2.3", "3.1")
    ]
    attention = trace["1.1/attention"][1, :16, :16]
    shown = torch.from_numpy(axes[0].images[0].get_array().data)
    assert torch.allclose(shown.double(), attention / attention.amax(dim=-1, keepdim=True))


def test_it_says_when_it_shows_less_than_all(trace: Trace) -> None:
    assert "48 of 64" in trace.plot().get_suptitle()
    assert trace.plot(length=100).get_suptitle() == ""


def test_more_heads_than_fit_a_row() -> None:
    model = sih.Transformer(num_states=3, length=8, heads=(4, 3), dim=8, qk_dim=4)
    axes = model.trace(torch.zeros(1, 8, dtype=torch.int64)).plot().axes
    assert sum(ax.get_visible() for ax in axes) == 7 + 1


@pytest.mark.parametrize("sequence", [2, -3])
def test_a_sequence_that_is_not_there(trace: Trace, sequence: int) -> None:
    with pytest.raises(ValueError, match="sequence is a row of the batch, 0 to 1"):
        trace.plot(sequence=sequence)
