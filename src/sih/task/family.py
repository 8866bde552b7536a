"""The tasks of lags, by name: what is trained on, and what samples on disk may come from."""

from sih.task.fresh_task import FreshTask
from sih.task.lags import Task
from sih.task.switching import SwitchingTask

LagTask = Task | FreshTask | SwitchingTask
LAG_TASKS: dict[str, type[Task] | type[FreshTask] | type[SwitchingTask]] = {
    kind.__name__: kind for kind in (Task, FreshTask, SwitchingTask)
}
