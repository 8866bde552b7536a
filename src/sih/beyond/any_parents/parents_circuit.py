r"""Circuits for any table of parents, with all their numbers and the closed form of
their weights.

Hypothesis h has the weight $w_{i,h} \propto \exp(\beta E_{i,h})$ at row i, with
$E_{i,h}$ the sum, or the mean, of $\tilde p_{n,h}$ over the tokens n <= i that have
parents: exactly the selective estimator. The target "bayes" tempers, sums and adds the
logarithm of the prior as for lags. The prediction is $\sum_h w_{i,h} P_{s_j,\cdot}$, j
the parent of token i + 1 under h.

**Possible tables.** (1) *No token has a parent under some hypotheses and none under
others.* Its evidence for "none" would be stored at a key r of layer 1, with score
$\log \pi(s_i)$ whatever $s_r$ is. A score is
$a(s_i, s_r) + b(s_i, r) + c(i, s_r) + d(i, r)$, so a would have to be a function of
$s_i$ plus one of $s_r$, and then it cannot be $\log P$ unless all rows of P are alike.
(Only r = i knows its token, and b adds the same at key i for the children of i. A token
without children would be possible, but is not implemented.) (2) *Rows whose next token
has no parent* are excluded, since every head copies some token. All other tables are
possible, in one of two forms of the third layer:

- "parents", the paper's: one head, whose key for h is the parent of i + 1 under h.
  Where two hypotheses have the same key, it must have the weight $w_h + w_g$, so the
  score $\log(e^{\beta E_h} + e^{\beta E_g})$: no affine function of what layer 2 holds,
  unless $E_h = E_g$ always or there is no other key. So the form serves a table iff
  *hypotheses that give token i + 1 the same parent, unless all do, have given the same
  to all tokens before*: distinct parents and any two hypotheses do, three random trees
  do not. Second-layer heads must tell pairs (row, token) apart
  (`beyond/any_parents/token_heads.py`).
- "slots": several heads, in each of which every key stands for one hypothesis in all
  rows. Then heads need only tell tokens apart. Its K slots are the positions 0 .. K -
  1, slot h for hypothesis h. Head a of the first bank pays $w_a$ to the parent under a
  and the others' weights to their slots; one head pays all to the slots, and counts
  -(K - 1) times: $\sum_a (w_a e_{parent_a} + \sum_{h \ne a} w_h e_h) - (K - 1) \sum_h
  w_h e_h = \sum_a w_a e_{parent_a}$. Where the parent is another's slot it stands for
  the wrong hypothesis there. So there is a second bank, with the spare slots K .. 2K -
  1 for the others and the keys 0 .. K - 1 for a alone; whichever head does not serve
  pays $w_a$ to slot a. Slots then count -K times and spare slots -(K - 1) times. Rows
  count from 2K - 1 on, where all slots are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import AtLeast, Below
from sih.beyond.any_parents.slots import Copying, slots
from sih.beyond.any_parents.token_heads import TokenHeads, token_heads
from sih.circuits.any_circuit import AnyCircuit, Expected
from sih.circuits.log_matrix import log_matrix
from sih.circuits.masks import Masks
from sih.circuits.offset_heads import Evidence
from sih.predictors.evidence import check_states, mixture, normalised_probabilities
from sih.task import ParentsTask, has_parent
from sih.task.parents_task import check_parents

ParentsThird = Literal["parents", "slots"]
Places = tuple[Annotated[int, AtLeast(-1), Below(2**31)], ...]


@dataclass(frozen=True, kw_only=True)
class ParentsCircuit(AnyCircuit):
    """All numbers behind the weights of a circuit for a table of parents."""

    task_kind: ClassVar[Any] = ParentsTask

    third: ParentsThird
    parents: tuple[Places, ...]
    """The task's table: for each hypothesis, the parents of tokens 0 to `length`."""
    head_of_token: tuple[Places, ...]
    """The second-layer head (from 0) of each token, -1 for none: one row for all
    queries, or one per query."""

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = check_parents(self.parents).shape[1]
        if columns != self.length + 1:
            raise FieldError(
                "parents",
                f"parents must be those of {self.length} + 1 tokens; got {columns} columns",
            )
        shape = {len(row) for row in self.head_of_token}
        if shape != {self.length} or len(self.head_of_token) not in (1, self.length):
            raise FieldError(
                "head_of_token",
                f"head_of_token has a head for each of {self.length} tokens, in 1 or {self.length} rows",
            )

    @property
    @abstractmethod
    def counting(self) -> Evidence:
        """Return whether shares of tokens are averaged or summed."""

    @property
    def masks(self) -> Masks:
        """Return the numbers that masks add: position 0 is always the sink."""
        return Masks(0.0, -2 * self.lam)

    @cached_property
    def table(self) -> Int[Tensor, "hypothesis next"]:
        return torch.tensor(self.parents)

    @property
    def hypotheses(self) -> int:
        return len(self.parents)

    @cached_property
    def heads(self) -> int:
        """Return the number of second-layer heads: at least one, which uses the sink if
        there is nothing to gather.
        """
        return max(1, 1 + max(max(row) for row in self.head_of_token))

    @property
    def model_heads(self) -> tuple[int, int, int]:
        """Return the number of heads of each layer."""
        return len(self.exponents), self.heads, len(self.copying)

    @cached_property
    def rows(self) -> Bool[Tensor, " row"]:
        """Return the mask of rows where the closed form holds: the next token has
        parents, and all slots exist.
        """
        first = 2 * self.hypotheses - 1 if self.third == "slots" else 0
        return has_parent(self.table)[1:] & (torch.arange(self.length) >= first)

    @property
    def first_exact_position(self) -> int:
        """Return the first row where the closed form holds."""
        return int(self.rows.nonzero()[0])

    @cached_property
    def copying(self) -> tuple[Copying, ...]:
        """Return the third-layer heads."""
        following = self.table[:, 1:].T
        return (
            (Copying(1.0, following),) if self.third == "parents" else slots(following, self.rows)
        )

    @property
    def times(self) -> float:
        """Return a bound on the factor from an error of an attention weight to one of
        the output.
        """
        return sum(abs(head.times) for head in self.copying)

    @cached_property
    def takes(self) -> Bool[Tensor, "head row token"]:
        """Return the mask of tokens that each second-layer head gathers at each row."""
        seen = torch.ones(self.length, self.length).tril().bool()
        return seen & (torch.tensor(self.head_of_token) == torch.arange(self.heads)[:, None, None])

    @cached_property
    def fewest(self) -> TokenHeads:
        """Return a proved lower bound on second-layer heads: the last row with a choice
        must distinguish its tokens.
        """
        choice = self.rows & (self.table != self.table[0]).any(dim=0)[1:]
        last = int(choice.nonzero()[-1]) if choice.any() else 0
        return token_heads(self.table[:, : last + 1])

    @cached_property
    def totals(self) -> Float[Tensor, "head row"]:
        """Return C: a key has weight 1/C, and a head with n keys gives (C - n)/C to
        position 0.

        C is the largest number of tokens that the head gathers at any row (evidence
        "sum"), or the number of all tokens with parents up to this one.
        """
        if self.counting == "sum":
            return (
                self.takes.sum(dim=2)
                .amax(dim=1, keepdim=True)
                .clamp_min(1)
                .expand(-1, self.length)
                .double()
            )
        return (
            has_parent(self.table)[:-1].cumsum(dim=0).clamp_min(1).expand(self.heads, -1).double()
        )

    @property
    def size(self) -> float:
        """Return a bound on the heads' sum in a score, divided by beta."""
        return float(self.totals[:, -1].sum()) if self.counting == "sum" else float(self.heads)

    def strength(self) -> float:
        """Return a bound on the difference that the third layer's evidence makes
        between two keys' scores.
        """
        return self.beta * self.size

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: ParentsTask
    ) -> Float[Tensor, "batch time hypothesis"]:
        """Return each hypothesis's weight by the closed form, at every row."""
        tokens = check_states(tokens, task)
        p = self.token_shares(tokens, task, self.temper)
        if self.symmetric:
            p = (p - self.token_shares(tokens, task, -self.temper)) / 2
        evidence = p.cumsum(dim=1)
        if self.counting == "mean":
            seen = has_parent(task.parents(tokens.shape[1])).cumsum(dim=0)
            evidence = evidence / seen.clamp_min(1)[:, None]
        scores = self.beta * evidence
        return torch.softmax(scores + task.prior.log() if self.with_prior else scores, dim=-1)

    def token_shares(
        self, tokens: Int[Tensor, "batch time"], task: ParentsTask, temper: float
    ) -> Float[Tensor, "batch time hypothesis"]:
        r"""Return $\tilde p$ of every token, 0 if it has no parent."""
        logs = log_matrix(task.P, temper, self.log_zero)
        return normalised_probabilities(tokens, task, log_P=logs)

    def expected(self, tokens: Int[Tensor, "batch time"], task: ParentsTask) -> Iterator[Expected]:
        """Yield the closed form of a pass, by loops over the circuit's table."""
        time = tokens.shape[1]
        parents, everywhere = task.parents(time), torch.ones(time, dtype=torch.bool)
        children, stored = has_parent(parents), {}
        for source, power in self.exponents.items():
            shares = self.token_shares(tokens, task, power)
            stored[source] = paid(shares, parents.T, children)
            yield Expected(f"{source}/attention", children, stored[source].clone())
            stored[source][:, 0, 0] = 1.0  # position 0 can attend only to itself
        for head in range(self.heads):
            attention = self.gathering(head, time)
            batch = attention.expand(len(tokens), -1, -1)
            yield Expected(f"2.{head + 1}/attention", everywhere, batch)
            for source, holds in stored.items():
                yield Expected(f"2.{head + 1}/{source}/position", everywhere, attention @ holds)
        weights = self.weights(tokens, task)
        yield from self.copies(weights)
        yield Expected("output", self.rows[:time], mixture(weights, tokens, task))

    def gathering(self, head: int, time: int) -> Float[Tensor, "query key"]:
        """Return the attention of a second-layer head: 1 / C for each token, the rest
        to position 0.
        """
        attention = torch.zeros(time, time, dtype=torch.float64)
        for i in range(time):
            at = self.head_of_token[i % len(self.head_of_token)]
            attention[i, [n for n in range(i + 1) if at[n] == head]] = 1 / self.totals[head, i]
        attention[:, 0] = 1 - attention.sum(dim=1)
        return attention

    def copies(self, weights: Float[Tensor, "batch time hypothesis"]) -> Iterator[Expected]:
        """Yield the attention of each third-layer head, given the hypotheses' weights."""
        rows = self.rows[: weights.shape[1]]
        for a, head in enumerate(self.copying, start=1):
            keys = head.keys[: weights.shape[1]]
            yield Expected(f"3.{a}/attention", rows, paid(weights, keys, rows))

    def _facts(self) -> Mapping[str, Any]:
        return {"hypotheses": self.hypotheses, "heads": self.model_heads, **super()._facts()}

    def check_fit(self, task: ParentsTask) -> None:
        if not torch.equal(self.table, task.parents(task.length + 1)):
            raise ValueError(
                "model and task do not fit: the circuit was written for other parents than the task's"
            )

    def describe(self) -> Iterator[str]:
        first, second, third = self.model_heads
        heads = (
            f"{first} + {second} + {third} heads "
            f"(in the second, {self.fewest.lower} at least if nothing mixes)"
        )
        yield (
            f"{self.hypotheses} hypotheses, target {self.target}, third layer by {self.third}: {heads}"
        )
        yield (
            f"lam {self.lam:g}, beta {self.beta:g}, temper {self.temper:g}, evidence {self.counting}"
        )


def paid(
    weights: Float[Tensor, "batch time hypothesis"],
    keys: Int[Tensor, "time hypothesis"],
    rows: Bool[Tensor, " time"],
) -> Float[Tensor, "batch time time"]:
    """Return attention that gives each hypothesis's weight to its key, at these rows;
    equal keys are summed.
    """
    out = weights.new_zeros((*weights.shape[:2], weights.shape[1]))
    return out.scatter_add_(2, keys.clamp_min(0).expand_as(weights), weights * rows[:, None])
