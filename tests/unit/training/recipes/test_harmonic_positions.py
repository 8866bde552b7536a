from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.small_configs import small

import sih
from sih.training.presets import preset
from sih.training.recipes.harmonic_positions import harmonics
from sih.training.trainer import Trainer


def test_shorter_sequences_come_first_and_leave_harmonic_positions_alone() -> None:
    config = small(init="harmonic", max_period=4, dim=12, shorter=((2, 4), (4, 6)))
    trainer = Trainer(config)
    before = trainer.state()["model/position"]
    for _ in range(4):
        assert trainer.advance().loss is not None
    assert torch.equal(trainer.state()["model/position"], before)
    trainer.advance()
    assert not torch.equal(trainer.state()["model/position"], before)


def test_harmonics_know_residues() -> None:
    """1[i - j = 0 mod n] - 1/n is a bilinear form of the rows: its projection on such forms is itself."""
    F = harmonics(30, 5)
    assert F.square().sum(dim=1).tolist() == pytest.approx([9.0] * 30)
    i = torch.arange(30)
    inverse = torch.linalg.pinv(F)
    for n in (2, 3, 4, 5):
        wanted = ((i[:, None] - i) % n == 0).double() - 1 / n
        assert (F @ (inverse @ wanted @ inverse.T) @ F.T - wanted).abs().max() < 1e-9
    wanted = ((i[:, None] - i) % 7 == 0).double()
    assert (F @ (inverse @ wanted @ inverse.T) @ F.T - wanted).abs().max() > 0.1


def test_rows_of_tokens_and_positions_are_as_long_as_if_they_were_normal() -> None:
    """Their mean square is 1, whatever coordinates they are restricted to."""
    config = preset("harmonic", heads=(1, 1, 1), length=32, states=200)
    model = Trainer(config).model
    assert isinstance(model, sih.Transformer)
    for rows in (model.token, model.position):
        assert rows.square().sum(dim=1).mean().item() == pytest.approx(model.config.dim, rel=0.1)


def test_while_frozen_each_layer_keeps_to_its_part() -> None:
    config = small(
        init="harmonic", max_period=4, heads=(1, 2, 1), frozen_steps=3, dim=12
    )  # 5 + 3 + 4 coordinates
    trainer = Trainer(config)
    begin = trainer.state()
    assert begin["model/token"][:, :8].abs().max() == 0
    assert begin["model/position"][:, 5:].abs().max() == 0
    assert begin["model/position"].norm(dim=1).tolist() == pytest.approx(
        [math.sqrt(12)] * 12, rel=1e-5
    )
    for _ in range(3):
        trainer.advance()
    frozen = trainer.state()
    assert frozen["model/token"][:, :8].abs().max() == 0
    for outside in (slice(5), slice(8, 12)):
        assert frozen["model/readout"][:, outside].abs().max() == 0
    for name in ("Q", "K"):
        assert frozen[f"model/layers.0.{name}"][:, :5].abs().max() == 0
        assert (frozen[f"model/layers.0.{name}"] != begin[f"model/layers.0.{name}"]).any()
    assert frozen["model/layers.0.V"][:, 5:].abs().max() == 0
    for name in ("Q", "K", "V"):
        assert torch.equal(frozen[f"model/layers.1.{name}"], begin[f"model/layers.1.{name}"])
        assert not torch.equal(frozen[f"model/layers.2.{name}"], begin[f"model/layers.2.{name}"])
    trainer.advance()
    free = trainer.state()
    assert free["model/layers.0.V"][:, 5:].abs().max() > 0
    assert not torch.equal(free["model/layers.1.Q"], begin["model/layers.1.Q"])


def test_while_parts_are_kept_the_layers_between_move_and_read_positions_alone() -> None:
    config = small(
        init="harmonic", max_period=4, heads=(1, 2, 2, 1), parts_steps=3, dim=12
    )  # 5 + 3 + 4 coordinates
    trainer = Trainer(config)
    begin = trainer.state()
    for _ in range(3):
        trainer.advance()
    kept = trainer.state()
    for state in (begin, kept):
        assert state["model/token"][:, :8].abs().max() == 0
        assert state["model/layers.0.Q"][:, :5].abs().max() == 0
        assert state["model/layers.0.V"][:, 5:].abs().max() == 0
        for layer, name in itertools.product((1, 2), ("Q", "K", "V")):
            assert state[f"model/layers.{layer}.{name}"][:, 5:].abs().max() == 0
            assert state[f"model/layers.{layer}.{name}"][:, :5].abs().min() > 0
        assert state["model/layers.3.V"][:, 5:].abs().max() > 0
    for layer, name in itertools.product(range(4), ("Q", "K", "V")):
        assert not torch.equal(
            kept[f"model/layers.{layer}.{name}"], begin[f"model/layers.{layer}.{name}"]
        )
    trainer.advance()
    assert trainer.state()["model/layers.1.V"][:, 5:].abs().max() > 0


def test_parts_are_kept_for_three_tenths_of_the_steps_unless_said_and_for_no_more_than_all() -> (
    None
):
    assert (
        small(init="harmonic", max_period=4, dim=12, steps=9, parts_steps=None).flat()[
            "parts_steps"
        ]
        == 2
    )
    with pytest.raises(ValueError, match="parts_steps is a number of steps, 0 to 9; got 10"):
        small(init="harmonic", max_period=4, dim=12, steps=9, parts_steps=10)


@pytest.mark.parametrize(
    ("name", "word"), [("standard-1.2.3-3.3", "harmonic"), ("standard-1.2.3", "auto")]
)
def test_shipped_models_were_trained_by_its_lengths_and_frozen_steps(name: str, word: str) -> None:
    config = sih.open_run(name).config
    assert preset(word, lags=config.task.lags, steps=config.optimiser.steps).recipe == config.recipe
