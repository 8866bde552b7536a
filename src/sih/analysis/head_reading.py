"""Reads one head of any model from its attention: where it looks, by what, and in a word what it does."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.analysis.correlation import probability_correlation
from sih.analysis.head_matching import total_variation, uniform_attention
from sih.analysis.lag_mass import find_period, offset_profile
from sih.metrics import lag_accuracy
from sih.models.offsets import attention_at
from sih.task import Batch, Task

COMPARES, ON_LAGS, DEPENDS, ONE_KEY, PERIODIC, UNIFORM = 0.8, 0.5, 0.1, 0.8, 0.8, 0.05
"""Thresholds of the roles (`docs/field_tools.md`): correlation, share at the lags, dependence on tokens, share of one
key, fit of a period, distance from uniform attention."""


@dataclass(frozen=True)
class HeadReading:
    """Holds what one head's attention says, averaged over sequences and queries past the first max_lag tokens."""

    name: str
    """Its layer and its number in it, from 1: "2.3"."""
    parents: dict[int, float]
    """Attention to i - k, the token that lag k says token i follows, by lag."""
    copies: dict[int, float]
    """Attention to i - k + 1, the token that lag k says the next one follows, by lag."""
    selected: float
    """Attention to i - k + 1 with k each sequence's own lag."""
    accuracy: float
    """How often, of the `copies`, the sequence's own lag has the most."""
    correlation: float
    """Of the attention at i - k with the normalised probabilities."""
    period: int | None
    """The least period that explains attention by offset, past the lags (`find_period`), None where it is the same."""
    residues: tuple[int, ...]
    """Offsets modulo the period that have more than the average."""
    fit: float
    """The part of the variance by offset that the residues explain."""
    dependence: float
    """Total variation of a query's attention from its mean over the other sequences: 0 goes by position alone."""
    from_uniform: float
    """Total variation from uniform attention over the past."""
    first_key: float
    """Attention to position 0."""
    start: float
    """Attention to a start token, 0 where there is none."""
    offsets: tuple[float, ...]
    """Attention by offset, of the queries of the second half."""

    @property
    def role(self) -> str:
        """Say what the head does: the first of these that holds. The thresholds are in `docs/field_tools.md`."""
        on_copies, on_parents = sum(self.copies.values()), sum(self.parents.values())
        offset, most = max(enumerate(self.offsets), key=lambda pair: pair[1])
        if self.from_uniform <= UNIFORM:
            return "tells no key from another"
        if abs(self.correlation) >= COMPARES and on_parents >= ON_LAGS:
            return "compares the lags' tokens with its own" + (", inversely" if self.correlation < 0 else "")
        if len(self.copies) > 1 and on_copies >= ON_LAGS and self.dependence >= DEPENDS:
            return "selects the token to copy" if self.selected >= ON_LAGS else "looks at tokens to copy"
        if most >= ONE_KEY:
            return f"looks {offset} back"
        if self.period is not None and self.fit >= PERIODIC:
            return f"looks at offsets {' '.join(map(str, self.residues))} mod {self.period}"
        if self.first_key >= ONE_KEY:
            return "rests on position 0"
        if self.start >= ONE_KEY:
            return "rests on the start token"
        return "goes by tokens and positions" if self.dependence >= DEPENDS else "goes by position, in no simple way"


def read_head(name: str, whole: Float[Tensor, "batch query key"], batch: Batch, task: Task) -> HeadReading:
    """Measure one head on sequences of the task, and say what it does.

    Its attention has a row for each token, and a key for each. A key more, the first, is a start token.
    """
    first = whole.shape[-1] - whole.shape[-2]
    attention = whole[..., first:]
    flat = nn.functional.pad(uniform_attention(attention.shape[-1]), (first, 0))
    rows = slice(task.max_lag, attention.shape[-1] - 1)
    at = {shift: attention_at(attention, [k - shift for k in task.lags])[:, rows].double() for shift in (0, 1)}
    own = batch.lags[:, None] == torch.tensor(task.lags)
    others = whole.mean(dim=0)  # of all; leaving the sequence itself out multiplies the difference by n / (n - 1)
    apart = len(attention) / (len(attention) - 1)
    profile = offset_profile(attention)
    period, residues, fit = find_period(profile[task.max_lag : len(profile) // 2 - task.max_lag])
    return HeadReading(
        name=name,
        parents=dict(zip(task.lags, at[0].mean(dim=(0, 1)).tolist(), strict=True)),
        copies=dict(zip(task.lags, at[1].mean(dim=(0, 1)).tolist(), strict=True)),
        selected=(at[1] * own[:, None]).sum(dim=-1).mean().item(),
        accuracy=lag_accuracy(at[1], batch, task).mean().item(),
        correlation=probability_correlation(attention, batch.tokens, task),
        period=period,
        residues=tuple(sorted((r + task.max_lag) % period for r in residues)) if period else (),
        fit=fit,
        dependence=apart * total_variation(whole, others)[:, rows].mean().item(),
        from_uniform=total_variation(whole, flat)[:, rows].mean().item(),
        first_key=attention[:, rows, 0].mean().item(),
        start=whole[:, rows, :first].sum(dim=-1).mean().item(),
        offsets=tuple(profile.tolist()),
    )
