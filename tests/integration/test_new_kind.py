"""A third kind of model is a class and a line in `KINDS`: trained, saved, loaded, evaluated, listed like the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

import sih
from sih.base.types import Seed
from sih.cli import main
from sih.models import KINDS, Model, ModelShape
from sih.models.base import BoundedConfig
from sih.models.sites import Site
from sih.training.runs import RunStore


@dataclass(frozen=True)
class BigramShape(ModelShape):
    kind: ClassVar[str] = "bigram"

    spread: float = 0.1
    """how far initial weights lie from 0."""

    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        return Bigram(BigramConfig(num_states, length, spread=self.spread), init, rng)


@dataclass(frozen=True)
class BigramConfig(BigramShape, BoundedConfig):
    pass


class Bigram(Model):
    """Predicts the next token from the current one, without attention: a row of a table."""

    Config = BigramConfig
    Shape = BigramShape
    paths = ("table",)
    config: BigramConfig

    def make_weights(self, dtype: torch.dtype) -> None:
        size = self.config.num_states
        self.table = nn.Parameter(torch.zeros(size, size, dtype=dtype))

    def draw(self, init: str, rng: torch.Generator) -> None:
        self.table.normal_(0, self.config.spread, generator=rng)

    def equations(self, tokens: Tensor, site: Site) -> Tensor:
        return site("output", self.table[tokens])


@pytest.fixture(autouse=True)
def third_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "bigram", Bigram)


def test_it_is_trained_saved_loaded_evaluated_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ["--lags", "1", "2", "--states", "3", "--length", "16"]
    rest = [
        "--steps",
        "200",
        "--batch",
        "32",
        "--learning-rate",
        "0.1",
        "--held-out",
        "64",
        "--spread",
        "0.5",
    ]
    folder = tmp_path / "runs" / "mine"
    assert (
        main(["train", "--model", "bigram", *task, *rest, "--threads", "1", "--out", str(folder)])
        == 0
    )

    run = sih.open_run(folder)
    assert run.config.model == BigramShape(spread=0.5)
    assert run.config.heads == ()
    first, last = (run.evaluations[index]["kl"] for index in (0, -1))
    assert last < 0.8 * first

    model = sih.load(folder)
    assert isinstance(model, Bigram)
    batch = run.config.held_out_batch(run.task)
    with torch.no_grad():
        law = model.predict(batch.tokens).double()
    kl = sih.mean_kl(sih.kl_to_truth(law, batch, run.task), run.task)
    assert kl.mean().item() == pytest.approx(last, rel=1e-5)

    sih.save(model, tmp_path / "saved")
    again = sih.load(tmp_path / "saved")
    assert again.config == model.config
    assert torch.equal(again(batch.tokens), model(batch.tokens))

    assert RunStore(tmp_path / "runs").run("mine").config == run.config
    capsys.readouterr()
    assert main(["runs", str(tmp_path / "runs")]) == 0
    assert "bigram" in capsys.readouterr().out


def test_it_is_seen_as_the_others_are(rng: torch.Generator) -> None:
    model = BigramShape().build(3, 5, init="uniform", rng=rng)
    tokens = torch.tensor([[0, 1, 2, 2]])
    trace = model.trace(tokens)
    assert (trace.names, trace.attention, trace.scores) == (("output",), (), ())
    assert torch.equal(trace.output, model(tokens))
    assert (model.run(tokens, replace={"output": 0.0}).output == 0).all()
    with pytest.raises(ValueError, match="path must be one of table; got 'fused'"):
        model(tokens, path="fused")
    loss = sih.next_token_loss(model, tokens)
    loss.backward()
    assert model.get_parameter("table").grad is not None
