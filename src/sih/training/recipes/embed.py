"""Training from GPT-2's small weights, but with embeddings from N(0, 1).

Embeddings of tokens and positions have a standard deviation of 1, as in the recipe
`uniform`. Every other weight starts as in `gpt2` (`sih.training.recipes.gpt2`).
"""

from dataclasses import dataclass
from typing import ClassVar

from sih.training.recipes.gpt2 import Gpt2


@dataclass(frozen=True)
class Embed(Gpt2):
    """The recipe `gpt2` with embeddings of standard deviation 1."""

    name = "embed"
    embedding_deviation: ClassVar[float] = 1.0
