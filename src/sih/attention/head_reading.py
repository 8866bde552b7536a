"""Reading of one head of any model from its attention, with a role in a few words."""

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
"""Largest mean total variation from uniform attention at which a head counts as
uniform."""
ONE_OFFSET = 0.6
"""Least share of attention at one offset for the role of that offset."""
SELECTS = 0.8
"""Least attention to the true lag's token, over the exact posterior, of a selective
head."""
ON_LAGS, DEPENDS = 0.5, 0.1
"""Least share of attention at the lags, and least dependence on tokens, to count."""
COMPARES, LEANS, SOME = 0.8, 0.3, 0.2
"""Least absolute correlations with the normalised probabilities, and least attention at
the lags of a leaning head."""
ON_FIRST, PERIODIC, SPREAD, SHOWN = 0.8, 0.5, 0.25, 3
"""Least share of position 0, least fit of a period, distance from uniform of a head
that spreads, and most residues in a role."""
BY_TOKENS = 0.4
"""Least share of the variation between sequences that the tokens of query and key
explain, in a content-based head."""
FEW, ON_FEW = 4, 0.5
"""Most offsets in a role, and their least share of attention together."""
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
    """Measures of one head's attention, means over sequences and queries.

    Queries are those from max_lag on.
    """

    name: str
    """Layer and number of the head, from 1: "2.3"."""
    parents: dict[int, float]
    """Attention to i - k, the parent of token i under lag k, by lag."""
    copies: dict[int, float]
    """Attention to i - k + 1, the parent of the next token under lag k, by lag."""
    selected: float
    """Attention to i - k + 1 with k each sequence's true lag."""
    exact: float
    """The exact posterior of that lag at the same queries, an ideal value of
    `selected`."""
    accuracy: float
    """How often the true lag has the largest of `copies`."""
    correlation: float
    """Correlation of the attention at i - k with the normalised probabilities."""
    period: int | None
    """The least period that explains attention by offset beyond the lags
    (`find_period`). None if attention is the same at all offsets."""
    residues: tuple[int, ...]
    """Offsets modulo the period that have more than the average."""
    fit: float
    """Share of the variance by offset that the residues explain."""
    dependence: float
    """Total variation of a query's attention from its mean over the other sequences. It
    is 0 if only the position matters."""
    by_tokens: float
    """Share of that variation that the tokens of query and key explain
    (`share_by_tokens`)."""
    from_uniform: float
    """Total variation from uniform attention over the past."""
    mean_from_uniform: float
    """Total variation of the mean attention over sequences from uniform attention."""
    first_key: float
    """Attention to position 0."""
    start: float
    """Attention to a start token, 0 if there is none."""
    offsets: tuple[float, ...]
    """Attention by offset, of queries in the second half."""

    last: bool
    """Whether the head is in the last layer."""

    @property
    def selective(self) -> bool:
        """Return whether the head selects the true lag's token.

        It has at least 0.8 of the exact posterior.
        """
        return (
            len(self.copies) > 1
            and self.dependence >= DEPENDS
            and self.selected >= SELECTS * self.exact
        )

    @property
    def role(self) -> str:
        """Return the first of `ROLES` with a criterion that the head meets."""
        offset, most = max(enumerate(self.offsets), key=lambda pair: pair[1])
        if self.from_uniform <= UNIFORM:
            return "attends uniformly"
        if most >= ONE_OFFSET:
            return f"attends to offset {offset}"
        return self._role_by_lags() or self._role_by_place() or self._role_by_content()

    def _role_by_lags(self) -> str:
        """Return the role that a head has by the task's lags, or an empty text."""
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
        """Return the role by positions, or an empty text.

        It is empty if tokens explain the attention.
        """
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
        """Return the role of a head that meets no other criterion."""
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
        """Return the role with the fewest offsets that have the share.

        `rising` are offsets in rising order of their attention.
        """
        total, found = 0.0, []
        for offset in reversed(rising):
            total += self.offsets[offset]
            found.append(offset)
            if total >= ON_FEW:
                break
        return f"attends to offset{'s' * (len(found) > 1)} {', '.join(map(str, sorted(found)))}"


def queries_read(task: CausalTask, time: int) -> slice:
    """Return the queries at which heads are read.

    They are those from max_lag on, with a next token.
    """
    return slice(first_position(task), time - 1)


def exact_selection(batch: Batch, task: CausalTask) -> float:
    """Return the mean exact posterior of the true lag.

    The mean is over sequences and the queries read.
    """
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
    """Return measures of one head on sequences of the task.

    Args:
        name: layer and number of the head.
        whole: (batch, query, key), its attention after the softmax, one row and one key
            per token. An additional first key is a start token.
        batch: the sequences, with their lags.
        task: the task they were drawn from.
        last: whether the head is in the last layer.
        exact: `exact_selection(batch, task)`, to compute it once for many heads.

    Returns:
        The measures, with the head's `role`.
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
    # Mean of all; without the sequence itself the difference is n / (n - 1) times as large.
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
