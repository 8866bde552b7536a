from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import run


def test_the_same_command_writes_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.npz", "b.npz"):
        run(capsys, "sample", "--size", "4", "--kind", "sparse", "--out", str(tmp_path / name))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("flags", [["--fresh", "--states", "3"], ["--switch-rate", "0.1"]])
def test_tasks_beyond_the_paper_s_are_sampled_and_predicted(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.npz")
    assert run(capsys, "sample", "--size", "3", "--length", "16", *flags, "--out", path)[0] == 0
    assert "mean KL to the true law" in run(capsys, "predict", path)[1]


def test_what_does_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> str:
        code, _, err = run(capsys, *words)
        assert code == 2
        assert err.count("\n") == 1
        return err

    for flags in (["--fresh", "--switch-rate", "0.1"], ["--fresh", "--kind", "sparse"]):
        assert "--fresh draws matrices" in refused("sample", *flags, "--out", str(tmp_path / "a.npz"))
    assert "written as .npz" in refused("sample", "--fresh", "--out", str(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("0,1,0,1,1,0\n")
    assert "--fresh" in refused("predict", str(tmp_path / "b.csv"), "--lags", "1", "2")
    assert run(capsys, "predict", str(tmp_path / "b.csv"), "--lags", "1", "2", "--fresh")[0] == 0
