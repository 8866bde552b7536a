"""Flags of `sih construct` from the options of circuits."""

from __future__ import annotations

import inspect
from typing import get_args, get_origin, get_type_hints

from sih.beyond.any_parents import PARENTS_CIRCUITS
from sih.circuits import CIRCUITS
from sih.cli.circuit_flags import AUTO, choices, circuit_flags, given_options, with_circuit_flags
from sih.cli.construct_command import construct

FLAGS = {flag.name: flag for flag in circuit_flags()}


def test_every_option_that_a_command_line_can_give_is_a_flag() -> None:
    kinds = [*CIRCUITS.values(), *PARENTS_CIRCUITS.values()]
    options = {name for kind in kinds for name in get_type_hints(kind.Options)}
    assert options - FLAGS.keys() == {"profile"}


def test_flags_are_of_four_kinds() -> None:
    def kind(name: str) -> object:
        return get_args(FLAGS[name].annotation)[0]

    assert (kind("sink"), FLAGS["sink"].default) == (bool, False)
    assert (kind("symmetric"), FLAGS["symmetric"].default) == (bool | None, None)
    assert (kind("beta"), FLAGS["beta"].default) == (float | None, None)
    assert FLAGS["third"].default == AUTO
    assert choices(kind("third")) == (AUTO, "mask", "position", "parents", "slots")
    assert choices(kind("evidence")) == ("mean", "sum")


def test_what_is_left_alone_is_left_to_the_circuit() -> None:
    flags = {"third": AUTO, "sink": False, "symmetric": False, "beta": 3.0, "heads": None}
    wanted = {"third": None, "sink": None, "symmetric": False, "beta": 3.0, "heads": None}
    assert given_options(flags) == wanted


def test_the_command_has_them_in_place_of_its_options() -> None:
    parameters = inspect.signature(with_circuit_flags(construct)).parameters
    assert FLAGS.keys() < parameters.keys()
    assert "options" not in parameters
    assert get_origin(parameters["target"].annotation) is not None
