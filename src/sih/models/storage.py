"""A model on disk: a folder with `config.json` and `weights.safetensors`. Nothing in it is ever executed.

The weights' file holds the configuration it was written with, so that a file from another model is
noticed. Both files are written whole or not at all, the configuration last: a folder with one is complete.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch

from sih.checks import check_choice, dtype_name
from sih.files import atomic_write
from sih.models import KINDS, Model

CONFIG, WEIGHTS = "config.json", "weights.safetensors"


def save(model: Model, path: str | Path, stored: str | None = None) -> None:
    """Write the model to the folder `path`, made if need be; a model already there is replaced.

    `stored="float16"` writes rounded weights, in half of float32's space; `load` gives the model's own type again.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"a model is saved as a folder; {folder} is a file")
    config = config_of(model)
    content = weights_file(model, stored)
    (folder / CONFIG).unlink(missing_ok=True)  # no folder ever pairs an old configuration with new weights
    with atomic_write(folder / WEIGHTS) as file:
        file.write(content)
    with atomic_write(folder / CONFIG) as file:
        file.write((json.dumps(config, indent=2) + "\n").encode())


def weights_file(model: Model, stored: str | None = None) -> bytes:
    """The content of `weights.safetensors`; `stored` is the type of the numbers in it, the model's own if None."""
    from safetensors.torch import save as to_bytes

    own = dtype_name(_dtype(model))
    check_choice("stored", stored or own, (own, "float16"))
    weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    if stored == "float16":
        weights = {name: weight.to(torch.float16) for name, weight in weights.items()}
        for name, weight in weights.items():
            if not torch.isfinite(weight).all():
                raise ValueError(f"weight {name!r} is too large for float16; store the model in its own type")
    # One entry: safetensors writes several in an order that changes from process to process.
    return to_bytes(weights, metadata={"config": json.dumps(config_of(model), sort_keys=True)})


def load(path: str | Path) -> Model:
    """The model in the folder `path`, saved or trained there; on the CPU."""
    folder = Path(path)
    config = _read_config(folder / CONFIG)
    if "steps" in config:  # a training run's; the model's own configuration is in its weights' file
        config = _written_for(folder / WEIGHTS)
    model = model_from(config, folder / CONFIG)
    load_weights(model, folder / WEIGHTS)
    return model


def config_of(model: Model) -> dict[str, Any]:
    """Plain numbers, words and lists: what `model_from` needs to make the model again."""
    entries = {**dataclasses.asdict(model.config), "heads": list(model.config.heads)}
    return {"model": model.Shape.kind, **entries, "dtype": dtype_name(_dtype(model))}


def model_from(config: dict[str, Any], source: str | Path = "the configuration") -> Model:
    """A model of this configuration with all weights zero; `source` is named in errors."""
    entries = dict(config)
    kind = entries.pop("model", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{source}: model must be one of {', '.join(KINDS)}; got {kind!r}")
    expected = {field.name for field in dataclasses.fields(KINDS[kind].Config)}
    if expected != entries.keys():
        name = min(expected ^ entries.keys())
        raise ValueError(f"{source}: a {kind} model's entry {name!r} is {'missing' if name in expected else 'unknown'}")
    if isinstance(entries["heads"], list):  # JSON has no tuples
        entries["heads"] = tuple(entries["heads"])
    try:
        return KINDS[kind].from_config(KINDS[kind].Config(**entries))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {str(error).splitlines()[0]}") from error


def load_weights(model: Model, path: str | Path) -> None:
    """Fill the model with the weights in a safetensors file, which must fit it; they may be stored in float16."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    wanted = model.state_dict()
    try:
        with safe_open(path, framework="pt") as file:
            written_for = (file.metadata() or {}).get("config")
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {str(error).splitlines()[0]}") from error
    for name, weight in wanted.items():
        if name not in found:
            raise ValueError(f"{path} has no weight {name!r}; it holds another model's weights")
        if found[name].shape != weight.shape or found[name].dtype not in (weight.dtype, torch.float16):
            raise ValueError(
                f"{path}: weight {name!r} should be {weight.dtype} of shape {tuple(weight.shape)}; "
                f"it is {found[name].dtype} of shape {tuple(found[name].shape)}"
            )
        if not torch.isfinite(found[name]).all():
            raise ValueError(f"{path}: weight {name!r} holds numbers that are not finite")
    extra = sorted(found.keys() - wanted.keys())
    if extra:
        raise ValueError(f"{path} holds a weight {extra[0]!r} that the model does not have")
    if written_for is not None and json.loads(written_for) != config_of(model):
        raise ValueError(f"{path} was written for another configuration than the {CONFIG} beside it")
    model.load_state_dict(found)


def _dtype(model: Model) -> torch.dtype:
    """The type of the weights, to which the model may have been converted since it was made."""
    return next(model.parameters()).dtype


def _written_for(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            config: dict[str, Any] = json.loads(file.metadata()["config"])
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}: the run is not finished") from None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or no model's weights: {str(error).splitlines()[0]}") from error
    return config


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; a model's folder holds {CONFIG} and {WEIGHTS}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a JSON file: {str(error).splitlines()[0]}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(config).__name__}")
    return config
