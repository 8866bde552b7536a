import statistics
from pathlib import Path

import pytest
import torch
from support.pictures import check_drawn_from_file

from sih.experiments import channel_course as course
from sih.experiments.channel_account import AccountConfig, draw
from sih.figures.channel_courses import draw_channel_courses
from sih.models.storage import load_weights
from sih.runs.run_store import RunStore
from sih.runs.run_writer import RunWriter
from sih.training.config import TrainConfig


def test_a_course_from_the_weights_that_a_run_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(lags=(1, 2), states=3, length=20, heads=(1, 2, 1), steps=4, batch=2, held_out=2)
    for _ in RunWriter(config, tmp_path / "runs" / "mine", threads=1, keep_every=2):
        pass
    monkeypatch.setattr(course, "UNFINISHED", tmp_path / "unfinished")
    store = RunStore(tmp_path / "runs")
    settings = course.CourseConfig(sequences=10, reference=12)
    data = course.compute(settings, store)
    (found,) = data.courses
    assert (found.name, found.settled, found.plain) == ("mine", True, False)
    assert [point.step for point in found.points] == [2, 4]
    assert found.points[0] != found.points[1]
    rows = course.table(data)
    assert [row[:2] for row in rows[1:]] == [["mine", "2"], ["mine", "4"]]
    _check_against_loops(found.points[0], store, settings)
    check_drawn_from_file(draw_channel_courses, data)
    (only,) = course.compute(course.CourseConfig((("mine", 4),), 10, 12), store).courses
    assert only.points == found.points[1:]


def _check_against_loops(point: course.CoursePoint, store: RunStore, settings: course.CourseConfig) -> None:
    """Attention on the true lag's candidate, and the part of layer 2's scores that the offset alone explains."""
    run, files = course.kept_weights(store)["mine"]
    model = run.config.model.build(3, 20)
    load_weights(model, files[point.step])
    batch = draw(run.task, AccountConfig(sequences=settings.sequences, reference=settings.reference), "sequences")
    trace = model.trace(batch.tokens)
    last, lags = trace["3.1/attention"].tolist(), batch.lags.tolist()
    mine = [statistics.fmean(rows[i][i - k + 1] for i in range(2, 19)) for rows, k in zip(last, lags, strict=True)]
    assert point.selected == pytest.approx((statistics.fmean(mine), statistics.stdev(mine) / 10**0.5), rel=1e-5)
    parts = torch.zeros(10, dtype=torch.float64)
    for head in ("2.1", "2.2"):
        scores = trace[f"{head}/scores"].double()
        pairs = [(i, j) for i in range(2, 19) for j in range(2, i + 1)]
        x = {(i, j): scores[:, i, j] - scores[:, i, 2 : i + 1].mean(dim=-1) for i, j in pairs}
        by_offset = {o: torch.stack([v for (i, j), v in x.items() if i - j == o]).mean() for o in range(17)}
        left = torch.stack([(v - by_offset[i - j]).square() for (i, j), v in x.items()]).sum(dim=0)
        parts += (1 - left / torch.stack(list(x.values())).square().sum(dim=0)) / 2
    assert point.diagonal == pytest.approx((parts.mean().item(), parts.std().item() / 10**0.5), rel=1e-4)


def test_weights_beside_an_unfinished_run_are_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(lags=(1, 2), states=3, length=20, heads=(1, 2, 1), steps=4, batch=2, held_out=2)
    writer = RunWriter(config, tmp_path / "mine", threads=1, keep_every=2)
    for step in writer:
        if step.step == 3:
            writer.save()
            break
    (tmp_path / "mine" / "kept").rename(tmp_path / "mine-kept")
    monkeypatch.setattr(course, "UNFINISHED", tmp_path)
    (found,) = course.compute(course.CourseConfig(sequences=10, reference=12), RunStore(tmp_path / "none")).courses
    assert (found.name, found.settled, [point.step for point in found.points]) == ("mine", False, [2])
    monkeypatch.setattr(course, "UNFINISHED", tmp_path / "none")
    nothing = course.compute(course.CourseConfig(), RunStore(tmp_path / "none"))
    assert nothing.courses == []
    check_drawn_from_file(draw_channel_courses, nothing)
