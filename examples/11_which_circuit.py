"""Which circuit solves which task? Run circuits as weights on tasks of the family, and see how far from Bayes each is.

A row is a task: what is hidden is which parent each token follows, or the matrix P, or neither. A column is a way to
predict. The numbers are mean KL from the true law over the positions from 6 on, less that of the exact Bayesian answer,
which is in the second column; 0 solves the task. A circuit that needs P is not run where P is hidden.
"""

from typing import Any

import torch
from torch import Tensor

import sih

STATES, LENGTH, SIZE = 3, 32, 256
MATCH, SMOOTHING = 2.5, 0.2  # of the induction head, the best of a small grid
rng = torch.Generator().manual_seed(0)
P = sih.random_transition_matrix(STATES, rng=rng, concentration=2.0)
CHAIN = [-1, *range(LENGTH)]
TREE = sih.random_parents(1, LENGTH, rng=rng, distinct=False)[0].tolist()


def induction_head(tree: list[int]) -> sih.DisentangledTransformer:
    """Count in context, in two layers: find tokens whose parent was like the next token's, and copy them.

    Head 1.1 copies to every token its parent, head 1.2 the parent of the token after it. Layer 2 looks where they are
    equal. For a chain it is the induction head; for a tree the construction of Nichani et al. P is not used.
    """
    model = sih.DisentangledTransformer(
        STATES,
        LENGTH,
        (2, 1),
        temperature=1.0,
        readout="probability",
        dtype=torch.float64,
        init="zeros",
    )
    for head, parents in (("1.1", tree[:-1]), ("1.2", tree[1:])):
        for position, parent in enumerate(parents):
            model.block(head, "position", "position")[position, max(parent, 0)] = 100.0
    model.block("2.1", "1.2/token", "1.1/token").copy_(MATCH * torch.eye(STATES))
    for position, parent in enumerate(tree[:-1]):
        model.block("2.1", "position", "position")[:, position] = 0.0 if parent >= 0 else -500.0
    model.readout_block("2.1/token").copy_((1 - SMOOTHING) * torch.eye(STATES))
    model.readout_block("2.1/position").fill_(SMOOTHING / STATES)
    return model.requires_grad_(False)


def counted_along(tree: list[int], tokens: Tensor) -> Tensor:
    """Predict by the exact Bayesian answer where rows of P are Dirichlet(1): (n + 1) / (N + states), along the tree."""
    counts = torch.ones(len(tokens), STATES, STATES, dtype=torch.float64)
    each, laws = torch.arange(len(tokens)), []
    for i in range(LENGTH):
        if tree[i] >= 0:
            counts[each, tokens[:, tree[i]], tokens[:, i]] += 1
        row = counts[each, tokens[:, tree[i + 1]]]
        laws.append(row / row.sum(dim=-1, keepdim=True))
    return torch.stack(laws, dim=1)


def drawn_along(tree: list[int]) -> tuple[Tensor, Tensor]:
    """Draw sequences with a matrix of their own each, the root uniform, and the true law of the next token."""
    tokens, truth = (
        torch.zeros(SIZE, LENGTH, dtype=torch.int64),
        torch.zeros(SIZE, LENGTH, STATES, dtype=torch.float64),
    )
    for row in range(SIZE):
        task = sih.ParentsTask(sih.random_transition_matrix(STATES, rng=rng), [tree], LENGTH)
        start, batch = (
            int(torch.randint(STATES, (1,), generator=rng)),
            sih.sample(task, 32, rng=rng),
        )
        while not (batch.tokens[:, 0] == start).any():  # the root as drawn is stationary
            batch = sih.sample(task, 32, rng=rng)
        batch = batch[batch.tokens[:, 0] == start][:1]
        tokens[row], truth[row] = batch.tokens[0], sih.bma(batch.tokens, task)[0]
    return tokens, truth


def kl(law: Tensor, truth: Tensor) -> float:
    gap = (truth * (truth.log() - law.log())).sum(dim=-1)
    return gap[:, 6:-1].mean().item()


def over_bayes(law: Tensor, best: Tensor, truth: Tensor) -> str:
    return f"{round(kl(law, truth) - kl(best, truth), 4) + 0.0:.4f}"


lags = sih.Task(P, (1, 2, 3), LENGTH)
known: dict[str, tuple[sih.Task | sih.ParentsTask, list[int] | None]] = {
    "lag 1, 2 or 3 (the paper's)": (lags, CHAIN),
    "one of 3 random graphs": (
        sih.ParentsTask(P, sih.random_parents(3, LENGTH, rng=rng), LENGTH),
        None,
    ),
    "one of 3 random trees": (
        sih.ParentsTask(P, sih.random_parents(3, LENGTH, rng=rng, distinct=False), LENGTH),
        None,
    ),
    "one tree, P known": (sih.ParentsTask(P, [TREE], LENGTH), TREE),
}
hidden = {
    "one tree, P hidden (Nichani et al.)": None,
    "chain, P hidden (Edelman et al.)": sih.FreshTask(STATES, (1,), LENGTH),
    "lag 1, 2 or 3, P hidden": sih.FreshTask(STATES, (1, 2, 3), LENGTH),
}

print("| task | Bayes | paper's circuit | Bayes circuit | looking | induction head | n-gram |")
print("|---|---|---|---|---|---|---|")
for name, (task, tree) in known.items():
    batch = sih.sample(task, SIZE, rng=rng)
    truth, best = sih.known_lag(batch.tokens, batch.lags, task), sih.bma(batch.tokens, task)
    follows = task.parents(LENGTH + 1)[0].tolist() if tree is None else tree
    targets = ("paper", "bayes", "looking") if task is lags else ("paper", "bayes")
    construct: Any = sih.construct if task is lags else sih.construct_parents
    circuits = [construct(task, target=target) for target in targets]
    laws = [model.predict(batch.tokens, path="written") for model in circuits]
    laws += [induction_head(follows).predict(batch.tokens)]
    laws += [sih.ngram(batch.tokens, lags if task is lags else sih.Task(P, (1,), LENGTH))]
    over = [over_bayes(law, best, truth) for law in laws]
    over[2:2] = ["for lags"] * (3 - len(targets))
    print(f"| {name} | {kl(best, truth):.4f} | {' | '.join(over)} |")
for name, fresh in hidden.items():
    if fresh is None:
        (tokens, truth), tree = drawn_along(TREE), TREE
        best = counted_along(TREE, tokens)
    else:
        batch, tree = sih.sample(fresh, SIZE, rng=rng), CHAIN
        tokens, truth, best = batch.tokens, sih.truth(batch, fresh), sih.bma(batch.tokens, fresh)
    counted = sih.ngram(tokens, fresh or sih.FreshTask(STATES, (1,), LENGTH), pseudo_count=STATES)
    over = [over_bayes(law, best, truth) for law in (induction_head(tree).predict(tokens), counted)]
    print(f"| {name} | {kl(best, truth):.4f} | needs P | needs P | needs P | {' | '.join(over)} |")
