r"""Circuits for any table of parents, with every number chosen, and the closed form that their weights must equal.

Hypothesis h has the weight $w_{i,h} \propto \exp(\beta E_{i,h})$ at row i, with $E_{i,h}$ the sum, or the mean, of
$\tilde p_{n,h}$ over the tokens n <= i that have parents: the selective estimator to the letter; the target "bayes"
tempers, sums and adds the logarithm of the prior as for lags. The prediction is $\sum_h w_{i,h} P_{s_j,\cdot}$, j the
parent of token i + 1 under h.

**Which tables can be had.** (1) *No token has a parent under some hypotheses and none under others.* What it says for
"none" would be stored at a key r of layer 1, with score $\log \pi(s_i)$ whatever $s_r$ is. A score is $a(s_i, s_r) +
b(s_i, r) + c(i, s_r) + d(i, r)$, so a would have to be a function of $s_i$ plus one of $s_r$, and then it cannot be
$\log P$ unless all rows of P are alike. (r = i alone knows its token, and what b adds at key i it adds for the
children of i too; so a token without children could be had, which is not worth its lines.) (2) *Rows whose next token
has no parent* are not claimed: every head copies some token. All else can be had, in one of two forms of the third
layer:

- "parents", the paper's: one head, whose key for h is the parent of i + 1 under h. Where two hypotheses have the same
  key, it must have the weight $w_h + w_g$, so the score $\log(e^{\beta E_h} + e^{\beta E_g})$: no affine function of
  what layer 2 holds, unless $E_h = E_g$ always or there is no other key. So the form serves a table iff *hypotheses
  that give token i + 1 the same parent, unless all do, have given the same to all tokens before*: distinct parents and
  any two hypotheses do, three random trees do not. Second-layer heads must tell pairs (row, token) apart
  (`heads/apart.py`).
- "slots": several heads, in each of which every key stands for one hypothesis in all rows. Then heads need only tell
  tokens apart. Its K slots are the positions 0 .. K - 1, slot h for hypothesis h. Head a of the first bank pays $w_a$
  to the parent under a and the others' weights to their slots; one head pays all to the slots, and counts -(K - 1)
  times: $\sum_a (w_a e_{parent_a} + \sum_{h \ne a} w_h e_h) - (K - 1) \sum_h w_h e_h = \sum_a w_a e_{parent_a}$. Where
  the parent is another's slot it stands for the wrong hypothesis there. So there is a second bank, with the spare slots
  K .. 2K - 1 for the others and the keys 0 .. K - 1 for a alone; whichever head does not serve pays $w_a$ to slot a.
  Slots then count -K times and spare slots -(K - 1) times. Rows count from 2K - 1 on, where all slots are.
"""

import itertools
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.checks import FieldError
from sih.construction.circuit import (
    ZERO,
    Circuit,
    Evidence,
    as_heads,
    check_told,
    log_probabilities,
)
from sih.construction.heads.apart import TokenHeads, token_heads
from sih.evidence import check_states, normalised_probabilities
from sih.task import ParentsTask, counted
from sih.task.parents_task import check_parents


class Copying(NamedTuple):
    """Says to which key a third-layer head pays each hypothesis's weight, and how often what it copies counts."""

    times: float
    keys: Int[Tensor, "row hypothesis"]


@dataclass(frozen=True)
class ParentsCircuit:
    """Holds every choice behind the weights of a circuit for a table of parents, apart from P and the prior."""

    target: str
    third: Literal["parents", "slots"]
    parents: tuple[tuple[int, ...], ...]
    """The task's table: of each hypothesis, the parents of tokens 0 to `length`."""
    length: int
    head_of_token: tuple[tuple[int, ...], ...]
    """The second-layer head, from 0, that takes each token, -1 where none does: a row for all queries, or one each."""
    evidence: Evidence
    beta: float
    lam: float = 500.0
    temper: float = 1.0
    log_zero: float = ZERO
    symmetric: bool = False
    prior: bool = False
    sink: ClassVar[bool] = True
    """Heads always rest on position 0."""
    looking: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        shape = {len(row) for row in self.head_of_token}
        if shape != {self.length} or len(self.head_of_token) not in (1, self.length):
            raise ValueError(
                f"head_of_token has a head for each of {self.length} tokens, in 1 or {self.length} rows"
            )

    @cached_property
    def table(self) -> Int[Tensor, "hypothesis next"]:
        return torch.tensor(self.parents)

    @property
    def hypotheses(self) -> int:
        return len(self.parents)

    @cached_property
    def heads(self) -> int:
        """Count the second-layer heads: one at least, which rests if there is nothing to gather."""
        return max(1, 1 + max(max(row) for row in self.head_of_token))

    @property
    def model_heads(self) -> tuple[int, int, int]:
        """Count the heads of each layer."""
        return len(self.exponents), self.heads, len(self.copying)

    @property
    def exponents(self) -> dict[str, float]:
        """Give the exponent of each first-layer head, by its name."""
        return {"1.1": self.temper, "1.2": -self.temper} if self.symmetric else {"1.1": self.temper}

    @cached_property
    def rows(self) -> Bool[Tensor, " row"]:
        """Tell at which rows the circuit is claimed to be right: where the next token has parents, and slots are."""
        first = 2 * self.hypotheses - 1 if self.third == "slots" else 0
        return counted(self.table)[1:] & (torch.arange(self.length) >= first)

    @property
    def first_exact_position(self) -> int:
        """Find the first row that is claimed."""
        return int(self.rows.nonzero()[0])

    @cached_property
    def copying(self) -> tuple[Copying, ...]:
        """List the third-layer heads."""
        following = self.table[:, 1:].T
        return (
            (Copying(1.0, following),) if self.third == "parents" else _slots(following, self.rows)
        )

    @property
    def times(self) -> float:
        """Bound how much larger an error of the output may be than one of an attention weight."""
        return sum(abs(head.times) for head in self.copying)

    @cached_property
    def takes(self) -> Bool[Tensor, "head row token"]:
        """Tell which tokens each second-layer head takes at each row."""
        seen = torch.ones(self.length, self.length).tril().bool()
        return seen & (torch.tensor(self.head_of_token) == torch.arange(self.heads)[:, None, None])

    @cached_property
    def fewest(self) -> TokenHeads:
        """Prove how few second-layer heads can do: the last row that has a choice must tell its tokens apart."""
        choice = self.rows & (self.table != self.table[0]).any(dim=0)[1:]
        last = int(choice.nonzero()[-1]) if choice.any() else 0
        return token_heads(self.table[:, : last + 1])

    @cached_property
    def totals(self) -> Float[Tensor, "head row"]:
        """Return C: a key's weight is 1/C, and a head that sees n of them rests on position 0 with (C - n)/C.

        C is the most tokens that the head takes at any row (evidence "sum"), or all that have parents up to this one.
        """
        if self.evidence == "sum":
            return (
                self.takes.sum(dim=2)
                .amax(dim=1, keepdim=True)
                .clamp_min(1)
                .expand(-1, self.length)
                .double()
            )
        return counted(self.table)[:-1].cumsum(dim=0).clamp_min(1).expand(self.heads, -1).double()

    @property
    def size(self) -> float:
        """Bound what the heads together add to a score, over beta."""
        return float(self.totals[:, -1].sum()) if self.evidence == "sum" else float(self.heads)

    def strength(self) -> float:
        """Bound how far the third layer's evidence can put one key ahead of another."""
        return self.beta * self.size

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON that `from_dict` makes the same circuit of."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "ParentsCircuit":
        """Make a circuit of what `to_dict` wrote, or raise a ValueError: it may be anybody's file."""
        check_told(values, "parents", "head_of_token")
        parents = check_parents(values["parents"])
        if parents.shape[1] != values["length"] + 1:
            raise ValueError(
                f"parents must be those of {values['length']} + 1 tokens; got {parents.shape[1]} columns"
            )
        heads = tuple(as_heads("head_of_token", row) for row in values["head_of_token"])
        return ParentsCircuit(
            **{**values, "parents": tuple(map(tuple, parents.tolist())), "head_of_token": heads}
        )


def read_circuit(values: dict[str, Any]) -> Circuit | ParentsCircuit:
    """Make the circuit, for lags or for any parents, of the plain JSON that its `to_dict` gave."""
    return (
        ParentsCircuit.from_dict(values) if "head_of_token" in values else Circuit.from_dict(values)
    )


def _slots(
    following: Int[Tensor, "row hypothesis"], rows: Bool[Tensor, " row"]
) -> tuple[Copying, ...]:
    """List the heads of the form "slots", with the second bank if a claimed row needs it."""
    count = following.shape[1]
    slots = torch.arange(count).expand_as(following)
    taken = (following < count) & (following != slots)  # another hypothesis's slot
    second = bool(taken[rows].any())
    own, heads = torch.eye(count, dtype=torch.bool), []
    for a in range(count):
        heads.append(Copying(1.0, torch.where(own[a] & ~taken, following, slots)))
    for a in range(count if second else 0):
        heads.append(
            Copying(1.0, torch.where(own[a], torch.where(taken, following, slots), slots + count))
        )
    heads.append(Copying(-float(count if second else count - 1), slots))
    if second:
        heads.append(Copying(-float(count - 1), slots + count))
    return tuple(head for head in heads if head.times)


def check_table(task: ParentsTask) -> None:
    """Raise a FieldError unless a circuit can be written for the table: no token may have a parent for some only."""
    lacks = task.table < 0
    mixed = (lacks.any(dim=0) & ~lacks.all(dim=0)).nonzero().flatten()
    if len(mixed):
        n, h = int(mixed[0]), int(lacks[:, mixed[0]].nonzero()[0])
        why = "a circuit keeps what a token says at its parents, and has no place for 'none'"
        raise FieldError(
            "parents", f"token {n} has no parent under hypothesis {h} and one under another: {why}"
        )
    if lacks[:, 1:].all():
        raise FieldError("parents", "no token has a parent: there is nothing to copy")


def shared_parent(task: ParentsTask) -> tuple[int, int, int] | None:
    """Find a row and two hypotheses with one parent for the next token, though they differ before, if there are such.

    The form "parents" cannot serve such a row, unless all hypotheses share the parent (module's docstring).
    """
    count, choice = len(task.table), (task.table != task.table[0]).any(dim=0)[1:]
    for g, h in itertools.combinations(range(count), 2):
        differ = (task.table[h] != task.table[g]).cumsum(dim=0)[:-1] > 0
        rows = (differ & (task.table[h] == task.table[g])[1:] & choice).nonzero()
        if len(rows):
            return int(rows[0]), g, h
    return None


def parents_weights(
    tokens: Int[Tensor, "batch time"], task: ParentsTask, circuit: ParentsCircuit
) -> Float[Tensor, "batch time hypothesis"]:
    """Return each hypothesis's weight by the closed form, at every row."""
    tokens = check_states(tokens, task)
    p = token_shares(tokens, task, circuit, circuit.temper)
    if circuit.symmetric:
        p = (p - token_shares(tokens, task, circuit, -circuit.temper)) / 2
    evidence = p.cumsum(dim=1)
    if circuit.evidence == "mean":
        seen = counted(task.parents(tokens.shape[1])).cumsum(dim=0)
        evidence = evidence / seen.clamp_min(1)[:, None]
    scores = circuit.beta * evidence
    return torch.softmax(scores + task.prior.log() if circuit.prior else scores, dim=-1)


def token_shares(
    tokens: Int[Tensor, "batch time"], task: ParentsTask, circuit: ParentsCircuit, temper: float
) -> Float[Tensor, "batch time hypothesis"]:
    """Return p-tilde of every token, 0 where it has no parent."""
    return normalised_probabilities(tokens, task, log_P=log_probabilities(task, circuit, temper))
