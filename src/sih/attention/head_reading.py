"""Reads one head of any model from its attention: where it looks, by what, and in a word what it does."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.attention.correlation import probability_correlation
from sih.attention.head_matching import total_variation, uniform_attention
from sih.attention.offset_mass import find_period, offset_profile
from sih.models.offsets import attention_to
from sih.predictors.evidence import lag_posterior
from sih.predictors.metrics import lag_accuracy
from sih.task import Batch, CausalTask, first_position

UNIFORM = 0.05
"""Attention this near to uniform is uniform: total variation, averaged over queries."""
ONE_OFFSET = 0.6
"""The share of attention at one offset that makes a head one of that offset."""
SELECTS = 0.8
"""The part of what the exact posterior has on the true lag that a selective head has at least."""
ON_LAGS, DEPENDS = 0.5, 0.1
"""The share of attention at the lags, and the dependence on tokens, from which either counts."""
COMPARES, LEANS, SOME = 0.8, 0.3, 0.2
"""Correlations with the normalised probabilities, in size, and the attention at the lags that a leaning head has."""
ON_FIRST, PERIODIC, SPREAD, SHOWN = 0.8, 0.5, 0.25, 3
"""The share of position 0, the fit of a period, the distance from uniform of a head that spreads, and the most residues
that a role lists."""


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
    """Attention to i - k + 1 with k each sequence's true lag."""
    exact: float
    """The exact posterior of that lag at the same queries: what `selected` could be."""
    accuracy: float
    """How often, of the `copies`, the sequence's true lag has the most."""
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

    last: bool
    """Whether it is a head of the last layer."""

    @property
    def selective(self) -> bool:
        """Tell whether it has on the true lag at least 0.8 of what the exact posterior has there."""
        return (
            len(self.copies) > 1
            and self.dependence >= DEPENDS
            and self.selected >= SELECTS * self.exact
        )

    @property
    def role(self) -> str:
        """Say what the head does: the first of these that holds. The thresholds are in `docs/field_tools.md`."""
        offset, most = max(enumerate(self.offsets), key=lambda pair: pair[1])
        if self.from_uniform <= UNIFORM:
            return "attends to all keys alike"
        if most >= ONE_OFFSET:
            return f"attends {offset} back"
        return self._role_by_lags() or self._role_by_place()

    def _role_by_lags(self) -> str:
        """Say what the head does with the lags, or nothing if it does nothing with them."""
        on_candidates, on_parents = sum(self.copies.values()), sum(self.parents.values())
        size = abs(self.correlation)
        if self.selective:
            return "selects the token to copy"
        if size >= COMPARES and on_parents >= ON_LAGS:
            return "compares the lags' tokens with its own" + (
                ", inversely" if self.correlation < 0 else ""
            )
        if self.last and len(self.copies) > 1 and on_candidates >= ON_LAGS:
            return "attends to the candidates, selecting none"
        if size >= LEANS and on_parents >= SOME:
            return f"leans to the lags' {'likely' if self.correlation > 0 else 'unlikely'} tokens"
        return ""

    def _role_by_place(self) -> str:
        """Say where the head attends, whatever the lags are."""
        near = sum(self.offsets[: max(self.parents) + 1])
        if self.first_key >= ON_FIRST:
            return "rests on position 0"
        if self.start >= ON_FIRST:
            return "rests on the start token"
        if near >= ON_LAGS:
            return f"attends to the last {max(self.parents) + 1} tokens"
        if self.period is not None and self.fit >= PERIODIC:
            return self._period_role(self.period)
        if self.from_uniform <= SPREAD:
            return "spreads over the past"
        return (
            "attends by tokens and positions"
            if self.dependence >= DEPENDS
            else "attends by position"
        )

    def _period_role(self, period: int) -> str:
        if len(self.residues) > SHOWN:
            return f"attends with period {period}"
        return f"attends at offsets {' '.join(map(str, self.residues))} mod {period}"


def queries_read(task: CausalTask, time: int) -> slice:
    """Return the queries that heads are read at: past the first max_lag, and with a next token."""
    return slice(first_position(task), time - 1)


def exact_selection(batch: Batch, task: CausalTask) -> float:
    """Return the exact posterior of each sequence's true lag, averaged over the queries that heads are read at."""
    rows = queries_read(task, batch.tokens.shape[1])
    true = (batch.lags[:, None] == torch.tensor(task.hypotheses)).double()
    weights = lag_posterior(batch.tokens, task)[:, rows]
    return (weights * true[:, None]).sum(dim=-1).mean().item()


def read_head(
    name: str,
    whole: Float[Tensor, "batch query key"],
    batch: Batch,
    task: CausalTask,
    *,
    last: bool = True,
    exact: float | None = None,
) -> HeadReading:
    """Measure one head on sequences of the task, and say what it does.

    Args:
        name: its layer and its number in it.
        whole: its attention, after the softmax, with a row for each token and a key for each. A key more, the first, is
            a start token.
        batch: the sequences that it is of, with their lags.
        task: what they were drawn from.
        last: whether it is of the last layer.
        exact: `exact_selection(batch, task)`, to compute it once for many heads.
    """
    first = whole.shape[-1] - whole.shape[-2]
    attention = whole[..., first:]
    flat = nn.functional.pad(uniform_attention(attention.shape[-1]), (first, 0))
    rows = queries_read(task, attention.shape[-1])
    parents = task.parents(attention.shape[-1] + 1)
    followed, copied = (
        attention_to(attention, keys)[:, rows].double()
        for keys in (parents[:, :-1], parents[:, 1:])
    )
    own = batch.lags[:, None] == torch.tensor(task.hypotheses)
    others = whole.mean(
        dim=0
    )  # of all; leaving the sequence itself out multiplies the difference by n / (n - 1)
    apart = len(attention) / (len(attention) - 1)
    profile = offset_profile(attention)
    first_row = rows.start
    period, residues, fit = find_period(profile[first_row : len(profile) // 2 - first_row])
    return HeadReading(
        name=name,
        parents=dict(zip(task.hypotheses, followed.mean(dim=(0, 1)).tolist(), strict=True)),
        copies=dict(zip(task.hypotheses, copied.mean(dim=(0, 1)).tolist(), strict=True)),
        selected=(copied * own[:, None]).sum(dim=-1).mean().item(),
        exact=exact_selection(batch, task) if exact is None else exact,
        accuracy=lag_accuracy(copied, batch, task).mean().item(),
        correlation=probability_correlation(attention, batch.tokens, task),
        period=period,
        residues=tuple(sorted((r + first_row) % period for r in residues)) if period else (),
        fit=fit,
        dependence=apart * total_variation(whole, others)[:, rows].mean().item(),
        from_uniform=total_variation(whole, flat)[:, rows].mean().item(),
        first_key=attention[:, rows, 0].mean().item(),
        start=whole[:, rows, :first].sum(dim=-1).mean().item(),
        offsets=tuple(profile.tolist()),
        last=last,
    )
