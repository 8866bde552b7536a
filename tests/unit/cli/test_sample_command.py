from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.commands import run

import sih


def test_the_same_command_writes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.npz", "b.npz"):
        run(
            capsys, "sample", "--size", "4", "--matrix-law", "sparse", "--out", str(tmp_path / name)
        )
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("flag", ["--matrix-law", "--kind"])  # the second is its old name
def test_the_law_of_the_matrix(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.npz"
    run(
        capsys,
        "sample",
        "--size",
        "2",
        flag,
        "uniform",
        "--states",
        "4",
        "--seed",
        "3",
        "--out",
        str(path),
    )
    assert (
        np.load(path)["P"] == sih.as_transition_matrix(sih.random_uniform(4, rng=3)).numpy()
    ).all()


@pytest.mark.parametrize("flags", [["--fresh", "--states", "3"], ["--switch-rate", "0.1"]])
def test_tasks_beyond_the_paper_s_are_sampled_and_predicted(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.npz")
    assert run(capsys, "sample", "--size", "3", "--length", "16", *flags, "--out", path)[0] == 0
    assert "mean KL to the true distribution" in run(capsys, "predict", path)[1]


def test_what_does_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> str:
        code, _, err = run(capsys, *words)
        assert code == 2
        assert err.count("\n") == 1
        return err

    for flags in (["--fresh", "--switch-rate", "0.1"], ["--fresh", "--matrix-law", "sparse"]):
        assert "--fresh draws matrices" in refused(
            "sample", *flags, "--out", str(tmp_path / "a.npz")
        )
    np.save(tmp_path / "P.npy", np.full((2, 2), 0.5))
    for flags in (["--matrix", str(tmp_path / "P.npy")], ["--concentration", "0.5"]):
        message = (
            "a matrix of a file is not drawn"
            if "--matrix" in flags
            else "the law uniform has no concentration"
        )
        for command in ("sample", "construct"):
            out = str(tmp_path / "a.npz")
            assert message in refused(command, "--matrix-law", "uniform", *flags, "--out", out)
    assert "written as .npz" in refused("sample", "--fresh", "--out", str(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("0,1,0,1,1,0\n")
    assert "--fresh" in refused("predict", str(tmp_path / "b.csv"), "--lags", "1", "2")
    assert run(capsys, "predict", str(tmp_path / "b.csv"), "--lags", "1", "2", "--fresh")[0] == 0
