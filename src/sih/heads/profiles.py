r"""Second-layer heads that mix lags, and when their scores are still the evidence.

Head h gives offset o the weight $u_h(o) > 0$. So it stores
$\sum_{o + k' = n} u_h(o)\,q_{i-o,k'}$ at index i - n, with q the centred evidence,
$\sum_k q_{n,k} = 0$. The key of lag k, at j = i - k + 1, reads index m of it by
$g_h(j - m - 1)$. It reads index m of the key's own copy of head h by $\bar g_h(i - m)$.
Lag k then has the score $\sum_o F_o q_{i-o}$,

$$F_o[k, k'] = \sum_h u_h(o)\,g_h(o + k' - k) + [o \ge k - 1]\;u_h(o - k + 1)\,\bar g_h(o + k').$$

**Criterion.** Softmax ignores terms that all lags share. So the scores are the
evidence, for every q, iff $J F_o J = J$ at every offset, $J = I - 1 1^\top / K$. The
condition is $J \sum_o F_o q_o = J \sum_o q_o$ for all $q_o = J q_o$, which are
independent. `Profile.residual` is the distance from it, whatever P is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import described
from sih.base.files import check_entries
from sih.base.showing import Drawn
from sih.task import check_lags

BALANCING = 10
"""Rounds of `_balanced`. The largest entry of a parabola is settled after four."""


@dataclass(frozen=True, eq=False)
class Profile(Drawn):
    """Weights of second-layer heads, and the third layer's reads of them.

    Every search returns one. `Circuit.profile` has it written as weights, run,
    certified and verified.
    """

    drawing = "sih.results.plots.profile:draw_profile"

    lags: tuple[int, ...]
    length: int
    weights: Float[Tensor, "head offset"]
    """u_h(o) > 0 at the offsets 0 .. length - max_lag - 1."""
    query: Float[Tensor, "head index"]
    """g_h(n), the reads of the query's heads, from n = -span on: length + span -
    min_lag numbers, with span = max_lag - min_lag."""
    key: Float[Tensor, "head length"] | None = None
    """The reads of the key's heads, at n = 0 .. length - 1, or None if they are not
    read."""

    @property
    def heads(self) -> int:
        return len(self.weights)

    @property
    def span(self) -> int:
        return self.lags[-1] - self.lags[0]

    @property
    def reads_keys(self) -> bool:
        """Return whether the third layer reads the heads at the keys."""
        return self.key is not None and bool(self.key.any())

    @cached_property
    def matrices(self) -> Float[Tensor, "offset lag lag"]:
        """Return F_o at every offset."""
        lags = torch.tensor(self.lags)
        o, k, other = (
            torch.arange(self.weights.shape[1])[:, None, None],
            lags[:, None],
            lags[None, :],
        )
        F = (self.weights[:, :, None, None] * self.query[:, o + other - k + self.span]).sum(dim=0)
        if self.key is None:
            return F
        seen = self.weights[:, (o - k + 1).clamp_min(0)] * (o >= k - 1)
        return F + (seen * self.key[:, o + other]).sum(dim=0)

    @cached_property
    def deviations(self) -> Float[Tensor, "offset lag lag"]:
        """Return J F_o J - J at every offset, 0 where the criterion holds."""
        J = centring(len(self.lags))
        return J @ self.matrices @ J - J

    @property
    def residual(self) -> Float[Tensor, " offset"]:
        """Return the Frobenius norm of J F_o J - J at every offset."""
        return self.deviations.square().sum(dim=(1, 2)).sqrt()

    def log_odds_error(self, spread: float) -> float:
        """Return a bound on how far deviations move the log-odds of two lags.

        It holds if the evidence of one token differs by up to `spread`. A vector v of
        sum 0 times a q with entries at most `spread` apart is at most spread / 2 times
        its 1-norm.
        """
        gaps = self.deviations[:, :, None, :] - self.deviations[:, None, :, :]
        return spread / 2 * gaps.abs().sum(dim=(0, 3)).max().item()

    @cached_property
    def totals(self) -> Float[Tensor, " head"]:
        """Return C_h, more than the weights' sum, which leaves the sink a share."""
        return self.weights.sum(dim=-1) + self.weights.mean(dim=-1)

    @cached_property
    def query_blocks(self) -> Float[Tensor, "head index key"]:
        """Return g_h(j - m - 1) for every index m and key j, up to terms that a row's
        scores share.

        Numbers that depend on m alone are common to all keys. Numbers that depend on j
        alone multiply entries of sum 0. Both are free, and chosen to make the largest
        entry least. Pairs with j - m - 1 < -span, which no lag reads, are 0.
        """
        n = torch.arange(self.length)[None, :] - torch.arange(self.length)[:, None] - 1
        n = n.clamp_max(
            self.query.shape[1] - 1 - self.span
        )  # keys that read from before all transitions
        return torch.stack(
            [_balanced(g[(n + self.span).clamp_min(0)], n >= -self.span) for g in self.query]
        )

    @cached_property
    def key_blocks(self) -> Float[Tensor, "head query index"]:
        """Return the reads of the key's heads for every query i and index m, 0 without
        `key`.
        """
        n = torch.arange(self.length)[:, None] - torch.arange(self.length)[None, :]
        key = torch.zeros(self.heads, self.length) if self.key is None else self.key
        return torch.where(n >= 0, key[:, n.clamp_min(0)], 0.0).to(torch.float64)

    @cached_property
    def size(self) -> float:
        """Return a bound on scores: total weights times largest reads."""
        reads = self.query_blocks.abs().amax(dim=(1, 2)) + self.key_blocks.abs().amax(dim=(1, 2))
        return float((self.totals * reads).sum())

    def _facts(self) -> Mapping[str, Any]:
        read = "both" if self.reads_keys else "query"
        facts = {"lags": self.lags, "length": self.length, "heads": self.heads, "reading": read}
        return {**facts, "residual": self.residual.max().item()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, from which `from_dict` makes the same profile."""
        lists = {
            name: None if value is None else value.tolist()
            for name, value in self._tensors().items()
        }
        return {"lags": list(self.lags), "length": self.length, **lists}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Profile":
        """Return the profile in the JSON of `to_dict`, or raise a ValueError.

        The JSON may come from any file.
        """
        check_entries(
            values, {"lags": (list, tuple), "length": int, "weights": list, "query": list}
        )
        lags, length = check_lags(values["lags"]), values["length"]
        span, heads = lags[-1] - lags[0], len(values["weights"])
        sizes = {"weights": length - lags[-1], "query": length + span - lags[0], "key": length}
        read: dict[str, Tensor | None] = {}
        for name, size in sizes.items():
            found = (
                None if values[name] is None else torch.tensor(values[name], dtype=torch.float64)
            )
            if (found is None and name != "key") or (
                found is not None and found.shape != (heads, size)
            ):
                raise ValueError(
                    f"a profile's {name} must be of shape {(heads, size)}; got {described(found)}"
                )
            read[name] = found
        return Profile(lags, length, **read)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.lags, self.length, tuple(self.weights.flatten().tolist())))

    def _tensors(self) -> dict[str, Tensor | None]:
        return {"weights": self.weights, "query": self.query, "key": self.key}


def centring(count: int) -> Float[Tensor, "lag lag"]:
    """Return J, which subtracts the mean."""
    return torch.eye(count, dtype=torch.float64) - 1 / count


def _balanced(B: Float[Tensor, "row column"], wanted: Tensor) -> Float[Tensor, "row column"]:
    """Return the matrix less one number per row and column, with a small largest wanted
    entry.

    Unwanted entries are 0. In turn the middle of each row's and of each column's range
    is subtracted, which never makes the largest larger.
    """
    for dim in (0, 1) * BALANCING:
        high = B.masked_fill(~wanted, -torch.inf).amax(dim=dim, keepdim=True)
        low = B.masked_fill(~wanted, torch.inf).amin(dim=dim, keepdim=True)
        B = B - torch.where(high >= low, (high + low) / 2, 0.0)
    return B.masked_fill(~wanted, 0.0)
