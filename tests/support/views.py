"""Views of the explorer's page, as a browser gets them."""

from __future__ import annotations

from typing import Any

from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import all_runs
from sih.explorer.view import View, make_view
from sih.explorer.view_bytes import pack, unpack
from sih.runs.run_store import RunStore

RUNS = all_runs(RunStore())
TRAINED: dict[str, Any] = {"models": [{"kind": "trained", "name": "standard-1.2.3"}], "length": 100}


def view_of(value: dict[str, Any]) -> View:
    return unpack(pack(make_view(read_state(value), RUNS)))
