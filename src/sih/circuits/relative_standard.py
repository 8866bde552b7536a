r"""A circuit with relative positions as a standard transformer with Q, K and V (Shaw et
al. 2018).

A head scores $q_i \cdot (k_j + a^K_b)$ and adds $\sum_j a_{ij} (v_j + a^V_b)$ to the
stream, $b = \min(i - j, R)$. The stream has the coordinates

    token S+1 | p-tilde K | early 1 | means K | copy S+1

and a width of 2(S+1) + 2K + 1, queries and keys one of max(S, K) + 1, whatever the
length. The last coordinate of queries is 1, since one-hot tokens sum to 1: it takes the
terms that keys and offsets add to every row's scores. In blocks, `token | token` is
layer 1's K, `token | offset` a coordinate of a^K, `l.h/offset` the output of a^V.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from sih.models.base import Model
from sih.models.relative.relative_transformer import RelativeTransformer
from sih.task import Task


@runtime_checkable
class Numbers(Protocol):
    """The numbers behind the weights of a circuit, as in `relative.py`."""

    @property
    def lags(self) -> tuple[int, ...]: ...
    @property
    def lam(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def reach(self) -> int: ...
    @property
    def model_heads(self) -> tuple[int, ...]: ...
    @property
    def exponents(self) -> Mapping[str, float]: ...
    @property
    def shares(self) -> Mapping[str, float]: ...
    @property
    def start_score(self) -> float: ...
    def first_scores(
        self, task: Task
    ) -> tuple[dict[str, Float[Tensor, "state state"]], Float[Tensor, " offset"]]: ...
    def last_scores(self, task: Task) -> Float[Tensor, " offset"]: ...
    def laws(
        self, task: Task, readout: str
    ) -> tuple[Float[Tensor, "state state"], Float[Tensor, " state"]]: ...


def standard_weights(
    circuit: Numbers, task: Task, readout: str, dtype: torch.dtype
) -> RelativeTransformer:
    """Return the circuit as a standard transformer with one vector per offset."""
    S, K, lam = task.num_states, len(circuit.lags), circuit.lam
    widths = {"token": S + 1, "p": K, "early": 1, "means": K, "copy": S + 1}
    ends = torch.tensor(list(widths.values())).cumsum(0).tolist()
    at = {
        name: slice(end - width, end)
        for (name, width), end in zip(widths.items(), ends, strict=True)
    }
    model = RelativeTransformer(
        S,
        circuit.reach,
        dim=ends[-1],
        qk_dim=max(S, K) + 1,
        heads=circuit.model_heads,
        offsets=("both", "none", "keys"),
        start=True,
        temperature=1.0,
        readout=readout,
        dtype=dtype,
        init="zeros",
    ).requires_grad_(False)
    tokens, early, one = at["token"], at["early"].start, -1
    model.token[:, tokens] = torch.eye(S + 1, dtype=dtype)
    first, second, third = model.each_layer()
    for layer in (first, second, third):
        layer.Q[:, tokens, one] = 1.0

    logs, by_offset = circuit.first_scores(task)
    assert first.aK is not None
    assert first.aV is not None
    assert third.aK is not None
    for head, name in enumerate(circuit.exponents):
        first.Q[head, :S, :S] = torch.eye(S, dtype=dtype)
        first.K[head, :S, :S] = logs[name].to(dtype)
        first.K[head, S, one] = 4 * lam
        first.aK[head, :, one] = by_offset.to(dtype)
        first.aV[head, list(circuit.lags), at["p"]] = circuit.shares[name] * torch.eye(
            K, dtype=dtype
        )
    first.V[0, S, early] = 1.0

    second.K[0, early, one] = -2 * lam
    second.K[0, S, one] = circuit.start_score
    second.V[0, at["p"], at["means"]] = torch.eye(K, dtype=dtype)

    third.Q[0, at["means"], :K] = circuit.beta * torch.eye(K, dtype=dtype)
    for n, lag in enumerate(circuit.lags):
        third.aK[0, lag - 1, n] = 1.0
    third.K[0, S, one] = 4 * lam
    third.aK[0, :, one] = circuit.last_scores(task).to(dtype)
    third.V[0, tokens, at["copy"]] = torch.eye(S + 1, dtype=dtype)

    copied = model.readout[:, at["copy"]]
    law, start = circuit.laws(task, readout)
    copied[:, :S], copied[:, S] = law.to(dtype), start.to(dtype)
    return model


def offset_scores(model: Model) -> tuple[Float[Tensor, " offset"], Float[Tensor, "offset lag"]]:
    """Return what layer 1 adds to the scores of each offset, and which mean layer 3 reads there."""
    assert isinstance(model, RelativeTransformer)
    first, _, third = model.each_layer()
    assert first.aK is not None
    assert third.aK is not None
    return first.aK.detach()[0, :, -1], third.aK.detach()[0, :, :-1]
