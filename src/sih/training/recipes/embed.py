"""Training from GPT-2's small weights (`sih.training.recipes.gpt2`), with embeddings
N(0, 1).

Embeddings of tokens and positions have a standard deviation of 1, as in the recipe
`uniform`. Every other weight has that of `gpt2`.
"""

from dataclasses import dataclass
from typing import ClassVar

from sih.training.recipes.gpt2 import Gpt2


@dataclass(frozen=True)
class Embed(Gpt2):
    """The recipe with embeddings of standard deviation 1, and other weights as in
    `gpt2`.
    """

    name = "embed"
    embedding_deviation: ClassVar[float] = 1.0
