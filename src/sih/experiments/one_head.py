r"""What a single second-layer head can do. `python -m sih.experiments.one_head` prints the table.

In the positional form, a head that attends to offset o with weight $A(o) \ge 0$, read by a Toeplitz block B, gives lag
$k_0$ the score

$$ E_{i,k_0} = \sum_{o} A(o) \sum_k B(o + k - k_0 + 1)\, \tilde p_{i-o,\,k}. $$

With A the indicator of every K-th offset and B of the same offsets plus one, it is the paper's. If every term of a
wrong lag must cancel, no more offsets can be used than `head_offsets` finds. But a mixture of lags is still evidence:
here A and B (and the first layer's exponent) are found by descent on the next-token loss, within the form of the
circuit.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.construction import circuit_weights, construct
from sih.construction.circuit import Circuit, normalised
from sih.evidence import lag_posterior, mixture
from sih.experiments.cells import braces
from sih.experiments.compared import MatricesConfig
from sih.experiments.experiment import Rows
from sih.markov import TokenTensor, random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.runs.run_store import RunStore
from sih.stats import estimate
from sih.task import Batch, Task, sample


@dataclass(frozen=True)
class OneHeadConfig(MatricesConfig):
    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3), (1, 2, 3, 4, 5))
    matrices: int = 3
    sequences: int = 512
    steps: int = 800
    batch: int = 64
    learning_rate: float = 0.03


@dataclass(frozen=True)
class OneHeadTable:
    """Holds mean KL past the first max_lag positions, `mean[lag set][name]`, and its standard error over matrices."""

    config: OneHeadConfig
    mean: list[dict[str, float]]
    error: list[dict[str, float]]


def compute(config: OneHeadConfig, store: RunStore) -> OneHeadTable:
    """Try every way of reading one head on the same sequences, each lag set on the same matrices."""
    found = [{name: estimate(values) for name, values in _by_matrix(config, lags).items()} for lags in config.lag_sets]
    means = [{name: value.mean.item() for name, value in values.items()} for values in found]
    errors = [{name: value.error.item() for name, value in values.items()} for values in found]
    return OneHeadTable(config, means, errors)


def _by_matrix(config: OneHeadConfig, lags: tuple[int, ...]) -> dict[str, list[float]]:
    """Measure mean KL of each way, one number for each matrix."""
    found: dict[str, list[float]] = {}
    for repetition in range(config.matrices):
        rng = torch.Generator().manual_seed(config.seed + repetition)
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        batch = sample(task, config.sequences, rng=rng)
        circuits: dict[str, dict[str, Any]] = {
            "all heads, Bayes": {"target": "bayes"},
            "1 head, the paper's": {"heads": 1, "third": "position"},
            "1 head, Bayes on what it keeps": {"heads": 1, "target": "bayes"},
        }
        if len(lags) == 2:
            circuits["1 head, the paper's for two lags"] = {"target": "two-lags"}
        for name, options in circuits.items():
            circuit: Circuit = construct(task, **options).circuit
            found.setdefault(name, []).append(_kl(circuit_weights(batch.tokens, task, circuit), batch, task))
        for name, start in (("random weights", False), ("the circuit", True)):
            head = MixingHead(task, rng)
            if start:
                head.start_at_the_circuit()
            weights = descend(head, task, config, rng)(batch.tokens).detach()
            found.setdefault(f"1 head, descent from {name}", []).append(_kl(weights, batch, task))
        found.setdefault("BMA", []).append(_kl(lag_posterior(batch.tokens, task), batch, task))
    return found


class MixingHead(torch.nn.Module):
    """Holds one head, its weights over offsets, and how it is read: the score in the module's docstring."""

    def __init__(self, task: Task, rng: torch.Generator) -> None:
        super().__init__()
        self.task = task
        self.span = task.max_lag - task.min_lag
        self.frame = construct(task, heads=1, third="position").circuit
        length = task.length
        self.attend = torch.nn.Parameter(0.5 * torch.randn(length, generator=rng, dtype=torch.float64))
        self.read = torch.nn.Parameter(
            0.3 * torch.randn(length + 2 * self.span + 2, generator=rng, dtype=torch.float64)
        )
        self.log_temper = torch.nn.Parameter(torch.tensor(math.log(0.3), dtype=torch.float64))
        self.log_beta = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    @torch.no_grad()
    def start_at_the_circuit(self, temper: float = 0.05) -> None:
        """Start with the Bayes circuit on the offsets that one head can keep apart, and a little of the others."""
        taken = self.frame.heads_at(torch.arange(self.task.length)) == 0
        self.attend.copy_(torch.where(taken, math.log(math.e - 1), -4.0))  # softplus: 1 and 0.02
        self.read.zero_()
        self.read[torch.arange(self.task.length)[taken] + 1 + self.span] = 1.0
        self.log_temper.fill_(math.log(temper))
        self.log_beta.fill_(math.log(len(self.task.lags) / temper))

    def forward(self, tokens: TokenTensor) -> Float[Tensor, "batch time lag"]:
        log_p = normalised(tokens, self.task, self.frame, 1.0).clamp_min(1e-300).log()
        seen = torch.arange(tokens.shape[1]) >= self.task.max_lag
        p = torch.softmax(self.log_temper.exp() * log_p, dim=-1) * seen[:, None]
        gap = torch.arange(tokens.shape[1])[:, None] - torch.arange(tokens.shape[1])[None, :]
        offsets = torch.arange(tokens.shape[1])
        weights = torch.nn.functional.softplus(self.attend)
        scores = []
        for wanted in self.task.lags:
            score = torch.zeros(tokens.shape, dtype=torch.float64)
            for j, lag in enumerate(self.task.lags):
                kernel = weights * self.read[offsets + lag - wanted + 1 + self.span]
                score = score + p[:, :, j] @ torch.where(gap >= 0, kernel[gap.clamp_min(0)], 0.0).T
            scores.append(score)
        return torch.softmax(self.log_beta.exp() * torch.stack(scores, dim=-1), dim=-1)


def descend(head: MixingHead, task: Task, config: OneHeadConfig, rng: torch.Generator) -> MixingHead:
    """Descend by Adam with a cosine schedule on the loss of the next token, past the first max_lag."""
    optimiser = torch.optim.Adam(head.parameters(), lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.steps)
    first = task.max_lag
    for _ in range(config.steps):
        tokens = sample(task, config.batch, rng=rng).tokens
        law = mixture(head(tokens), tokens, task)[:, first - 1 : -1]
        loss = -law.gather(-1, tokens[:, first:, None]).log().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return head


def table(data: OneHeadTable) -> Rows:
    """Make one row for each way, one column for each lag set."""
    names = list(dict.fromkeys(name for mean in data.mean for name in mean))
    rows = [["", *(braces(lags) for lags in data.config.lag_sets)]]
    for name in names:
        each = zip(data.mean, data.error, strict=True)
        rows.append([name, *(f"{m[name]:.4f}±{e[name]:.4f}" if name in m else "" for m, e in each)])
    return rows


def _kl(weights: Float[Tensor, "batch time lag"], batch: Batch, task: Task) -> float:
    law = mixture(weights, batch.tokens, task)
    return mean_kl(kl_to_truth(law, batch, task), task).mean().item()


if __name__ == "__main__":
    for line in table(compute(OneHeadConfig(), RunStore())):
        print(" | ".join(f"{cell:>32}" for cell in line))
