r"""Writes one layer of a trained model anew from the account of what it does: what survives, the account explains.

    python research/layer_swaps.py --out layer_swaps.csv

A row is of one disentangled model with heads (1, H, 1): its mean KL past max_lag as it is and with a layer written
anew, each with its standard error, on the first 128 sequences of the figure `channels`. What follows from the table is
in docs/results/evidence-paths.md, "Is this account sufficient?".

- "layer 1": its scores become $b \log P$ at the lags, b the slope of its own scores on log P there, and nothing else.
- "layer 2": of each head only the position block and the block position | 1.1/position stay, where layer 1 looked
  against the query's position: no tokens, nothing of what layer 1 found at the query.
- "layer 2 by residues": the latter block, past offset `NEAR`, also becomes its mean by residue modulo its period.
- "layer 3": a matched filter of layer 2's phases. The candidates $j = i - k + 1$ alone are allowed, and their scores
  are $\beta \sum_{h,m} a_h[j,m]\, G_h(i-m+1)$ less its mean over sequences, with $\beta$ as large as makes the evidence
  vary as much as it did, of the sign with which layer 1 follows log P. Values and readout stay the trained ones.

The first three are measured in the last layer's scores alone.
"""

import argparse
import copy
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.correlation import pair_log_probabilities
from sih.attention.distances import Measured, measured
from sih.attention.interventions import CHUNK, values_until
from sih.base.files import check_place, write_rows
from sih.beyond.evidence_paths.channels import AccountConfig, draw
from sih.beyond.evidence_paths.phases import NEAR, by_offset, has_phases, period
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.fast.threads import limited_threads
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.results.models import Models, shipped_models
from sih.results.tables import with_error
from sih.task import Batch, Task
from sih.training.runs.run_store import RunStore

FORBID = -1e4
SEQUENCES = 128
"""Sequences that a model is measured on."""
WAYS = ("layer 1", "layer 2", "layer 2 by residues", "layer 3")


@torch.no_grad()
def swapped_layers(
    model: DisentangledTransformer, task: Task, tokens: Int[Tensor, "batch time"]
) -> dict[str, DisentangledTransformer]:
    """Give copies of a model of heads (1, H, 1), each with one layer written anew. Means are over the tokens."""
    if len(model.config.heads) != 3 or model.config.heads[0] != 1 or model.config.heads[2] != 1:
        raise ValueError(f"layers are written anew for heads (1, H, 1); got {model.config.heads}")
    slope = _slope(model, task, tokens)
    ways = {"layer 1": copy.deepcopy(model), "layer 2": copy.deepcopy(model)}
    _write_first(ways["layer 1"], task, slope)
    second = ways["layer 2"]
    for head in range(1, model.config.heads[1] + 1):
        kept = {
            key: second.block(f"2.{head}", "position", key).clone()
            for key in ("position", "1.1/position")
        }
        second.A[1].data[head - 1].zero_()
        for key, block in kept.items():
            second.block(f"2.{head}", "position", key).copy_(block)
    ways["layer 2 by residues"] = copy.deepcopy(second)
    for head in range(1, model.config.heads[1] + 1):
        block = ways["layer 2 by residues"].block(f"2.{head}", "position", "1.1/position")
        block.copy_(_by_residues(block.double()))
    ways["layer 3"] = copy.deepcopy(model)
    _write_third(ways["layer 3"], task, tokens, 1.0 if slope > 0 else -1.0)
    return ways


@torch.no_grad()
def swap_costs(
    model: DisentangledTransformer, task: Task, batch: Batch, reference: Batch
) -> dict[str, Measured]:
    """Measure the mean KL past max_lag with each layer written anew, by what was written."""
    found = {}
    for name, written in swapped_layers(model, task, reference.tokens[: 2 * CHUNK]).items():
        laws = []
        for tokens in batch.tokens.split(CHUNK):
            if name == "layer 3":
                laws.append(written.predict(tokens))
                continue
            seen = values_until(written, tokens, {}, ("3.1/query", "3.1/key"))
            laws.append(model.law(model.run(tokens, replace=seen).output))
        found[name] = measured(mean_kl(kl_to_truth(torch.cat(laws), batch, task), task))
    return found


def _slope(model: DisentangledTransformer, task: Task, tokens: Int[Tensor, "batch time"]) -> float:
    """Fit the first layer's scores at the lags by log P, a constant for each query taken off."""
    rows = torch.arange(task.max_lag, tokens.shape[1])
    pairs = (model.trace(tokens)["1.1/scores"].double(), pair_log_probabilities(tokens, task.P))
    y, x = (torch.stack([values[:, rows, rows - k] for k in task.lags], dim=-1) for values in pairs)
    x, y = x - x.mean(dim=-1, keepdim=True), y - y.mean(dim=-1, keepdim=True)
    return ((x * y).sum() / x.square().sum()).item()


def _write_first(model: DisentangledTransformer, task: Task, slope: float) -> None:
    model.A[0].data.zero_()
    gap = _gaps(task.length)
    model.block("1.1", "token", "token").copy_(slope * task.P.log().T)
    model.block("1.1", "position", "position").copy_(
        torch.where(torch.isin(gap, torch.tensor(task.lags)), 0.0, FORBID)
    )


def _write_third(
    model: DisentangledTransformer, task: Task, tokens: Int[Tensor, "batch time"], sign: float
) -> None:
    trace, gap = model.trace(tokens), _gaps(task.length)
    used = (gap >= max(task.max_lag - 1, 1)) & (gap + 1 < task.length)
    filters, read = [], torch.zeros(())
    for head in range(1, model.config.heads[1] + 1):
        G = by_offset(model.block(f"2.{head}", "position", "1.1/position").double())
        filters.append(torch.where(used, G[(gap + 1).clamp(0, task.length - 1)], 0.0))
        read = read + filters[-1] @ trace[f"2.{head}/attention"].double().mT
    spreads = [_evidence(scores, task).std() for scores in (trace["3.1/scores"].double(), read)]
    beta = sign * spreads[0] / spreads[1] if spreads[1] > 0 else 0.0
    model.A[2].data.zero_()
    for head, block in enumerate(filters, 1):
        model.block("3.1", "position", f"2.{head}/position").copy_(beta * block)
    allowed = torch.where(torch.isin(gap + 1, torch.tensor(task.lags)), 0.0, FORBID)
    model.block("3.1", "position", "position").copy_(allowed - beta * read.mean(dim=0))


def _evidence(
    scores: Float[Tensor, "batch time time"], task: Task
) -> Float[Tensor, "batch row lag"]:
    rows = torch.arange(task.max_lag, scores.shape[1] - 1)
    x = torch.stack([scores[:, rows, rows - k + 1] for k in task.lags], dim=-1)
    x = x - x.mean(dim=-1, keepdim=True)
    return x - x.mean(dim=0)


def _by_residues(block: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    profile, gap = by_offset(block), _gaps(len(block))
    least, _ = period(profile)
    offset = torch.arange(len(profile))
    for residue in range(least):
        far = (offset % least == residue) & (offset > NEAR)
        profile[far] = profile[far].mean()
    return torch.where(gap >= 0, profile[gap.clamp_min(0)], block)


def _gaps(length: int) -> Int[Tensor, "query key"]:
    return torch.arange(length)[:, None] - torch.arange(length)


def row_of(name: str, store: RunStore) -> list[str]:
    """Measure one model, or raise a ValueError that says why its layers cannot be written anew."""
    run = store.run(name)
    model, task, config = run.model, run.task, AccountConfig()
    if (
        not isinstance(model, DisentangledTransformer)
        or not has_phases(model, task)
        or not (task.P > 0).all()
    ):
        raise ValueError(
            f"{name} is no disentangled model with heads (1, H, 1) and a matrix without zeros"
        )
    batch, reference = (draw(task, config, part) for part in ("sequences", "reference"))
    batch = Batch(batch.tokens[:SEQUENCES], batch.lags[:SEQUENCES])
    with torch.no_grad():
        laws = torch.cat([model.predict(tokens) for tokens in batch.tokens.split(CHUNK)])
    intact = measured(mean_kl(kl_to_truth(laws, batch, task), task))
    costs = swap_costs(model, task, batch, reference)
    return [name, with_error(*intact), *(with_error(*costs[way]) for way in WAYS)]


def main(words: Sequence[str] | None = None) -> int:
    """Write the table. The exit code is 0, 2 if a model or a flag is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", help="names of models; all that ship and fit unless given"
    )
    parser.add_argument("--out", type=Path, required=True, help="the table, a .csv file")
    given, store = parser.parse_args(words), RunStore()
    try:
        check_place(given.out)
        names = given.models or list(shipped_models(Models("disentangled")))
        with limited_threads(1):
            rows = [row_of(name, store) for name in names]
        write_rows(given.out, [["model", "intact", *WAYS], *rows])
    except ValueError as error:
        print(f"layer_swaps: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
