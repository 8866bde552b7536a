from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.commands import run

import sih


def test_a_circuit_there_and_back(
    tmp_path: Path, rng: torch.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=9)
    model = sih.construct(task, readout="logit")
    sih.save(model, tmp_path / "circuit")
    there, back = str(tmp_path / "lens"), str(tmp_path / "back")
    assert (
        run(
            capsys, "export", str(tmp_path / "circuit"), "--to", "transformer-lens", "--out", there
        )[0]
        == 0
    )
    assert run(capsys, "export", there, "--to", "sih", "--out", back) == (
        0,
        f"saved -> {back}\n",
        "",
    )
    tokens = sih.sample(task, 3, rng=rng).tokens
    torch.testing.assert_close(sih.load(back)(tokens), model(tokens), atol=1e-9, rtol=0)


def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: torch.Generator
) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), rng=rng)
    sih.save(model, tmp_path / "ours")
    for words in (
        ("none", "--out", str(tmp_path / "x")),
        (str(tmp_path / "ours"), "--to", "sih", "--out", str(tmp_path / "x")),
        (str(tmp_path / "ours"), "--out", str(tmp_path / "ours")),
        (str(tmp_path / "ours"), "--to", "elsewhere", "--out", str(tmp_path / "x")),
    ):
        code, out, err = run(capsys, "export", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "x").exists()
    assert torch.equal(sih.load(tmp_path / "ours").state_dict()["token"], model.token)
