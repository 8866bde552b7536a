from pathlib import Path

import pytest
from support.pictures import check_drawn_from_file

from sih.experiments import channel_course as course
from sih.figures.channel_courses import draw_channel_courses
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
    check_drawn_from_file(draw_channel_courses, data)
    (only,) = course.compute(course.CourseConfig((("mine", 4),), 10, 12), store).courses
    assert only.points == found.points[1:]


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
