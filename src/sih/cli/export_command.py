"""`sih export`: a model in another library's terms, and back."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from sih.beyond.transformer_lens.lens import export_transformer_lens, from_transformer_lens
from sih.models.storage import save
from sih.training.runs.run_store import load


def export(
    model: Annotated[str, tyro.conf.Positional],
    out: Path,
    to: Literal["transformer-lens", "sih"] = "transformer-lens",
) -> None:
    """Write a model for TransformerLens, or one that was written for it as a model of sih again.

    Neither needs TransformerLens. docs/how-to/use-transformerlens.md has the lines that load the folder there.

    Example: sih export standard-1.2.3 --to transformer-lens --out lens

    Args:
        model: A folder of `sih train`, `sih construct` or `sih.save`, or a shipped model's name; with --to sih, a
            folder that this command wrote.
        out: The folder to write: config.json and weights.safetensors.
        to: transformer-lens, or sih for the way back.
    """
    if Path(model).exists() and out.exists() and out.samefile(model):
        raise ValueError(f"{out} holds the model itself; --out is another folder")
    if to == "sih":
        save(from_transformer_lens(model), out)
    else:
        export_transformer_lens(load(model), out)
    print(f"saved -> {out}")
