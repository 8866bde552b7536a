"""Every public function with every argument wrong in many ways, run as a program: it prints what is not one clear line.

It is a program because the tests check annotated types themselves, and would be first to refuse.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from support.kept_runs import make_kept

import sih

TASK = sih.Task([[0.7, 0.3], [0.4, 0.6]], lags=(1, 2), length=8)
FRESH = sih.FreshTask(num_states=2, lags=(1, 2), length=8)
SWITCHING = sih.SwitchingTask(TASK.P, lags=(1, 2), length=8, rate=0.1)
BATCH = sih.sample(TASK, 4, rng=0)
LAW = sih.bma(BATCH.tokens, TASK)
MODEL = sih.construct(TASK)
TRAINED = sih.Transformer(2, 8, 4, 2, (1, 1))
FOLDER = Path(tempfile.mkdtemp())
os.chdir(FOLDER)
sih.save(MODEL, FOLDER / "model")
np.save(FOLDER / "P.npy", TASK.P.numpy())

WRONG: list[Any] = [
    None, "text", "", b"x", 0, -1, 10**30, 2.5, -1.0, math.nan, True, [], [[]], ["a"], {}, {"a": 1}, (), (1, "2"),
    object(), int, len, torch.zeros(0), torch.zeros(2), torch.zeros(2, 3), torch.full((4, 8), 0.5), torch.tensor(1),
    torch.zeros(4, 8, 2), torch.ones(4, 8, 2), torch.full((4, 8), 9), torch.zeros(4, 99, dtype=torch.int64),
    np.zeros(3), np.zeros((4, 8)), np.array([["a"]]), TASK, BATCH, MODEL, torch.Generator(), torch.float16,
    Path("no/such/path"), FRESH, SWITCHING, sih.sample(FRESH, 4, rng=0), sih.sample(SWITCHING, 4, rng=0),
]  # fmt: skip

TOKENS = {"tokens": BATCH.tokens}
CALLS: dict[str, dict[str, Any]] = {
    "DisentangledTransformer": {
        "num_states": 2,
        "length": 8,
        "heads": (1,),
        "temperature": 1.0,
        "readout": "logit",
    }
    | {"dtype": torch.float32, "init": "uniform", "rng": 0},
    "FreshBatches": {"task": TASK, "size": 2, "rng": 0, "seed": None},
    "FreshTask": {
        "num_states": 2,
        "lags": (1, 2),
        "length": 8,
        "concentration": 1.0,
        "lag_prior": [0.5, 0.5],
    },
    "LagTracker": {"task": TASK, "forgetting": 1.0},
    "ParentsTask": {"P": TASK.P, "parents": TASK.parents(9), "length": 8, "prior": [0.5, 0.5]},
    "DisentangledRelativeTransformer": {
        "num_states": 2,
        "reach": 3,
        "heads": (1,),
        "temperature": 1.0,
        "readout": "logit",
        "dtype": torch.float32,
        "init": "uniform",
        "rng": 0,
    },
    "RelativeTransformer": {
        "num_states": 2,
        "reach": 3,
        "dim": 4,
        "qk_dim": 2,
        "heads": (1,),
        "offsets": "both",
    }
    | {
        "start": False,
        "temperature": 1.0,
        "readout": "logit",
        "dtype": torch.float32,
        "init": "uniform",
        "rng": 0,
    },
    "SwitchingTask": {"P": TASK.P, "lags": (1, 2), "length": 8, "rate": 0.1},
    "Task": {"P": TASK.P, "lags": (1, 2), "length": 8, "lag_prior": [0.5, 0.5]},
    "Transformer": {
        "num_states": 2,
        "length": 8,
        "dim": 4,
        "qk_dim": 2,
        "heads": (1,),
        "mlp_dim": None,
    }
    | {
        "activation": "relu",
        "temperature": 1.0,
        "readout": "logit",
        "dtype": torch.float32,
        "init": "uniform",
        "rng": 0,
    },
    "ablate": {
        "model": MODEL,
        "batch": BATCH,
        "names": "2.1/attention",
        "how": "mean",
        "reference": None,
    }
    | {"rng": 0, "into": None},
    "as_transition_matrix": {"value": TASK.P},
    "bma": {**TOKENS, "task": TASK},
    "circuit_weights": {**TOKENS, "task": TASK, "circuit": MODEL.circuit},
    "circuit_edges": {"model": MODEL},
    "claim_expectations": {"P": TASK.P, "lags": (1, 2)},
    "claim_status": {"lags": (1, 2)},
    "construct": {
        "task": TASK,
        "target": "paper",
        "readout": "logit",
        "dtype": torch.float64,
        "beta": 1.0,
        "lam": 500.0,
    }
    | {"heads": 1, "third": None, "evidence": "mean", "temper": 1.0},
    "construct_parents": {
        "task": sih.ParentsTask(TASK.P, TASK.parents(9), 8),
        "target": "paper",
        "readout": "logit",
        "dtype": torch.float64,
    }
    | {"beta": 1.0, "lam": 500.0, "third": None, "evidence": "mean", "temper": 1.0},
    "counterfactual_pairs": {"task": TASK, "size": 1, "seed": 0},
    "diagnose": {"task": TASK, **TOKENS, "model": TRAINED},
    "edge_scores": {"model": MODEL, "pairs": sih.counterfactual_pairs(TASK, 1), "method": "eap"},
    "evaluate": {"run": "paper-1.2.3-length32"},
    "evidence_flow": {"model": MODEL, "task": TASK, "batch": BATCH},
    "exact_heads": {"lags": (1, 2)},
    "formation": {"run": make_kept(Path(tempfile.mkdtemp()) / "kept").folder},
    "head_offsets": {"lags": (1, 2), "heads": 1},
    "kl_to_truth": {"prediction": LAW, "batch": BATCH, "task": TASK},
    "known_circuit": {"name": "1.2-two-lags", "seed": 0},
    "known_lag": {**TOKENS, "lags": BATCH.lags, "task": TASK},
    "lag_accuracy": {
        "weights": sih.lag_posterior(BATCH.tokens, TASK),
        "batch": BATCH,
        "task": TASK,
    },
    "lag_log_likelihood": {**TOKENS, "task": TASK},
    "lag_posterior": {**TOKENS, "task": TASK},
    "least_heads": {"lags": (1, 2)},
    "load": {"path": FOLDER / "model"},
    "load_circuits": {"folder": FOLDER},
    "load_transition_matrix": {"path": FOLDER / "P.npy"},
    "maximum_likelihood": {**TOKENS, "task": TASK},
    "mean_kl": {"kl": sih.kl_to_truth(LAW, BATCH, TASK), "task": TASK},
    "mixture": {"weights": sih.lag_posterior(BATCH.tokens, TASK), **TOKENS, "task": TASK},
    "next_token_loss": {
        "model": TRAINED,
        **TOKENS,
        "path": "plain",
        "rows": 2,
        "laws": sih.truth(BATCH, TASK),
    },
    "ngram": {**TOKENS, "task": TASK, "pseudo_count": 1.0},
    "open_run": {"name": "disentangled-1.2.3"},
    "patch": {
        "model": MODEL,
        "clean": BATCH,
        "corrupt": BATCH,
        "names": ["2.1/output"],
        "into": None,
    },
    "plug_in": {**TOKENS, "task": TASK, "pseudo_count": 1.0},
    "random_doubly_stochastic": {"num_states": 3, "rng": 0, "concentration": 1.0},
    "random_near_periodic": {
        "num_states": 3,
        "rng": 0,
        "period": 2,
        "noise": 0.1,
        "concentration": 1.0,
    },
    "random_parents": {"hypotheses": 2, "length": 5, "rng": 0, "distinct": True, "reach": None},
    "random_sparse": {"num_states": 3, "rng": 0, "nonzero": 2, "concentration": 1.0},
    "random_transition_matrix": {
        "num_states": 3,
        "rng": 0,
        "concentration": 1.0,
        "law": "dirichlet",
    },
    "random_uniform": {"num_states": 3, "rng": 0},
    "sample": {"task": TASK, "size": 2, "rng": 0, "lag": 1},
    "save": {"model": MODEL, "path": FOLDER / "again", "stored": None},
    "selective": {**TOKENS, "task": TASK, "beta": 1.0, "evidence": "mean", "temper": 1.0},
    "selective_weights": {**TOKENS, "task": TASK, "beta": 1.0, "evidence": "mean", "temper": 1.0},
    "stationary_distribution": {"P": TASK.P},
    "stationary_law": {**TOKENS, "task": TASK},
    "to_standard": {"model": MODEL},
    "truth": {"batch": BATCH, "task": TASK},
    "two_sided": {"lags": (1, 2), "length": 8, "heads": 2},
    "verify": {"model": MODEL, "task": TASK, "size": 4, "rng": 0},
}
"""By name, the arguments of a right call."""


def shown(value: Any) -> str:
    return " ".join(repr(value).split())[:60]


def refusals(call: Callable[..., Any], right: dict[str, Any]) -> list[str]:
    """Call it rightly once, then with each argument wrong, and list what was raised but was not one clear line."""
    call(**right)
    found = []
    for name in right:
        for wrong in WRONG:
            try:
                call(**{**right, name: wrong})
            except ValueError as error:
                if not str(error) or "\n" in str(error):
                    found.append(f"{name}={shown(wrong)}: not one line: {error!r:.200}")
            except Exception as error:
                found.append(f"{name}={shown(wrong)}: {error!r:.160}")
    return found


def methods() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    calls: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {}
    for kind, model in (("standard", TRAINED), ("disentangled", MODEL)):
        for name in ("forward", "predict", "trace"):
            calls[f"{kind}.{name}"] = (getattr(model, name), {**TOKENS, "path": model.paths[-1]})
        calls[f"{kind}.run"] = (model.run, {**TOKENS, "replace": None})
    calls["LagTracker.update"] = (lambda token: sih.LagTracker(TASK).update(token), {"token": 1})
    return calls


if __name__ == "__main__":
    every = {name: (getattr(sih, name), right) for name, right in CALLS.items()} | methods()
    try:
        for name, (call, right) in every.items():
            for problem in refusals(call, right):
                print(f"{name}({problem})")
    finally:
        shutil.rmtree(FOLDER)
