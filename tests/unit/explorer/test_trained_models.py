from __future__ import annotations

from support.views import RUNS, view_of

from sih.explorer.trained_models import described


def test_the_list_says_how_each_was_trained() -> None:
    listed = {entry["name"]: (entry["length"], entry["trained"], entry["briefly"]) for entry in described(RUNS)}
    assert listed["paper-1.2.3"] == (128, "Adam, nothing added (the paper's setting)", "Adam alone")
    assert listed["paper-1.2.3-length32"] == (32, "Adam, nothing added", "Adam alone")
    assert listed["standard-1.2.3"][1].startswith("SOAP, harmonic start, ")
    assert listed["disentangled-1.3"][2] == "Adam, tied"


def test_every_shipped_model_can_be_shown_with_the_task_it_names() -> None:
    for entry in described(RUNS):
        task = {name: entry[name] for name in ("states", "length", "matrix")}
        value = {**task, "lags": list(entry["lags"]), "models": [{"kind": "trained", "name": entry["name"]}]}
        view = view_of(value)
        after = view.arrays["kl/0"][value["lags"][-1] :]
        assert after.mean() < 0.2, entry["name"]
