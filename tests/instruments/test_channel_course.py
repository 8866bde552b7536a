"""The channels along training: weights that a run kept are found, measured and drawn."""

import csv
import statistics
from pathlib import Path

import pytest
import torch

from research import channel_course as course
from sih.beyond.evidence_paths.channels import AccountConfig, draw
from sih.models.storage import load_weights
from sih.training.config import TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_writer import RunWriter

pytestmark = pytest.mark.slow
CONFIG = TrainConfig(
    lags=(1, 2), states=3, length=20, heads=(1, 2, 1), steps=4, batch=2, held_out=2
)
SIZES = AccountConfig(sequences=10, reference=12)
SMALL = ["--sequences", "10", "--reference", "12"]


def test_a_course_from_the_weights_that_a_run_kept(tmp_path: Path) -> None:
    for _ in RunWriter(CONFIG, tmp_path / "mine", threads=1, keep_every=2):
        pass
    out, run = tmp_path / "course", Run(tmp_path / "mine")
    assert course.main([str(run.folder), *SMALL, "--out", str(out)]) == 0
    assert all(Path(f"{out}.{ending}").stat().st_size > 1000 for ending in ("pdf", "svg", "png"))
    rows = list(csv.reader(Path(f"{out}.csv").read_text().splitlines()))
    assert [row[:2] for row in rows] == [["run", "step"], ["mine", "2"], ["mine", "4"]]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[1][2:] != rows[2][2:]
    found = course.course_of(run, course.kept_weights(run), SIZES)
    assert (found.name, found.settled, found.plain) == ("mine", True, False)
    assert [point.step for point in found.points] == [2, 4]
    _check_against_loops(found.points[0], run)
    assert course.main([str(run.folder), *SMALL, "--steps", "4", "--out", str(out)]) == 0
    assert list(csv.reader(Path(f"{out}.csv").read_text().splitlines())) == [rows[0], rows[2]]


def _check_against_loops(point: course.CoursePoint, run: Run) -> None:
    """Attention on the true lag's candidate, and the part of layer 2's scores that the offset alone explains."""
    model = run.config.model.build(3, 20)
    load_weights(model, course.kept_weights(run)[point.step])
    batch = draw(run.task, SIZES, "sequences")
    trace = model.trace(batch.tokens)
    last, lags = trace["3.1/attention"].tolist(), batch.lags.tolist()
    mine = [
        statistics.fmean(rows[i][i - k + 1] for i in range(2, 19))
        for rows, k in zip(last, lags, strict=True)
    ]
    assert point.selected == pytest.approx(
        (statistics.fmean(mine), statistics.stdev(mine) / 10**0.5), rel=1e-5
    )
    parts = torch.zeros(10, dtype=torch.float64)
    for head in ("2.1", "2.2"):
        scores = trace[f"{head}/scores"].double()
        pairs = [(i, j) for i in range(2, 19) for j in range(2, i + 1)]
        x = {(i, j): scores[:, i, j] - scores[:, i, 2 : i + 1].mean(dim=-1) for i, j in pairs}
        by_offset = {
            o: torch.stack([v for (i, j), v in x.items() if i - j == o]).mean() for o in range(17)
        }
        left = torch.stack([(v - by_offset[i - j]).square() for (i, j), v in x.items()]).sum(dim=0)
        parts += (1 - left / torch.stack(list(x.values())).square().sum(dim=0)) / 2
    assert point.diagonal == pytest.approx(
        (parts.mean().item(), parts.std().item() / 10**0.5), rel=1e-4
    )


def test_weights_that_stand_apart_from_an_unfinished_run_are_found_too(tmp_path: Path) -> None:
    writer = RunWriter(CONFIG, tmp_path / "mine", threads=1, keep_every=2)
    for step in writer:
        if step.step == 3:
            writer.save()
            break
    (tmp_path / "mine" / "kept").rename(tmp_path / "mine-kept")
    run = Run(tmp_path / "mine")
    assert course.kept_weights(run) == {}
    found = course.course_of(run, course.kept_weights(run, tmp_path), SIZES)
    assert (found.name, found.settled, [point.step for point in found.points]) == (
        "mine",
        False,
        [2],
    )
    title = course.draw_channel_courses([found]).axes[0].get_title()
    assert "unsettled at 2 steps" in title


def test_a_run_without_a_course_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, said in (
        ("standard-1.2.3", "standard-1.2.3 kept no weights along the way"),
        ("standard-1.2.3-1.3", "a model of three layers; standard-1.2.3-1.3 is none"),
        ("nothing", "there is no run 'nothing'"),
    ):
        assert course.main([name, "--out", str(tmp_path / "course")]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
