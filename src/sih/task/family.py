"""The tasks with lags, by name. A model can be trained on any of them."""

from sih.task.fresh_task import FreshTask
from sih.task.lags import Task
from sih.task.switching import SwitchingTask

LagTask = Task | FreshTask | SwitchingTask
LAG_TASKS: dict[str, type[Task] | type[FreshTask] | type[SwitchingTask]] = {
    kind.__name__: kind for kind in (Task, FreshTask, SwitchingTask)
}
