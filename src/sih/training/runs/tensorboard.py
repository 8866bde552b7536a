"""TensorBoard events of a run, which `tensorboard --logdir RUN` shows.

They are beside the run's other files. They need the extra.
"""

from pathlib import Path
from typing import Any

from sih.base.errors import INSTALL
from sih.training.trainer import Step


class EventWriter:
    """A writer of TensorBoard events: loss, learning rate, mean KL and KL/ML.

    A resumed run appends a file, and TensorBoard then drops the events of a killed run
    after its checkpoint. Events contain times of day, so they are not among the files
    that resuming reproduces byte by byte.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            command = INSTALL.format(extra="tensorboard")
            raise ValueError(
                f"TensorBoard events need the extra tensorboard; in a clone: {command}"
            ) from None
        self.folder, self._new = Path(folder), SummaryWriter
        self._open: Any = None

    def show(self, step: Step) -> None:
        if self._open is None:
            self._open = self._new(str(self.folder), purge_step=step.step)
        if step.loss is not None:
            self._open.add_scalar("loss", step.loss, step.step)
            self._open.add_scalar("learning rate", step.learning_rate, step.step)
        if step.evaluation:
            self._open.add_scalar("KL", step.evaluation.mean_kl, step.step)
            self._open.add_scalar("KL over ML", step.evaluation.kl_over_ml, step.step)

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._open is not None:
            self._open.close()
