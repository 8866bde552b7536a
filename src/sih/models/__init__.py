"""The kinds of model (paper, Sec. 3). Each is a folder, and a line here."""

from sih.models.base import Model as Model
from sih.models.base import ModelShape as ModelShape
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.models.relative.relative_transformer import RelativeTransformer
from sih.models.standard.transformer import Transformer

CLASSES: tuple[type[Model], ...] = (
    Transformer,
    DisentangledTransformer,
    RelativeTransformer,
    DisentangledRelativeTransformer,
)
KINDS: dict[str, type[Model]] = {kind.Shape.kind: kind for kind in CLASSES}
"""Every kind of model by its name. There is no other table of kinds."""
