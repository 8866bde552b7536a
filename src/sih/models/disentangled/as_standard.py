r"""Conversion of a disentangled transformer to a standard one.

Reference: Nichani et al., 2024, cited in the paper's Sec. 3. The standard stream has
the final width d_L, and every layer's outputs have coordinates of their own, still
empty. Then adding is concatenating. With J_m the first m coordinates of d_L,

    E[s] = e_s, F[i] = e_{S+i};   Q^(l,h) = J A^(l,h), K^(l,h) = J, so that Q K^T = A^(l,h) on h^(l-1), 0
    elsewhere; V^(l,h) moves coordinates 0 .. d_{l-1} - 1 to where hhat^(l,h) belongs;   W_O is the same.
"""

from dataclasses import asdict

import torch

from sih.base.errors import check_kind
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer, TransformerConfig


@torch.no_grad()
def to_standard(model: DisentangledTransformer) -> Transformer:
    """Return an attention-only standard transformer with the same output.

    Its width is d_L, with d_QK = d_{L-1}.

    Args:
        model: a disentangled transformer.

    Returns:
        The standard transformer, with the same number of layers and heads.

    >>> import sih
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
    >>> standard, tokens = sih.to_standard(model), torch.tensor([[0, 1, 1, 0, 0]])
    >>> torch.allclose(standard.predict(tokens), model.predict(tokens)), standard.config.dim
    (True, 216)
    """
    check_kind(
        "model",
        model,
        DisentangledTransformer,
        "a disentangled transformer, e.g. sih.construct(task)",
    )
    depth = len(model.config.heads)
    dim, qk_dim = model.stream(depth).dim, model.stream(depth - 1).dim
    config = TransformerConfig(
        **asdict(model.config), dim=dim, qk_dim=qk_dim, mlp_dim=None, activation="relu"
    )
    standard = Transformer.from_config(config).to(model.readout)
    names = model.stream(0)
    standard.token[:, names["token"]].fill_diagonal_(1)
    standard.position[:, names["position"]].fill_diagonal_(1)
    for layer, A in zip(standard.each_layer(), model.A, strict=True):
        heads, read, _ = A.shape
        layer.Q[:, :read, :read] = A
        for head in range(heads):
            written = read * (1 + head)
            layer.K[head, :read, :read].fill_diagonal_(1)
            layer.V[head, :read, written : written + read].fill_diagonal_(1)
    standard.readout.copy_(model.readout)
    return standard
