from __future__ import annotations

import pytest
import torch

import sih


def test_a_pair_of_maps_for_each_head() -> None:
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 2, 3), length=12)
    model = sih.construct(task)
    axes = [ax for ax in model.plot().axes if ax.get_title().startswith("head")]
    assert [ax.get_title() for ax in axes] == [
        f"head {name}" for name in ("1.1", "2.1", "2.2", "2.3", "3.1")
    ]
    shown = torch.from_numpy(axes[0].images[0].get_array().data)  # row s: P[., s], over its sum
    assert torch.allclose(shown, (task.P / task.P.sum(dim=0)).T)


def test_more_heads_than_fit_a_row_and_many_states() -> None:
    model = sih.Transformer(num_states=9, length=60, heads=(4, 3), dim=8, qk_dim=4)
    assert sum(ax.get_visible() for ax in model.plot().axes) == 2 * 7 + 1


def test_a_model_that_does_not_say_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sih.Transformer, "direct_scores", lambda self, head: {})
    with pytest.raises(ValueError, match="has no figure"):
        sih.Transformer(num_states=3, length=8).plot()
