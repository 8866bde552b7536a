"""Trained models by name: those of a folder of runs, then those of the package."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from sih.base.errors import check_kind, check_path
from sih.base.files import reading
from sih.circuits.circuit_table import circuit_of
from sih.models import storage
from sih.models.base import Model
from sih.training.runs.run import CHECKPOINT, CONFIG, WEIGHTS, Run

SHIPPED = Path(__file__).parents[2] / "shipped"


@dataclass(frozen=True)
class RunStore:
    """Finished runs by name, in `folder` if there is one, otherwise those that ship."""

    folder: Path | None = None

    def names(self, *, papers_task: bool = False) -> list[str]:
        """Return the names of the finished runs, in alphabetical order.

        With `papers_task` only runs on tasks like the paper's are included.
        """
        found = sorted(
            {path.parent.name for folder in self._folders for path in folder.glob(f"*/{WEIGHTS}")}
        )
        return (
            [name for name in found if self.run(name).config.task.is_paper_task]
            if papers_task
            else found
        )

    def find(self, name: str) -> Path | None:
        """Return the folder of the finished run of this name, or None."""
        known = (folder / name for folder in self._folders if name in self.names())
        return next((path for path in known if (path / WEIGHTS).exists()), None)

    def run(self, name: str | Path) -> Run:
        """Return the run in a folder, or the finished run of that name."""
        run = Run(self._folder_of(name, "run"))
        _ = run.config
        return run

    def finished(self, names: Iterable[str]) -> tuple[dict[str, Run], list[str]]:
        """Return the finished runs among `names`, and the names without one.

        Names may be folders.
        """
        names, known = list(names), set(self.names())
        found = (self.run(name) for name in names if name in known or Path(name).is_dir())
        runs = {run.name: run for run in found if run.finished}
        return runs, [name for name in names if Path(name).name not in runs]

    @property
    def _folders(self) -> list[Path]:
        return [SHIPPED] if self.folder is None else [self.folder, SHIPPED]

    def _meant(self, path: Path) -> str:
        """Return the end of a message about an unknown name: the nearest names, and
        where all are.
        """
        beside = [each.parent.name for each in path.parent.glob(f"*/{CONFIG}")]
        known = [str(path.parent / each) for each in beside] if len(path.parts) > 1 else []
        question = nearest_names(str(path), [*known, *self.names()])
        return (
            f"{question or ': it is neither a folder nor a shipped model.'} `sih models` lists all"
        )

    def _folder_of(self, name: str | Path, what: str) -> Path:
        check_path(name, "name")
        folder = Path(name) if Path(name).is_dir() else self.find(str(name))
        if folder is None:
            raise ValueError(f"there is no {what} {str(name)!r}{self._meant(Path(name))}")
        return folder


def nearest_names(name: str, known: Iterable[str]) -> str:
    """Return a question with the three nearest names, or an empty text.

    >>> nearest_names("standrd-1.2", ["standard-1.2", "paper-1.2.3"])
    '; did you mean standard-1.2?'
    """
    nearest = get_close_matches(name, list(known), n=3)
    *others, last = nearest or [""]
    return f"; did you mean {', '.join(others) + ' or ' if others else ''}{last}?" if last else ""


def open_run(name: str | Path) -> Run:
    """Return the run in a folder, or a shipped model's by its name.

    `sih models` lists the names.

    Args:
        name: a folder, or the name of a shipped model.

    Returns:
        The run.

    >>> import sih
    >>> run = sih.open_run("standard-1.2.3")
    >>> run.task
    Task(num_states=5, lags=(1, 2, 3), length=128)
    """
    return RunStore().run(name)


def load(path: str | Path, *, unfinished: bool = False) -> Model:
    """Return the model in a folder, or the shipped model of that name, on the CPU.

    A constructed model has its circuit again, and `sih.verify` finds the task in its
    notes.

    Args:
        path: the folder, saved or trained there, or the name of a shipped model.
        unfinished: accept a run that is still being trained, and return its model at
            the last checkpoint.

    Returns:
        The model.

    >>> import sih
    >>> sih.load("standard-1.2.3").config.heads
    (1, 3, 1)
    """
    check_path(path)
    check_kind("unfinished", unfinished, bool, "True or False")
    folder = RunStore()._folder_of(path, "model")
    run = Run(folder)
    if unfinished and (folder / CHECKPOINT).exists() and not run.finished:
        return run.model
    model = storage.load(folder)
    with reading(folder / storage.NOTES, "holds no circuit"):
        model.circuit = circuit_of(model)
    return model
