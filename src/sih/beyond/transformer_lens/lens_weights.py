r"""Translation of weights between the standard transformer and TransformerLens' native
one, without TransformerLens.

TransformerLens has one number of heads, and one width for queries, keys and values:

- layers with fewer heads get heads of zeros, which attend uniformly to the past and
  write nothing;
- the width is the larger of d_QK and the number of columns of V that are not zero. W_V
  has those columns, W_O puts each in its place, and queries and keys are padded with
  zeros;
- scores are divided by the temperature, as ours. It refuses to divide by 1: then Q is
  halved and the scores are divided by 1/2, which is exact;
- there is no normalisation, and biases are zero.

Back: $V = W_V W_O$. Heads that write nothing are omitted, and so are columns that are
zero in Q or in K. Our models have no biases. They become weights from one more
coordinate of the stream, 1 everywhere. The rows of attention sum to 1, so V copies this
coordinate unchanged. For the MLP's second bias a hidden unit reads it, with value
$\sigma(1)$.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError
from sih.models.standard.layer import ACTIVATIONS
from sih.models.standard.transformer import Transformer

FIXED: dict[str, Any] = {
    "normalization_type": None,
    "positional_embedding_type": "standard",
    "attention_dir": "causal",
    "gated_mlp": False,
    "final_rms": False,
}
"""Settings of a TransformerLens model that can be converted."""
INSTEAD_OF_1 = 0.5
"""Divisor of scores for temperature 1. No width of heads has it as its root."""


def lens_config(model: Transformer) -> dict[str, Any]:
    """Return the entries of TransformerLens' configuration that describe the model."""
    config = model.config
    written = max(len(_columns(V)) for layer in model.each_layer() for V in layer.V)
    return {
        "n_layers": len(config.heads),
        "n_heads": max(config.heads),
        "d_model": config.dim,
        "d_head": max(config.qk_dim, written),
        "d_mlp": config.mlp_dim or 1,
        "n_ctx": config.length,
        "d_vocab": config.num_states,
        "d_vocab_out": config.num_states,
        "attn_only": config.mlp_dim is None,
        "act_fn": config.activation,
        "use_attn_scale": True,
        "attn_scale": INSTEAD_OF_1 if config.temperature == 1 else config.temperature,
        "init_weights": False,
        **FIXED,
    }


@torch.no_grad()
def lens_weights(model: Transformer) -> dict[str, Tensor]:
    """Return the model's weights under TransformerLens' names and in its shapes,
    (outputs, inputs).
    """
    config = lens_config(model)
    heads, width, dim = config["n_heads"], config["d_head"], config["d_model"]
    found: dict[str, Tensor] = {
        "embed.weight": model.token,
        "pos_embed.weight": model.position,
        "unembed.weight": model.readout,
    }
    for number, layer in enumerate(model.each_layer()):
        q, k, v, o = (model.token.new_zeros(heads, width, dim) for _ in range(4))
        for head, (Q, K, V) in enumerate(zip(layer.Q, layer.K, layer.V, strict=True)):
            q[head, : Q.shape[1]] = INSTEAD_OF_1 * Q.T if model.config.temperature == 1 else Q.T
            k[head, : K.shape[1]] = K.T
            kept = _columns(V)
            v[head, : len(kept)] = V[:, kept].T
            o[head, range(len(kept)), kept] = 1
        linear = {
            f"attn.{name}": part.flatten(0, 1) for name, part in zip("qkv", (q, k, v), strict=True)
        }
        linear["attn.o"] = o.flatten(0, 1).T
        if layer.W1 is not None and layer.W2 is not None:
            linear |= {"mlp.in": layer.W1.T, "mlp.out": layer.W2}
        for name, weight in linear.items():
            found[f"blocks.{number}.{name}.weight"] = weight
            found[f"blocks.{number}.{name}.bias"] = weight.new_zeros(len(weight))
    return {name: weight.detach().clone() for name, weight in found.items()}


@torch.no_grad()
def from_lens_weights(
    config: Mapping[str, Any], weights: Mapping[str, Tensor], readout: str = "logit"
) -> Transformer:
    """Return the standard transformer for a configuration and weights of
    TransformerLens; raise an error if there is none.
    """
    _check(config)
    heads, width, activation = config["n_heads"], config["d_head"], config.get("act_fn", "relu")
    scale = config.get("attn_scale", -1.0)
    scale = scale if config.get("use_attn_scale", True) and scale > 0 else math.sqrt(width)
    biased = any(weight.any() for name, weight in weights.items() if name.endswith(".bias"))

    def row_map(name: str) -> Float[Tensor, "inputs outputs"]:
        """Return a linear map as a matrix for rows of inputs, with its bias as the last
        row if there are any.
        """
        weight = weights[f"{name}.weight"].detach().cpu()
        bias = (
            weights[f"{name}.bias"].detach().cpu()
            if f"{name}.bias" in weights
            else weight.new_zeros(len(weight))
        )
        return torch.cat([weight.T, bias[None]]) if biased else weight.T

    layers, mlps = [], []
    for stem in (f"blocks.{number}" for number in range(config["n_layers"])):
        Q, K, V = (
            row_map(f"{stem}.attn.{name}").unflatten(1, (heads, width)).transpose(0, 1)
            for name in "qkv"
        )
        out = row_map(f"{stem}.attn.o")
        V = V @ out[: heads * width].unflatten(0, (heads, width))
        if biased:
            V[0, -1] += out[-1]
        Q = Q / scale if scale == INSTEAD_OF_1 else Q
        live = [head for head in range(heads) if V[head].any()] or [0]
        layers.append([(*_shared(Q[head], K[head]), V[head]) for head in live])
        if not config.get("attn_only", False):
            first, second = row_map(f"{stem}.mlp.in"), row_map(f"{stem}.mlp.out")
            if biased:
                one = torch.nn.functional.one_hot(torch.tensor(len(first) - 1), len(first)).to(
                    first
                )
                first = torch.cat([first, one[:, None]], dim=1)
                second[-1] /= ACTIVATIONS[activation](torch.ones(()).to(second))
            mlps.append((first, second))

    token, position = (weights[f"{name}.weight"].detach().cpu() for name in ("embed", "pos_embed"))
    widest = max(Q.shape[1] for layer in layers for Q, _, _ in layer)
    hidden = mlps[0][0].shape[1] if mlps else None
    model = Transformer(
        num_states=len(token),
        length=len(position),
        dim=token.shape[1] + biased,
        qk_dim=widest,
        heads=[len(layer) for layer in layers],
        mlp_dim=hidden,
        activation=activation if mlps else "relu",
        temperature=1.0 if scale == INSTEAD_OF_1 else float(scale),
        readout=readout,
        dtype=token.dtype,
        init="zeros",
    )
    _put(model.token, token)
    _put(model.position, position)
    _put(model.readout, row_map("unembed").T)
    if biased:
        model.position[:, -1] = 1
    for written, layer in zip(model.each_layer(), layers, strict=True):
        for head, parts in enumerate(layer):
            for weight, part in zip((written.Q, written.K, written.V), parts, strict=True):
                _put(weight[head], part)
    for written, (first, second) in zip(model.each_layer(), mlps, strict=False):
        assert written.W1 is not None
        assert written.W2 is not None
        _put(written.W1, first)
        _put(written.W2, second.T)
    return model


def _shared(Q: Tensor, K: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q and K without the columns that are zero in one of them, but keep one."""
    both = (Q != 0).any(dim=0) & (K != 0).any(dim=0)
    both[0] |= not both.any()
    return Q[:, both], K[:, both]


def _columns(V: Float[Tensor, "inputs outputs"]) -> list[int]:
    """Return the columns that are not zero."""
    return [int(column) for column in (V != 0).any(dim=0).nonzero().flatten()]


def _put(weight: Tensor, part: Tensor) -> None:
    """Write a matrix into the first rows and columns of a larger one of zeros."""
    weight[tuple(slice(size) for size in part.shape)] = part


def _check(config: Mapping[str, Any]) -> None:
    """Raise a FieldError unless a TransformerLens model of this configuration can be
    converted.
    """
    allowed: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in FIXED.items()}
    allowed |= {
        "n_key_value_heads": (None, config["n_heads"]),
        "d_vocab_out": (-1, config["d_vocab"]),
    }
    allowed |= {"attn_scores_soft_cap": (-1.0, 0.0), "output_logits_soft_cap": (-1.0, 0.0)}
    if not config.get("attn_only", False):
        allowed["act_fn"] = tuple(ACTIVATIONS)
    if config.get("architecture") not in (None, "TransformerLensNative"):
        raise FieldError(
            "source",
            f"only models of TransformerBridge.boot_native fit; got {config['architecture']}",
        )
    for name, values in allowed.items():
        if name in config and config[name] not in values:
            wanted = " or ".join(map(repr, values))
            raise FieldError(
                "source", f"a model that fits has {name} {wanted}; this one has {config[name]!r}"
            )
