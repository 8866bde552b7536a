"""Reads one head of any model from its attention: where it looks, by what, and in a word what it does."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.attention.correlation import probability_correlation, share_by_tokens
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
BY_TOKENS = 0.4
"""The share of the variation between sequences that the tokens of query and key explain, in a content-based head."""
FEW, ON_FEW = 4, 0.5
"""The most offsets that a role lists, and the share of attention that they have together."""
ROLES: dict[str, str] = {
    "attends uniformly": f"total variation from uniform attention at most {UNIFORM:g}",
    "attends to offset o": f"{ONE_OFFSET:g} of the attention at one offset",
    "selects the true candidate": f"attention to the true lag's candidate at least {SELECTS:g} of "
    f"`exact`, dependence at least {DEPENDS:g}",
    "compares with parents (+) or (-)": f"correlation at least {COMPARES:g}, or at most -{COMPARES:g}; "
    f"{ON_LAGS:g} of the attention on the parents",
    "attends to candidates": f"last layer, {ON_LAGS:g} of the attention on the candidates",
    "prefers likely parents, or unlikely": f"correlation at least {LEANS:g}, or at most -{LEANS:g}; "
    f"{SOME:g} of the attention on the parents",
    "sink at position 0, or at the start token": f"{ON_FIRST:g} of the attention there",
    "local: the last n tokens": f"{ON_LAGS:g} of the attention at offsets 0 to max_lag",
    "content-based: tokens of query and key": f"dependence at least {DEPENDS:g}, `by_tokens` at "
    f"least {BY_TOKENS:g}",
    "periodic: offsets r mod n, or period n": f"fit at least {PERIODIC:g}; more than {SHOWN} residues "
    "are not listed",
    "attends to offsets o, p, ...": f"{ON_FEW:g} of the attention at no more than {FEW} offsets",
    "nearly uniform": f"total variation from uniform attention at most {SPREAD:g}",
    "content-based: no preferred offset": f"dependence at least {DEPENDS:g}, `mean_from_uniform` at "
    f"most {SPREAD:g}",
    "content-dependent, no simple pattern": f"dependence at least {DEPENDS:g}",
    "position-only, no simple pattern": "all others",
}
"""Every role and its criterion. A head has the first role that it meets."""


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
    by_tokens: float
    """The part of that variation that the tokens of query and key explain (`share_by_tokens`)."""
    from_uniform: float
    """Total variation from uniform attention over the past."""
    mean_from_uniform: float
    """The same of the mean attention over sequences."""
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
        """Return the first of `ROLES` whose criterion the head meets."""
        offset, most = max(enumerate(self.offsets), key=lambda pair: pair[1])
        if self.from_uniform <= UNIFORM:
            return "attends uniformly"
        if most >= ONE_OFFSET:
            return f"attends to offset {offset}"
        return self._role_by_lags() or self._role_by_place() or self._role_by_content()

    def _role_by_lags(self) -> str:
        """Return the role that a head has by the task's lags, or nothing."""
        on_candidates, on_parents = sum(self.copies.values()), sum(self.parents.values())
        size = abs(self.correlation)
        if self.selective:
            return "selects the true candidate"
        if size >= COMPARES and on_parents >= ON_LAGS:
            return f"compares with parents ({'+' if self.correlation > 0 else '-'})"
        if self.last and len(self.copies) > 1 and on_candidates >= ON_LAGS:
            return "attends to candidates"
        if size >= LEANS and on_parents >= SOME:
            return f"prefers {'likely' if self.correlation > 0 else 'unlikely'} parents"
        return ""

    def _role_by_place(self) -> str:
        """Return the role that a head has by positions, unless tokens explain its attention; or nothing."""
        near = sum(self.offsets[: max(self.parents) + 1])
        few = sorted(range(len(self.offsets)), key=self.offsets.__getitem__)[-FEW:]
        if self.first_key >= ON_FIRST:
            return "sink at position 0"
        if self.start >= ON_FIRST:
            return "sink at the start token"
        if near >= ON_LAGS:
            return f"local: the last {max(self.parents) + 1} tokens"
        if self.dependence >= DEPENDS and self.by_tokens >= BY_TOKENS:
            return "content-based: tokens of query and key"
        if self.period is not None and self.fit >= PERIODIC:
            return self._period_role(self.period)
        if sum(self.offsets[offset] for offset in few) >= ON_FEW:
            return self._role_by_offsets(few)
        return "nearly uniform" if self.from_uniform <= SPREAD else ""

    def _role_by_content(self) -> str:
        """Return the role of a head that has no other."""
        if self.dependence < DEPENDS:
            return "position-only, no simple pattern"
        if self.mean_from_uniform <= SPREAD:
            return "content-based: no preferred offset"
        return "content-dependent, no simple pattern"

    def _period_role(self, period: int) -> str:
        if len(self.residues) > SHOWN:
            return f"periodic: period {period}"
        return f"periodic: offsets {', '.join(map(str, self.residues))} mod {period}"

    def _role_by_offsets(self, rising: list[int]) -> str:
        """Return the role of the fewest offsets that have the share, of some by their attention."""
        total, found = 0.0, []
        for offset in reversed(rising):
            total += self.offsets[offset]
            found.append(offset)
            if total >= ON_FEW:
                break
        return f"attends to offset{'s' * (len(found) > 1)} {', '.join(map(str, sorted(found)))}"


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
    by_lag = [
        dict(zip(task.hypotheses, shares.mean(dim=(0, 1)).tolist(), strict=True))
        for shares in (followed, copied)
    ]
    others = whole.mean(dim=0)
    # `others` is the mean of all: without the sequence itself the difference is n / (n - 1) times as large.
    apart = len(attention) / (len(attention) - 1)
    from_others = total_variation(whole, others)[:, rows].mean().item()
    from_uniform = total_variation(whole, flat)[:, rows].mean().item()
    mean_from_uniform = total_variation(others, flat)[rows].mean().item()
    profile = offset_profile(attention)
    first_row = rows.start
    period, found, fit = find_period(profile[first_row : len(profile) // 2 - first_row])
    residues = sorted((residue + first_row) % period for residue in found) if period else []
    on_true_lag = (copied * own[:, None]).sum(dim=-1)
    on_start = whole[:, rows, :first].sum(dim=-1)
    return HeadReading(
        name=name,
        parents=by_lag[0],
        copies=by_lag[1],
        selected=on_true_lag.mean().item(),
        exact=exact_selection(batch, task) if exact is None else exact,
        accuracy=lag_accuracy(copied, batch, task).mean().item(),
        correlation=probability_correlation(attention, batch.tokens, task),
        period=period,
        residues=tuple(residues),
        fit=fit,
        dependence=apart * from_others,
        by_tokens=share_by_tokens(attention, batch.tokens, rows),
        from_uniform=from_uniform,
        mean_from_uniform=mean_from_uniform,
        first_key=attention[:, rows, 0].mean().item(),
        start=on_start.mean().item(),
        offsets=tuple(profile.tolist()),
        last=last,
    )
