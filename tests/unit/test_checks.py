from __future__ import annotations

import pickle

import pytest
import torch

from sih.checks import FieldError, check_choice, check_heads, check_sizes, check_tokens


def test_an_error_knows_its_field() -> None:
    with pytest.raises(FieldError, match=r"dim must be a whole number, at least 1; got 0") as caught:
        check_sizes(length=3, dim=0)
    assert caught.value.field == "dim"
    with pytest.raises(FieldError, match="init must be one of zeros, random; got 'ones'") as caught:
        check_choice("init", "ones", ("zeros", "random"))
    assert caught.value.field == "init"
    with pytest.raises(FieldError, match="number of heads of each layer") as caught:
        check_heads(())
    assert caught.value.field == "heads"
    with pytest.raises(FieldError, match="tokens must be states 0 to 1; got 2") as caught:
        check_tokens(torch.tensor([[0, 2]]), 2, 8)
    assert caught.value.field == "tokens"


def test_an_error_keeps_its_field_between_processes() -> None:
    passed = pickle.loads(pickle.dumps(FieldError("lam", "lam is positive; got 0")))
    assert (type(passed), passed.field, str(passed)) == (FieldError, "lam", "lam is positive; got 0")
