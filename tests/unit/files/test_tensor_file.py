from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sih.files import read_note, read_tensors, tensor_bytes


def test_round_trip(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).view(2, 3).T, "b": torch.tensor([1, 2]), "c": torch.ones(1, requires_grad=True)}
    content = tensor_bytes(tensors, {"note": "β = 1"})
    assert content == tensor_bytes(tensors, {"note": "β = 1"})
    (tmp_path / "a.safetensors").write_bytes(content)
    found, note = read_tensors(tmp_path / "a.safetensors")
    assert note == read_note(tmp_path / "a.safetensors") == {"note": "β = 1"}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_without_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(tensor_bytes({"a": torch.ones(2)}, {}))
    assert read_note(tmp_path / "a.safetensors") == {}


def test_what_cannot_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for read in (read_tensors, read_note):
        path.unlink(missing_ok=True)
        with pytest.raises(ValueError, match=r"there is no file .*a\.safetensors"):
            read(path)
        path.write_bytes(tensor_bytes({"a": torch.ones(2)}, {})[:-1])
        with pytest.raises(ValueError, match=r"a\.safetensors is damaged or no safetensors file: ") as caught:
            read(path)
        assert "\n" not in str(caught.value)
