"""Types that arguments share: tokens, distributions, matrices, random sources."""

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

Seed = torch.Generator | int
"""A source of random numbers: a generator, or the seed of a new one."""
Tokens = Integer[Tensor, "batch time"] | Integer[np.ndarray, "batch time"]
"""Sequences as users have them: whole numbers of any width, in torch or NumPy."""
TokenTensor = Int[Tensor, "batch time"]
"""Sequences as int64 tensors, which predictors and models pass on."""
Law = Float[Tensor, "batch time state"]
"""The distribution of the next token at every position."""
TransitionMatrix = Float[Tensor, "state state"]
"""A row-stochastic matrix: entry (i, j) is the probability of going from i to j."""
