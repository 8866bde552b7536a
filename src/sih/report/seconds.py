"""Duration of each figure, to estimate the remaining time."""

from __future__ import annotations

SECONDS = {
    "teaser": 1.3,
    "mechanism": 1.5,
    "certificates": 3.1,
    "claim_histogram": 3.6,
    "beta": 9.6,
    "predictors": 7.0,
    "beta_along": 2.2,
    "constructions": 21.2,
    "trained": 19.4,
    "attention_maps_3.5.7_lag3": 2.1,
    "attention_maps_1.2.3.4.5_heads1": 0.8,
    "attention_maps_1.2.3.4.5_heads2": 0.9,
    "attention_maps_1.2.3.4.5_heads3": 1.5,
    "attention_maps_1.2_lag2": 0.9,
    "attention_maps_1.2.3_lag1": 2.0,
    "attention_maps_1.2.3_lag2": 2.3,
    "attention_maps_1.2.3_lag3": 2.2,
    "attention_maps_1.3.4_lag1": 2.1,
    "attention_maps_1.3.4_lag3": 1.7,
    "attention_maps_1.3.4_lag4": 2.2,
    "agreement": 10.8,
    "scaling": 9.0,
    "claim_expectations": 1.8,
    "claim_expectations_25": 1.8,
    "claim_cumulative": 1.9,
    "claim_cumulative_25": 1.9,
    "claim_theorem": 1.0,
    "wrong_lag": 9.5,
    "heads": 0.7,
    "errata": 1.7,
    "recipes": 2.5,
    "positions": 7.4,
    "other_sizes": 2.6,
    "two_layers": 3.2,
    "channels": 291.2,
    "few_heads": 46.7,
    "cancellation": 1.2,
    "switching": 13.3,
}
"""Seconds of one core for each figure with its data, the first time on a machine, by
`python -m benchmarks.figure_seconds`."""


def seconds_of(name: str) -> float:
    """Return an experiment's relative duration; the mean if it was not measured."""
    return SECONDS.get(name, sum(SECONDS.values()) / len(SECONDS))
