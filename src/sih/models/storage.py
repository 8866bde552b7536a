"""Models on disk: a folder with `config.json` and `weights.safetensors`.

Nothing in it is ever executed. The weights' file also has the configuration it was
written with, which reveals a file from another model. Its checksum is beside it.
`Model.notes` are in `notes.json`, if there are any. `README.md` is a model card, unless
the user has one there. A folder is written whole or not at all.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sih.base.errors import check_choice, check_path, dtype_name
from sih.base.files import (
    atomic_folder,
    read_header,
    read_json,
    read_tensors,
    reading,
    tensor_bytes,
    write_json,
)
from sih.base.files.tensor_file import sum_file, write_summed
from sih.models import KINDS, Model
from sih.models.base import check_model

CONFIG, WEIGHTS, NOTES, CARD = "config.json", "weights.safetensors", "notes.json", "README.md"
LIBRARY = "library_name: selective-induction-heads"
FILES = (CONFIG, WEIGHTS, NOTES, sum_file(WEIGHTS).name)


def save(model: Model, path: str | Path, stored: str | None = None) -> None:
    """Write the model to the folder `path`, and replace a model already there.

    The folder is made if needed. `stored="float16"` writes rounded weights, in half of
    float32's space. `load` returns the model in its own dtype again.

    Args:
        model: a model of any kind.
        path: the folder.
        stored: the dtype on disk, "float16" for example. Default: the model's own.

    >>> import sih, tempfile
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sih.save(model, f"{folder}/circuit")
    ...     sih.load(f"{folder}/circuit").circuit == model.circuit
    True
    """
    check_model(model)
    check_path(path)
    if Path(path).exists() and not Path(path).is_dir():
        raise ValueError(f"cannot save to {path}: it is a file, and a model is saved as a folder")
    with atomic_folder(path, FILES) as folder:
        write_files(model, folder, stored)
        write_card(model, folder, Path(path))


def write_files(model: Model, folder: Path, stored: str | None = None) -> None:
    """Write the model's files into a folder, one after the other."""
    write_summed(folder / WEIGHTS, weights_file(model, stored))
    if model.notes:
        write_json(folder / NOTES, model.notes, indent=2)
    write_json(folder / CONFIG, config_of(model), indent=2)


def write_card(model: Model, folder: Path, replaced: Path) -> None:
    """Write the model card into a folder that replaces another, unless that has a
    user's card.
    """
    there = replaced / CARD
    if not there.exists() or LIBRARY in there.read_text(encoding="utf-8", errors="replace"):
        (folder / CARD).write_text(card(model), encoding="utf-8")


def card(model: Model) -> str:
    """Return the model card: a description, and code that loads, checks and reads the
    model.
    """
    circuit, task = (model.notes.get(name) for name in ("circuit", "task"))
    if isinstance(circuit, dict) and isinstance(task, dict):
        lags = f"the lags {', '.join(map(str, task.get('lags', ())))}"
        of = "a table of parents" if "parents" in task else lags
        what = f"Its weights were written by hand: the circuit {circuit.get('target')!r} for {of}."
        further = "sih.verify(model)  # the circuit and the task are in notes.json; bounds are computed anew"
    else:
        what, further = (
            "It was trained, or is to be.",
            "# sih.diagnose(task, tokens, model=model) says what it has learnt",
        )
    rows = "".join(f"| {name} | {value} |\n" for name, value in config_of(model).items())
    return f"""---
{LIBRARY}
---
# A {model.Shape.kind} transformer for the task of selective induction heads

{what}

```python
import sih
model = sih.load("path/to/this/folder")
law = model.predict(tokens)  # of the next token: (batch, time, state)
{further}
```

| | |
|---|---|
{rows}"""


def weights_file(model: Model, stored: str | None = None) -> bytes:
    """Return the bytes of `weights.safetensors`, in the dtype `stored` or the model's
    own.
    """
    own = _dtype(model)
    check_choice("stored", own if stored is None else stored, (own, "float16"))
    weights = {name: weight.detach() for name, weight in model.state_dict().items()}
    if stored == "float16":
        weights = {name: weight.to(torch.float16) for name, weight in weights.items()}
        for name, weight in weights.items():
            if not torch.isfinite(weight).all():
                raise ValueError(
                    f"weight {name!r} is too large for float16; store the model in its own type"
                )
    return tensor_bytes(weights, {"config": json.dumps(config_of(model), sort_keys=True)})


def load(folder: str | Path) -> Model:
    """Return the model in a folder, saved or trained there, on the CPU."""
    folder = Path(folder)
    config = _read_object(folder / CONFIG)
    if (
        "version" in config or "steps" in config
    ):  # a training run's configuration; the model's is in its weights' file
        missing = f"there is no file {folder / WEIGHTS}: the run is not finished"
        with reading(folder / WEIGHTS, "is damaged or no model's weights", missing=missing):
            config = json.loads(read_header(folder / WEIGHTS)[0]["config"])
    model = model_from(config, folder / CONFIG, read_header(folder / WEIGHTS)[1])
    load_weights(model, folder / WEIGHTS)
    if (folder / NOTES).exists():
        model.notes = _read_object(folder / NOTES)
    return model


def config_of(model: Model) -> dict[str, Any]:
    """Return the model's configuration as plain values, for `model_from`."""
    entries = {
        name: list(v) if isinstance(v, tuple) else v for name, v in model.config.entries().items()
    }
    return {"model": model.Shape.kind, **entries, "dtype": _dtype(model)}


def model_from(
    config: dict[str, Any],
    source: str | Path = "the configuration",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Model:
    """Return a model of this configuration with all weights zero. Errors name the
    `source`.

    Given the `shapes` of weights on disk, it is refused unless the total numbers agree.
    """
    if not isinstance(config, dict):
        raise ValueError(f"{source} must hold a JSON object; got {type(config).__name__}")
    entries = dict(config)
    kind = entries.pop("model", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{source}: model must be one of {', '.join(KINDS)}; got {kind!r}")
    expected = {field.name for field in dataclasses.fields(KINDS[kind].Config) if field.init}
    if expected != entries.keys():
        name = min(expected ^ entries.keys())
        raise ValueError(
            f"{source}: a {kind} model's entry {name!r} is {'missing' if name in expected else 'unknown'}"
        )
    entries = {
        name: tuple(v) if isinstance(v, list) else v for name, v in entries.items()
    }  # JSON has no tuples
    try:
        shape = KINDS[kind].Config(**entries)
        asked, found = (
            KINDS[kind].count_weights(shape),
            sum(math.prod(one) for one in (shapes or {}).values()),
        )
        if shapes is not None and asked not in (0, found):
            raise ValueError(f"it asks for {_count(asked)} weights, {WEIGHTS} holds {found:,}")
        return KINDS[kind].from_config(shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{source}: {str(error).splitlines()[0]}") from error


def load_weights(model: Model, path: str | Path) -> None:
    """Fill the model with the weights in a safetensors file, which must fit it.

    They may be stored in float16.
    """
    wanted = model.state_dict()
    found, note = read_tensors(path)
    for name, weight in wanted.items():
        if name not in found:
            raise ValueError(f"{path} has no weight {name!r}; it holds another model's weights")
        if found[name].shape != weight.shape or found[name].dtype not in (
            weight.dtype,
            torch.float16,
        ):
            right = f"{weight.dtype} of shape {tuple(weight.shape)}"
            got = f"{found[name].dtype} of shape {tuple(found[name].shape)}"
            raise ValueError(f"{path}: weight {name!r} should be {right}; it is {got}")
        if not torch.isfinite(found[name]).all():
            raise ValueError(f"{path}: weight {name!r} holds numbers that are not finite")
    extra = sorted(found.keys() - wanted.keys())
    if extra:
        raise ValueError(f"{path} holds a weight {extra[0]!r} that the model does not have")
    with reading(path, "is damaged"):
        config = json.loads(note["config"]) if "config" in note else config_of(model)
    if config != config_of(model):
        raise ValueError(
            f"{path} was written for another configuration than the {CONFIG} beside it"
        )
    model.load_state_dict(found)


def _dtype(model: Model) -> str:
    """Return the name of the dtype that the weights have now."""
    return dtype_name(next(model.parameters()).dtype)


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{number.bit_length() * 3 // 10}"


def _read_object(path: Path) -> dict[str, Any]:
    missing = f"there is no file {path}; a model's folder holds {CONFIG} and {WEIGHTS}"
    with reading(path, "is not a JSON file", missing=missing):
        value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(value).__name__}")
    return value
