from __future__ import annotations

import sih
from sih.task.family import LAG_TASKS


def test_every_lag_task_is_made_from_its_own_dictionary() -> None:
    P = [[0.9, 0.1], [0.5, 0.5]]
    made = [
        sih.Task(P, (1, 2), 8),
        sih.FreshTask(2, (1, 2), 8, 0.5),
        sih.SwitchingTask(P, (1, 2), 8, 0.1),
    ]
    assert [type(task).__name__ for task in made] == list(LAG_TASKS)
    for task in made:
        assert LAG_TASKS[type(task).__name__](**task.to_dict()) == task
    assert len(set(made)) == 3
