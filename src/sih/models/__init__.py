"""Lists the kinds of model (paper, Sec. 3). Each is a folder, and a line here."""

from sih.models.base import Model as Model
from sih.models.base import ModelShape as ModelShape
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer

KINDS: dict[str, type[Model]] = {kind.Shape.kind: kind for kind in (Transformer, DisentangledTransformer)}
"""Every kind of model by its name: the one table of kinds."""
