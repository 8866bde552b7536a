"""What a layer with relative positions holds, by its word for offsets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sih.base.errors import FieldError
from sih.base.record import make
from sih.models.relative.relative_layer import RelativeLayer, offsets_by_layer
from sih.models.relative.relative_transformer import RelativeShape


@pytest.mark.parametrize(
    ("word", "names"),
    [("both", "Q K V aK aV"), ("keys", "Q K V aK"), ("none", "Q K V"), ("rotary", "Q K V")],
)
def test_what_is_not_used_is_absent(word: str, names: str) -> None:
    layer = RelativeLayer(2, 6, 4, 3, word, torch.float64)
    weights = dict(layer.named_parameters())
    assert list(weights) == names.split()
    shapes = {"Q": (2, 6, 4), "K": (2, 6, 4), "V": (2, 6, 6), "aK": (2, 4, 4), "aV": (2, 4, 6)}
    assert {name: weight.shape for name, weight in weights.items()} == {
        name: shapes[name] for name in weights
    }
    assert layer.rotary == (word == "rotary")


def test_a_word_for_each_layer() -> None:
    assert offsets_by_layer(("keys",), 2) == ("keys", "keys")
    assert offsets_by_layer(("both", "none"), 2) == ("both", "none")


@pytest.mark.parametrize("wrong", [None, 3, [], ("both", "both", "both"), "all"])
def test_anything_else_is_refused_in_one_line(wrong: Any) -> None:
    with pytest.raises(FieldError, match="offsets") as raised:
        make(RelativeShape, {"heads": (1, 1), "offsets": wrong})
    assert len(str(raised.value).splitlines()) == 1
