from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.commands import run

import sih


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_sample_then_predict(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / f"s.{ending}", tmp_path / f"p.{ending}"
    code, said, _ = run(
        capsys, "sample", "--size", "6", "--length", "40", "--lags", "1", "3", "--out", str(file)
    )
    assert code == 0
    assert "6 sequences of length 40 over 5 states" in said
    code, said, _ = run(capsys, "predict", str(file), "--out", str(out))
    assert code == 0
    assert "After the last token" in said
    assert "mean KL" in said
    assert out.exists()


def test_the_mean_kl_leaves_out_the_last_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        capsys,
        "sample",
        "--size",
        "6",
        "--length",
        "9",
        "--lags",
        "1",
        "3",
        "--out",
        str(tmp_path / "s.npz"),
    )
    _, said, _ = run(capsys, "predict", str(tmp_path / "s.npz"), "--predictor", "ngram")
    rng = torch.Generator().manual_seed(0)
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 3), 9)
    batch = sih.sample(task, 6, rng=rng)
    kl = sih.kl_to_truth(sih.ngram(batch.tokens, task), batch, task)
    wanted = sum(kl[:, position].mean().item() for position in range(3, 8)) / 5
    assert f"from position 3 to the last but one: {wanted:.5f} nats" in " ".join(said.split())


def test_too_few_tokens_have_no_mean_kl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        capsys,
        "sample",
        "--size",
        "6",
        "--length",
        "4",
        "--lags",
        "1",
        "3",
        "--out",
        str(tmp_path / "s.npz"),
    )
    code, said, _ = run(capsys, "predict", str(tmp_path / "s.npz"))
    assert code == 0
    assert "no mean KL: that needs 5 tokens or more" in said


def test_predictions_in_the_file_are_the_librarys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.npz"
    run(capsys, "sample", "--size", "3", "--length", "20", "--seed", "4", "--out", str(file))
    rng = torch.Generator().manual_seed(4)
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 20)
    tokens = sih.sample(task, 3, rng=rng).tokens
    expected = {
        "bma": sih.bma(tokens, task),
        "ml": sih.maximum_likelihood(tokens, task),
        "selective": sih.selective(tokens, task, beta=7.0, evidence="sum"),
    }
    for name, law in expected.items():
        code, _, _ = run(
            capsys, "predict", str(file), "--predictor", name, "--beta", "7", "--evidence", "sum"
        )
        assert code == 0
        with np.load(tmp_path / "s.predictions.npz") as found:
            assert np.abs(found["law"] - law.numpy()).max() < 1e-12
            assert found["weights"].shape == (3, 20, 3)
            assert set(found["lag"].flatten()) <= {1, 2, 3}


def test_predict_takes_tokens_without_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text("0,1,1,0,1\n1,1,0,0,1\n")
    np.save(tmp_path / "P.npy", np.array([[0.9, 0.1], [0.4, 0.6]]))
    words = [
        "predict",
        str(tmp_path / "mine.csv"),
        "--matrix",
        str(tmp_path / "P.npy"),
        "--lags",
        "1",
        "2",
    ]
    code, said, _ = run(capsys, *words, "--out", str(tmp_path / "p.csv"))
    assert code == 0
    assert "mean KL" not in said  # the truth is not known
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + 2 * 5
