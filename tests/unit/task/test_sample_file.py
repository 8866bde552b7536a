from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from support.strategies import tasks_with_tokens

import sih
from sih.task import Task
from sih.task.sample_file import load_sample, save_sample


@pytest.mark.parametrize("ending", [".npz", ".csv"])
@given(drawn=tasks_with_tokens())
def test_round_trip(
    ending: str, drawn: tuple[Task, sih.Batch], tmp_path_factory: pytest.TempPathFactory
) -> None:
    task, batch = drawn
    path = tmp_path_factory.mktemp("sample") / f"a{ending}"
    save_sample(path, batch, task, seed=5)
    found = load_sample(path)
    assert torch.equal(found.tokens, batch.tokens)
    assert found.lags is not None
    assert torch.equal(found.lags, batch.lags)
    assert found.seed == 5
    assert found.task is not None
    assert isinstance(found.task, Task)
    assert (found.task.P - task.P).abs().max() < 1e-15
    assert (found.task.lags, found.task.length) == (task.lags, task.length)
    before = path.read_bytes()
    save_sample(path, batch, task, seed=5)
    assert path.read_bytes() == before


def test_other_peoples_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0,1,2\n1,1,0\n")
    np.savez(tmp_path / "a.npz", tokens=np.array([[0, 1, 2], [1, 1, 0]], dtype=np.int32))
    for name in ("a.csv", "a.npz"):
        found = load_sample(tmp_path / name)
        assert found.tokens.tolist() == [[0, 1, 2], [1, 1, 0]]
        assert found.task is None
        assert found.lags is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "ending says its format"),
        ("a.npz", b"PK nonsense", "holds no sample"),
        ("a.npz", b"", "holds no sample"),
        ("a.csv", b"", "holds no sample"),
        ("a.csv", b"0,1\n2\n", "holds no sample"),
        ("a.csv", b"0.5,1\n", "holds no sample"),
        ("a.csv", b"\xff\xfe", "holds no sample"),
        ("a.csv", b'# sih sample {"P": 1}\n', "holds no sample"),
        ("a.csv", b"# sih sample {\n", "holds no sample"),
        ("missing.npz", None, "there is no file"),
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt")  # NumPy also warns of an empty file
def test_files_that_hold_no_sample(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_sample(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_truncated_and_wrong_archives(tmp_path: Path, task: Task, rng: torch.Generator) -> None:
    path = tmp_path / "a.npz"
    save_sample(path, sih.sample(task, 2, rng=rng), task, seed=0)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="holds no sample"):
        load_sample(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(ValueError, match="no array named 'tokens'"):
        load_sample(path)
    np.savez(path, tokens=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"table of whole numbers.*float64"):
        load_sample(path)


@pytest.mark.parametrize(
    "task",
    [sih.FreshTask(3, (1, 2), 8, 0.5), sih.SwitchingTask([[0.9, 0.1], [0.5, 0.5]], (1, 2), 8, 0.2)],
)
def test_matrices_and_lags_of_each_token(
    task: sih.FreshTask | sih.SwitchingTask, tmp_path: Path
) -> None:
    batch = sih.sample(task, 5, rng=0)
    save_sample(tmp_path / "a.npz", batch, task, seed=3)
    found = load_sample(tmp_path / "a.npz")
    assert found.task == task
    assert found.batch is not None
    assert torch.equal(found.batch.lags, batch.lags)
    assert (found.P is None) == (batch.P is None)
    assert torch.equal(sih.truth(found.batch, task), sih.truth(batch, task))
    with pytest.raises(ValueError, match=r"write a .*Task's as \.npz"):
        save_sample(tmp_path / "a.csv", batch, task, seed=3)
    assert not (tmp_path / "a.csv").exists()


def test_a_task_of_another_name(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        tokens=np.zeros((1, 3), dtype=int),
        task_lags=np.array([1]),
        kind=np.array("Other"),
    )
    with pytest.raises(
        ValueError, match="its task is 'Other'; there are Task, FreshTask, SwitchingTask"
    ):
        load_sample(tmp_path / "a.npz")
