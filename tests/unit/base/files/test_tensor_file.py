from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sih.base.files import read_header, read_tensors, tensor_bytes
from sih.base.files.tensor_file import digest_of_tensors, write_summed


def test_round_trip(tmp_path: Path) -> None:
    tensors = {
        "a": torch.arange(6.0).view(2, 3).T,
        "b": torch.tensor([1, 2]),
        "c": torch.ones(1, requires_grad=True),
    }
    content = tensor_bytes(tensors, {"note": "β = 1"})
    assert content == tensor_bytes(tensors, {"note": "β = 1"})
    (tmp_path / "a.safetensors").write_bytes(content)
    found, note = read_tensors(tmp_path / "a.safetensors")
    assert note == {"note": "β = 1"}
    assert read_header(tmp_path / "a.safetensors") == (note, {"a": (3, 2), "b": (2,), "c": (1,)})
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_without_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(tensor_bytes({"a": torch.ones(2)}, {}))
    assert read_header(tmp_path / "a.safetensors") == ({}, {"a": (2,)})


def test_what_cannot_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for read in (read_tensors, read_header):
        path.unlink(missing_ok=True)
        with pytest.raises(ValueError, match=r"there is no file .*a\.safetensors"):
            read(path)
        path.write_bytes(tensor_bytes({"a": torch.ones(2)}, {})[:-1])
        with pytest.raises(
            ValueError, match=r"a\.safetensors is damaged or no safetensors file: "
        ) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_not_the_one_whose_checksum_stands_beside_it_is_damaged(
    tmp_path: Path,
) -> None:
    path, content = tmp_path / "weights.safetensors", tensor_bytes({"a": torch.ones(4)}, {})
    write_summed(path, content)
    assert (tmp_path / "weights.sha256").read_text().split()[1] == "weights.safetensors"
    assert torch.equal(read_tensors(path)[0]["a"], torch.ones(4))
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
    with pytest.raises(ValueError, match=r"weights\.safetensors is damaged.*checksum"):
        read_tensors(path)
    (tmp_path / "weights.sha256").unlink()
    read_tensors(path)  # as a file from before there were checksums


def test_a_digest_changes_with_every_part(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(2), "b": torch.tensor(1)}
    others = [
        ({"a": torch.zeros(2), "b": torch.tensor(2)}, [0]),
        ({"a": torch.zeros(2), "c": torch.tensor(1)}, [0]),
        ({"a": torch.zeros(2, 1), "b": torch.tensor(1)}, [0]),
        (tensors, [1]),
    ]
    found = {digest_of_tensors(*one) for one in [(tensors, [0]), *others]}
    assert len(found) == 5
    assert digest_of_tensors(dict(reversed(tensors.items())), [0]) in found
