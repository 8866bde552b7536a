"""What needs no TransformerLens. tests/tools has the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

import sih
from sih.beyond.transformer_lens.lens import export_transformer_lens, from_transformer_lens


def test_a_folder_comes_back(tmp_path: Path, rng: torch.Generator) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), mlp_dim=4, readout="probability", rng=rng)
    export_transformer_lens(model, tmp_path / "lens")
    again = from_transformer_lens(tmp_path / "lens")
    assert again.config == model.config
    assert from_transformer_lens(tmp_path / "lens", readout="probability").config == model.config
    with pytest.raises(
        ValueError, match=r"the readout of the model in .*lens is 'probability'; got 'logit'"
    ):
        from_transformer_lens(tmp_path / "lens", readout="logit")
    assert all(
        torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True)
    )
    first = (tmp_path / "lens" / "weights.safetensors").read_bytes()
    export_transformer_lens(again, str(tmp_path / "lens"))
    assert (tmp_path / "lens" / "weights.safetensors").read_bytes() == first


def test_wrong_folders_and_objects_are_refused_in_one_line(
    tmp_path: Path, rng: torch.Generator
) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), rng=rng)
    with pytest.raises(ValueError, match="there is no file"):
        from_transformer_lens(tmp_path)
    sih.save(model, tmp_path / "ours")
    with pytest.raises(ValueError, match="does not describe an exported model"):
        from_transformer_lens(tmp_path / "ours")
    with pytest.raises(ValueError, match="got Transformer"):
        from_transformer_lens(model)
    export_transformer_lens(model, tmp_path / "lens")
    config = json.loads((tmp_path / "lens" / "config.json").read_text())
    for entry, value in (("n_heads", 3), ("n_layers", 3)):
        config["transformer_lens"][entry] = value
        (tmp_path / "lens" / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match="does not fit the config") as error:
            from_transformer_lens(tmp_path / "lens")
        assert "\n" not in str(error.value)


def test_without_transformer_lens_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, rng: torch.Generator
) -> None:
    monkeypatch.setitem(sys.modules, "transformer_lens", None)
    with pytest.raises(ValueError, match=r"in a clone: pip install '\.\[lens\]'"):
        sih.to_transformer_lens(sih.Transformer(3, 6, 4, 3, (2, 1), rng=rng))


def test_an_export_that_fails_leaves_the_old_one(
    tmp_path: Path, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), rng=rng)
    export_transformer_lens(model, tmp_path / "lens")
    before = {path.name: path.read_bytes() for path in (tmp_path / "lens").iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sih.beyond.transformer_lens.lens.write_json", full)
    with pytest.raises(ValueError, match="No space left"):
        export_transformer_lens(sih.Transformer(3, 6, 4, 3, (1, 1), rng=rng), tmp_path / "lens")
    assert {path.name: path.read_bytes() for path in (tmp_path / "lens").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["lens"]
    flipped = bytearray(before["weights.safetensors"])
    flipped[-1] ^= 1
    (tmp_path / "lens" / "weights.safetensors").write_bytes(flipped)
    with pytest.raises(ValueError, match="checksum"):
        from_transformer_lens(tmp_path / "lens")
