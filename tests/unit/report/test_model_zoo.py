from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import sih
from sih.cli import main
from sih.report import model_zoo
from sih.report.model_zoo import READ, USES, page, selection_of, selections, selective
from sih.training.runs.run_store import RunStore

ROOT = Path(__file__).parents[3]
NAMES = RunStore().names()
PAGE = ROOT / "docs" / "models.md"


def test_the_page_is_what_the_package_ships() -> None:
    """`sih models --page docs/models.md` writes it anew."""
    assert PAGE.read_text() == page([sih.open_run(name) for name in NAMES])


def test_every_model_is_in_one_table_of_at_most_seven_columns_and_twelve_rows() -> None:
    text = PAGE.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == NAMES
    assert {row.count("|") - 1 for row in rows} == {7}
    for section in text.split("\n## ")[1:]:
        assert section.count("\n| `") <= 12
    assert {line[3:] for line in text.splitlines() if line.startswith("## ")} >= set(USES)


def test_the_selections_are_of_the_models_that_ship() -> None:
    assert sorted(selections()) == NAMES
    assert selective("standard-1.2.3") is True
    assert selective("standard-1.2.3-1.1") is False
    assert selective("fresh-1.2") is None


def test_a_selection_is_the_last_layers_attention_to_the_true_candidate() -> None:
    """Against a loop over lags, without the reading of heads."""
    name = "paper-1.2.3-length32"
    run = sih.open_run(name)
    batch = sih.sample(run.task, READ, rng=0)
    with torch.no_grad():
        last = run.model.trace(batch.tokens).attention[-1][:, 0]
    rows = torch.arange(3, 31)
    on_lag = [last[b, rows, rows - k + 1].mean().item() for b, k in enumerate(batch.lags.tolist())]
    posterior = sih.lag_posterior(batch.tokens, run.task)[:, 3:31]
    exact = [
        posterior[b, :, run.task.lags.index(k)].mean().item()
        for b, k in enumerate(batch.lags.tolist())
    ]
    found = selection_of(run)
    assert found == pytest.approx((sum(on_lag) / READ, sum(exact) / READ), abs=6e-4)
    assert selections()[name] == pytest.approx(list(found or ()), abs=2e-3)


@pytest.mark.slow
def test_all_selections_are_what_the_models_have() -> None:
    for name in NAMES:
        found = selection_of(sih.open_run(name))
        assert selections()[name] == (found and pytest.approx(list(found or ()), abs=2e-3)), name


def test_models_as_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == model_zoo.VERSION
    assert [each["name"] for each in document["models"]] == NAMES
    for each in document["models"]:
        assert {key: type(value) for key, value in each.items()}.items() >= TYPES.items()
        assert set(each) == {*TYPES, "circuit_found", "selective_head"}
        assert set(each["kl_over_ml"]) == {"mean", "error"}
    flagship = next(each for each in document["models"] if each["name"] == "paper-1.2.3")
    assert flagship["papers_setting"] is True
    assert (flagship["lags"], flagship["length"], flagship["heads"]) == ([1, 2, 3], 128, [1, 3, 1])
    evaluation = json.loads((ROOT / "src/sih/shipped/paper-1.2.3/evaluation.json").read_text())
    assert list(flagship["kl_over_ml"].values()) == evaluation["kl_over_ml"]


TYPES = {
    **dict.fromkeys(("name", "kind", "trained", "group", "use"), str),
    **dict.fromkeys(("length", "steps", "seed", "sequences"), int),
    **dict.fromkeys(("lags", "heads"), list),
    **dict.fromkeys(("kl", "ml", "bma", "kl_over_ml"), dict),
    "papers_setting": bool,
}
"""The types of a model's entries that are always there."""


def test_runs_as_one_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lags", "1", "2", "--heads", "1", "1", "1", "--length", "12", "--steps", "2"]
    more = ["--batch", "4", "--held-out", "4", "--out", str(tmp_path / "mine")]
    assert main(["train", *words, *more]) == 0
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/config.json").write_text("{")
    capsys.readouterr()
    assert main(["runs", str(tmp_path), "--json"]) == 0
    found = capsys.readouterr()
    assert "bad" in found.err
    (run,) = json.loads(found.out)["runs"]
    assert (run["name"], run["step"], run["steps"], run["finished"]) == ("mine", 2, 2, True)
    assert run["held_out_kl_over_ml"] > 0
    assert (run["kl_over_ml"], run["sequences"]) == (None, None)
