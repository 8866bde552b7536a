"""Models on disk."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from support.shapes import disentangled_models, standard_models
from torch import Tensor

import sih
from sih.models import Model


@pytest.fixture
def folder(tmp_path: Path, rng: torch.Generator) -> Path:
    sih.save(sih.Transformer(3, 6, 4, 3, (1, 2), rng=rng), tmp_path / "model")
    return tmp_path / "model"


@settings(max_examples=10)
@given(one=disentangled_models(), other=standard_models())
def test_what_was_saved_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    one: tuple[sih.DisentangledTransformer, Tensor],
    other: tuple[sih.Transformer, Tensor],
) -> None:
    path = tmp_path_factory.mktemp("models")
    for model, tokens in (one, other):  # the second replaces the first
        sih.save(model, path)
        again = sih.load(path)
        assert type(again) is type(model)
        assert again.config == model.config
        assert torch.equal(again(tokens), model(tokens))
    names = ["README.md", "config.json", "weights.safetensors", "weights.sha256"]
    assert sorted(file.name for file in path.iterdir()) == names


def test_a_folder_has_a_card_that_runs_and_somebody_elses_stays(
    tmp_path: Path, task: sih.Task
) -> None:
    for model, line in (
        (sih.construct(task), "circuit 'paper' for the lags 1, 2, 3"),
        (sih.Transformer(3, 6), "diagnose"),
    ):
        sih.save(model, tmp_path / "model")  # the second replaces the first
        text = (tmp_path / "model" / "README.md").read_text()
        assert line in text
        (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
        tokens = torch.zeros(1, 4, dtype=torch.int64)
        exec(code.replace("path/to/this/folder", str(tmp_path / "model")), {"tokens": tokens})
    (tmp_path / "model" / "README.md").write_text("mine")
    sih.save(model, tmp_path / "model")
    assert (tmp_path / "model" / "README.md").read_text() == "mine"


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sih.save(sih.DisentangledTransformer(3, 6, heads=(1, 2)), tmp_path / name)
    for file in ("config.json", "weights.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_notes_are_kept_beside_the_weights_and_replaced_with_them(folder: Path) -> None:
    model = sih.load(folder)
    assert model.notes == {}
    model.notes = {"lags": [1, 3], "what": "a test"}
    sih.save(model, folder)
    assert sih.load(folder).notes == model.notes
    (folder / "notes.json").write_text("[]")
    with pytest.raises(ValueError, match=r"notes\.json must hold a JSON object; got list"):
        sih.load(folder)
    model.notes = {}
    sih.save(model, folder)
    assert not (folder / "notes.json").exists()


def test_a_truncated_file_is_refused(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    whole = weights.read_bytes()
    for length in (0, 7, 100, len(whole) - 1):
        weights.write_bytes(whole[:length])
        with pytest.raises(
            ValueError, match=r"weights\.safetensors is damaged or no safetensors file"
        ):
            sih.load(folder)


def test_a_renamed_weight_or_missing_file_is_refused(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole.replace(b'"layers.1.Q"', b'"layers.1.X"'))
    with pytest.raises(ValueError, match=r"its checksum is not the one in weights\.sha256"):
        sih.load(folder)
    (folder / "weights.sha256").unlink()
    with pytest.raises(ValueError, match=r"has no weight 'layers\.1\.Q'"):
        sih.load(folder)
    weights.rename(folder / "other.safetensors")
    with pytest.raises(ValueError, match=r"there is no file .*weights\.safetensors"):
        sih.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(
        ValueError, match=r"there is no file .*config\.json; a model's folder holds"
    ):
        sih.load(folder)
    with pytest.raises(
        ValueError, match=r"there is no model .*: it is neither a folder nor a shipped model"
    ):
        sih.load(folder / "nothing")


def test_another_models_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    others: tuple[Model, ...] = (
        sih.Transformer(3, 6, 4, 3, (1, 3)),
        sih.Transformer(3, 6, 4, 3, (1, 2), dtype=torch.float64),
        sih.Transformer(3, 6, 4, 3, (1, 2), temperature=1.0),
        sih.Transformer(3, 6, 4, 3, (1, 2, 1)),
        sih.DisentangledTransformer(3, 6, (1, 2)),
    )
    for number, other in enumerate(others):
        sih.save(other, tmp_path / str(number))
        foreign = (tmp_path / str(number) / "weights.safetensors").read_bytes()
        (folder / "weights.safetensors").write_bytes(foreign)
        with pytest.raises(ValueError, match=r"weights\.safetensors"):
            sih.load(folder)


def test_a_pickle_is_refused(folder: Path) -> None:
    torch.save({"token": torch.zeros(3)}, folder / "weights.safetensors")
    with pytest.raises(ValueError, match="damaged or no safetensors file"):
        sih.load(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a JSON file"),
        ("[1]", r"^[^ ]*config\.json must hold a JSON object; got list"),
        (
            "{}",
            "model must be one of standard, disentangled, relative, relative-disentangled; got None",
        ),
        ('{"model": "mamba"}', "got 'mamba'"),
        (
            '{"model": "disentangled", "num_states": 3}',
            "disentangled model's entry 'dtype' is missing",
        ),
    ],
)
def test_a_foreign_configuration_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        sih.load(folder)


@pytest.mark.parametrize(
    "change", [{"dim": "4"}, {"heads": 3}, {"length": -1}, {"colour": "red"}, {"dtype": "int8"}]
)
def test_a_wrong_entry_is_refused(folder: Path, change: dict[str, object]) -> None:
    """In one line; which one says it, the type checker of the tests or the configuration's own checks, may differ."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ValueError, match=r"config\.json: "):
        sih.load(folder)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = sih.Transformer(3, 6, 4, 3, (1,))
    with torch.no_grad():
        model.readout[0, 0] = torch.nan
    sih.save(model, tmp_path)
    with pytest.raises(ValueError, match="'readout' holds numbers that are not finite"):
        sih.load(tmp_path)


def test_a_failed_save_leaves_the_file_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(ValueError, match="a model is saved as a folder"):
        sih.save(sih.Transformer(3, 6), tmp_path / "model")
    assert (tmp_path / "model").read_text() == "mine"


def test_a_converted_model_is_saved_as_it_is(tmp_path: Path, rng: torch.Generator) -> None:
    model = sih.Transformer(3, 6, 4, 3, (1, 2), rng=rng).double()
    sih.save(model, tmp_path)
    tokens = torch.tensor([[0, 1, 2, 1]])
    assert torch.equal(sih.load(tmp_path)(tokens), model(tokens))


def test_half_precision_is_half_the_size_and_comes_back_in_the_models_type(
    tmp_path: Path, rng: torch.Generator
) -> None:
    model = sih.DisentangledTransformer(3, 40, (1, 1), rng=rng)
    sih.save(model, tmp_path / "whole")
    sih.save(model, tmp_path / "half", stored="float16")
    whole, half = (
        (tmp_path / name / "weights.safetensors").stat().st_size for name in ("whole", "half")
    )
    assert half < 0.55 * whole
    found = sih.load(tmp_path / "half")
    for weight, kept in zip(model.parameters(), found.parameters(), strict=True):
        assert kept.dtype == torch.float32
        assert torch.equal(kept, weight.detach().half().float())
    assert found.config == model.config


def test_half_precision_must_hold_the_weights(tmp_path: Path, rng: torch.Generator) -> None:
    model = sih.DisentangledTransformer(3, 4, (1,), rng=rng)
    with pytest.raises(ValueError, match=r"stored must be one of float32, float16; got 'int8'"):
        sih.save(model, tmp_path / "model", stored="int8")
    with torch.no_grad():
        model.readout[0, 0] = 1e5
    with pytest.raises(ValueError, match="too large for float16"):
        sih.save(model, tmp_path / "model", stored="float16")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"heads": [1] * 40},
        {"heads": [1, 1_000_000, 1]},
        {"heads": [1] * 20_000},
        {"length": 10**6},
        {"num_states": 10**9},
    ],
    ids=lambda change: f"{change!s:.30}",
)
def test_a_small_file_that_asks_for_a_huge_model_builds_nothing(
    change: dict[str, object], tmp_path: Path
) -> None:
    sih.save(sih.DisentangledTransformer(3, 6, (1, 2)), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(
        ValueError, match=r"config\.json: it asks for .* weights, weights\.safetensors holds 891"
    ):
        sih.load(tmp_path / "m")


@pytest.mark.parametrize(
    "model", [sih.Transformer(3, 6, 4, 3, (1, 2), 5), sih.DisentangledTransformer(3, 6, (1, 2, 1))]
)
def test_weights_are_counted_without_making_them(model: Model) -> None:
    assert model.count_weights(model.config) == sum(weight.numel() for weight in model.parameters())


def test_a_model_that_no_machine_holds_is_refused_before_it_is_made() -> None:
    with pytest.raises(
        ValueError,
        match=r"a model with heads \(1, 1, .* would take about 10\^\d+ GB; .* GB are free",
    ):
        sih.DisentangledTransformer(3, 6, (1,) * 40)
