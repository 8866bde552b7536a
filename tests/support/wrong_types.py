"""Values of a wrong type for every parameter of every public name, run as a program.

It prints each call that gave neither an error of one line that names the parameter nor an effect, then how many pairs
of a callable and a parameter were tried. It is a program because the tests check annotated types themselves, and
would be first to refuse.
"""

from __future__ import annotations

import dataclasses
import inspect
import shutil
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from beartype import BeartypeConf
from beartype.door import is_bearable
from support.misuse import BATCH, CALLS, FOLDER, MODEL, TASK, TRAINED, shown
from torch import Tensor, nn

import sih
from sih.base.errors import FieldError
from sih.base.record import field_names
from sih.beyond.any_parents import PARENTS_CIRCUITS
from sih.beyond.transformer_lens.lens import export_transformer_lens
from sih.circuits import CIRCUITS
from sih.training.config_parts import SECTIONS, classes_of

ODD: list[Any] = [
    None, True, False, 3, 1.5, 1j, "text", b"x", (), [], {}, {"a": 1}, set(), (1, "2"), (True, 2), [[True]], object(),
    int, len, np.bool_(True), np.zeros(2), np.array([[True]]), torch.tensor(True), torch.zeros(2),
    torch.Generator(), torch.float16, Path("no/such/path"), iter([1, 2]), TASK, BATCH, MODEL,
]  # fmt: skip
"""Values of many types: each parameter is given those that its annotation does not allow."""
INTS_ARE_FLOATS = BeartypeConf(is_pep484_tower=True)
BOOLEANS = (bool, np.bool_)
SAID = {"P": "transition matrix", "value": "transition matrix"}
"""What messages call a parameter, where that is not its name."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a public name, with a right call and the types that are right for it."""

    label: str
    call: Callable[..., Any]
    right: Mapping[str, Any]
    name: str
    annotation: Any

    def allows(self, odd: Any) -> bool:
        """Tell whether a value is of the right type. True and False are no numbers."""
        if _has_booleans(odd) and not _names(self.annotation, BOOLEANS):
            return self.annotation in (Any, object)
        return is_bearable(odd, self.annotation, conf=INTS_ARE_FLOATS)


def problems(parameter: Parameter) -> Iterator[str]:
    """Give it each value of a wrong type, and tell which had neither an error nor an effect."""
    others = {name: value for name, value in parameter.right.items() if name != parameter.name}
    usual = [_effect(parameter.call, parameter.right)]
    with suppress(TypeError, ValueError):  # it may be one that has no default
        usual.append(_effect(parameter.call, others))
    for odd in ODD:
        if parameter.allows(odd):
            continue
        where = f"{parameter.label}({parameter.name}={shown(odd)})"
        try:
            found = _effect(parameter.call, {**others, parameter.name: odd})
        except (ValueError, TypeError) as error:
            if not _clear(error, parameter.name):
                yield f"{where}: {error!r:.200}"
        except Exception as error:
            yield f"{where}: {error!r:.160}"
        else:
            if found in usual:
                yield f"{where}: dropped in silence"
            elif _has_booleans(odd):
                yield f"{where}: taken for a number"


def _clear(error: Exception, name: str) -> bool:
    named = isinstance(error, FieldError) and error.field == name
    text = str(error)
    return "\n" not in text and (named or name in text or SAID.get(name, name) in text)


def _has_booleans(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_booleans, value))
    return isinstance(value, BOOLEANS) or (isinstance(value, np.ndarray) and value.dtype == bool)


def _names(annotation: Any, kinds: tuple[type, ...]) -> bool:
    """Tell whether an annotation names one of these types."""
    parts = (typing.get_origin(annotation), *typing.get_args(annotation))
    return annotation in kinds or any(_names(part, kinds) for part in parts if part is not None)


def _effect(call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call it and return all that can be observed of the result, in a form that compares."""
    return observed(call(**arguments))


def observed(value: Any) -> Any:
    """Return what can be observed of a value, in a form that compares."""
    if isinstance(value, Tensor | np.ndarray):
        numbers = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        return str(numbers.dtype), numbers.shape, numbers.tobytes()
    if isinstance(value, nn.Module):
        return repr(value), observed(value.state_dict())
    if isinstance(value, sih.FreshBatches):
        return observed(next(iter(value)))
    if isinstance(value, Path) and value.is_dir():
        return {path.name: path.read_bytes() for path in sorted(value.iterdir())}
    if dataclasses.is_dataclass(value):
        return type(value), {
            field.name: observed(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): observed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [observed(item) for item in value]
    return repr(value)


def every_parameter() -> Iterator[Parameter]:
    """List the parameters of all public names, by introspection."""
    for name in sih.__all__:
        call, right = CALLS_HERE.get(name, getattr(sih, name)), RIGHT[name]
        original = getattr(sih, name)
        hints = typing.get_type_hints(
            vars(original)["__init__"] if isinstance(original, type) else original
        )
        for parameter in inspect.signature(original).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                given = {parameter.name: parameter.default} if parameter.name not in right else {}
                assert inspect.Parameter.empty not in given.values(), (name, parameter.name)
                yield Parameter(
                    name, call, {**given, **right}, parameter.name, hints[parameter.name]
                )
    yield from _circuit_options()
    yield from _configuration_fields()


def _circuit_options() -> Iterator[Parameter]:
    """List the options of `construct`, of every circuit."""
    parents = sih.ParentsTask(TASK.P, TASK.parents(9), 8)
    doors = (
        (sih.construct, TASK, CIRCUITS),
        (sih.construct_parents, parents, PARENTS_CIRCUITS),
    )
    for construct, task, circuits in doors:
        for target, circuit in circuits.items():
            right = {"task": task, "target": target, **MORE_OPTIONS.get(target, {})}
            for option, annotation in typing.get_type_hints(circuit.Options).items():
                name = f"{construct.__name__} {target}"
                yield Parameter(name, construct, right, option, annotation | None)


def _configuration_fields() -> Iterator[Parameter]:
    """List the fields of a training configuration, of every kind of part, and the parts themselves."""
    for words in CHOICES:
        kinds = classes_of(words).values()
        for kind, field in [(one, name) for one in kinds for name in field_names(one)]:
            hint = typing.get_type_hints(kind)[field]
            annotation = hint | list if _names(hint, (tuple,)) else hint  # as JSON has them
            yield Parameter(f"TrainConfig {words}", sih.TrainConfig, words, field, annotation)
    for part in SECTIONS:
        allowed: Any = SECTIONS[part].kind
        if part in ("model", "optimiser"):
            allowed |= str
        if part == "task":
            allowed |= sih.task.CausalTask
        yield Parameter("TrainConfig", sih.TrainConfig, {}, part, allowed)
    yield Parameter("TrainConfig", sih.TrainConfig, {}, "init", str)


CHOICES = (
    {"model": "standard", "init": "harmonic", "optimiser": "soap"},
    {"model": "disentangled", "init": "harmonic", "optimiser": "adam"},
    {"model": "standard", "init": "uniform", "optimiser": "adam"},
    {"model": "relative", "init": "normal", "optimiser": "adam"},
    {"model": "disentangled", "init": "factors", "optimiser": "adam"},
)
MORE_OPTIONS: dict[str, dict[str, Any]] = {"bayes": {}, "looking": {}}
TINY = sih.TrainConfig(
    lags=(1, 2),
    states=2,
    length=8,
    heads=(1, 1),
    dim=4,
    qk_dim=2,
    steps=1,
    batch=2,
    held_out=2,
    evaluate_every=1,
)
FOUND = sih.infer([0, 1, 1, 0, 1, 0, 0, 1], lags=(1, 2))
LENS = Path(tempfile.mkdtemp()) / "exported"
export_transformer_lens(TRAINED, LENS)
READ = sih.diagnose(TASK, BATCH.tokens, model=TRAINED)
RIGHT: dict[str, dict[str, Any]] = {
    **CALLS,
    "Batch": {"tokens": BATCH.tokens, "lags": BATCH.lags},
    "Diagnosis": {field.name: getattr(READ, field.name) for field in dataclasses.fields(READ)},
    "Inference": {field.name: getattr(FOUND, field.name) for field in dataclasses.fields(FOUND)},
    "Run": {"folder": sih.open_run("disentangled-1.2.3").folder},
    "TrainConfig": {},
    "from_transformer_lens": {"source": LENS},
    "infer": {"tokens": [0, 1, 1, 0, 1, 0, 0, 1], "lags": (1, 2)},
    "permutation_test": {
        "tokens": [0, 1, 1, 0, 1, 0, 0, 1],
        "lags": (1, 2),
        "rng": 0,
        "permutations": 9,
    },
    "to_transformer_lens": {"model": TRAINED},
    "train": {"config": TINY},
}
"""By name, the arguments of a right call; what is left out has its default."""


def _saved(**arguments: Any) -> Path:
    sih.save(**arguments)
    return Path(arguments["path"])


def _bridge(**arguments: Any) -> Any:
    try:
        return sih.to_transformer_lens(**arguments).state_dict()
    except ValueError as error:
        if "the extra lens" not in str(error):
            raise
        return "not installed"


def _trained(**arguments: Any) -> Any:
    *_, last = sih.train(**arguments)
    return last.model


CALLS_HERE: dict[str, Callable[..., Any]] = {
    "save": _saved,
    "to_transformer_lens": _bridge,
    "train": _trained,
}
"""Calls whose result says less than what they did."""


CONFIGURATIONS: list[tuple[dict[str, Any], str]] = [
    ({"seed": 1.5}, "seed must be a whole number, at least 0; got 1.5"),
    ({"matrix_seed": 1.5}, "matrix_seed must be a whole number, at least 0; got 1.5"),
    ({"warmup": 1.5}, "warmup must be a whole number, at least 0; got 1.5"),
    (
        {"lags": torch.tensor([True])},
        "lags.0 must be a whole number, at least 1; got True",
    ),
    ({"lags": b"\x01\x02"}, "lags must be a list"),
    ({"betas": 3}, "betas must be a list; got 3"),
    ({"betas": (0.9,)}, "betas must be a list of 2; got (0.9,)"),
    ({"betas": (0.9, "x")}, "betas.1 must be a number, at least 0; got 'x'"),
    ({"states": 1000, "concentration": "x"}, "concentration must be a number greater than 0"),
    ({"length_schedule": 3}, "length_schedule must be a list; got 3"),
    ({"length_schedule": ((1.5, 5),)}, "length_schedule.0.0 must be a whole number"),
    ({"length_schedule": ((1, 5, 6),)}, "length_schedule.0 must be a list of 2"),
    ({"length_schedule": (3, 5)}, "length_schedule.0 must be a list; got 3"),
    (
        {"init": "harmonic", "frozen_steps": 1.5},
        "frozen_steps must be a whole number, at least 0; got 1.5",
    ),
    (
        {"init": "harmonic", "parts_steps": 1.5},
        "parts_steps must be a whole number, at least 0; got 1.5",
    ),
]
"""Fields of training configurations, and what is said of them."""


def unsaid() -> Iterator[str]:
    """List the configurations above that are not refused in those words."""
    for fields, message in CONFIGURATIONS:
        try:
            yield f"{fields}: {sih.TrainConfig(**fields)}"
        except ValueError as error:
            if message not in str(error) or "\n" in str(error):
                yield f"{fields}: {error!r}"


def main(parameters: Iterable[Parameter]) -> None:
    tried = 0
    for parameter in parameters:
        tried += 1
        for problem in problems(parameter):
            print(problem)
    for problem in unsaid():
        print(problem)
    print(f"{tried} pairs of a callable and a parameter")


if __name__ == "__main__":
    try:
        main(every_parameter())
    finally:
        shutil.rmtree(FOLDER)
        shutil.rmtree(LENS.parent)
