"""Conversion of models to TransformerLens and back, in memory or as a folder. Nothing
else imports TransformerLens.
"""

from pathlib import Path
from typing import Any

from sih.base.errors import INSTALL, FieldError, check_choice, dtype_name
from sih.base.files import atomic_folder, read_json, read_tensors, reading, tensor_bytes, write_json
from sih.base.files.tensor_file import sum_file, write_summed
from sih.beyond.transformer_lens.lens_weights import from_lens_weights, lens_config, lens_weights
from sih.models import Model
from sih.models.disentangled.as_standard import to_standard
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer

CONFIG, WEIGHTS = "config.json", "weights.safetensors"


def to_transformer_lens(model: Model) -> Any:
    """Return a TransformerLens model (`TransformerBridge`) with the same output and
    attention.

    This needs the extra `lens`. A disentangled model is first converted to a standard
    one. The bridge's output is `model(tokens)`: logits, unless the model's readout is
    "probability".

    Args:
        model: A model of `sih`.

    Returns:
        The bridge, with (batch, time) tokens as input and (batch, time, state) outputs.

    >>> import sih
    >>> bridge = sih.to_transformer_lens(sih.load("standard-1.2.3"))  # doctest: +SKIP
    >>> logits, cache = bridge.run_with_cache(tokens)  # doctest: +SKIP
    """
    standard = _standard(model)
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError:
        command = INSTALL.format(extra="lens")
        raise ValueError(
            f"TransformerLens is missing, it comes with the extra lens; in a clone: {command}"
        ) from None
    weights = lens_weights(standard)
    bridge = TransformerBridge.boot_native(lens_config(standard), dtype=standard.readout.dtype)
    done = bridge.load_state_dict(weights, strict=False)
    if done.unexpected_keys or not weights.keys() <= bridge.state_dict().keys():
        raise ValueError(
            f"this version of TransformerLens has no weight {done.unexpected_keys}; 4.3 has"
        )
    return bridge.eval()


def from_transformer_lens(source: Any, *, readout: str | None = None) -> Transformer:
    """Return a standard transformer with the same output as a TransformerLens model, or
    as an exported folder.

    It fits if `TransformerBridge.boot_native` made it without normalisation, with
    learned positions, and with an activation function that `sih` has.

    Args:
        source: A TransformerLens model, or a folder of `sih export`.
        readout: Kind of the model's output, "logit" (default) or "probability". A
            folder stores it.

    Returns:
        A standard transformer of `sih`.

    >>> import sih, tempfile, torch
    >>> model, tokens = sih.Transformer(num_states=2, length=8, dim=8, qk_dim=4), torch.tensor([[0, 1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_transformer_lens(model, folder)
    ...     torch.allclose(sih.from_transformer_lens(folder).predict(tokens), model.predict(tokens), atol=1e-6)
    True
    """
    if readout is not None:
        check_choice("readout", readout, ("logit", "probability"))
    if isinstance(source, str | Path):
        path = Path(source) / CONFIG
        missing = f"there is no file {path}; `sih export MODEL --to transformer-lens --out {source}` writes it"
        with reading(path, "does not describe an exported model", missing=missing):
            found = read_json(path)
            config, own = found["transformer_lens"], found["readout"]
        if readout not in (None, own):
            raise FieldError(
                "readout", f"the readout of the model in {source} is {own!r}; got {readout!r}"
            )
        with reading(path.parent / WEIGHTS, f"does not fit the {CONFIG} beside it"):
            return from_lens_weights(config, read_tensors(path.parent / WEIGHTS)[0], own)
    if not hasattr(source, "cfg") or not hasattr(source, "state_dict"):
        raise FieldError(
            "source",
            f"source is a TransformerBridge or an exported folder; got {type(source).__name__}",
        )
    return from_lens_weights(dict(source.cfg.to_dict()), source.state_dict(), readout or "logit")


def export_transformer_lens(model: Model, folder: str | Path) -> None:
    """Write the model as a configuration and weights for TransformerLens, all or
    nothing. TransformerLens is not needed.
    """
    standard = _standard(model)
    described = {
        "transformer_lens": lens_config(standard),
        "dtype": dtype_name(standard.readout.dtype),
    }
    weights = tensor_bytes(lens_weights(standard), {"format": "pt"})
    with atomic_folder(folder, (CONFIG, WEIGHTS, sum_file(WEIGHTS).name)) as new:
        write_summed(new / WEIGHTS, weights)
        write_json(new / CONFIG, {**described, "readout": standard.config.readout}, indent=2)


def _standard(model: Model) -> Transformer:
    if isinstance(model, DisentangledTransformer):
        model = to_standard(model)
    if not isinstance(model, Transformer):
        known = "only standard and disentangled models can be exported, whose positions TransformerLens knows"
        raise FieldError("model", f"{known}; got {type(model).__name__}")
    return model
