"""Views of the explorer's page, as a browser gets them."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import all_runs
from sih.explorer.view import View, make_view
from sih.explorer.view_bytes import pack
from sih.training.runs.run_store import RunStore

RUNS = all_runs(RunStore())
TRAINED: dict[str, Any] = {"models": [{"kind": "trained", "name": "standard-1.2.3"}], "length": 100}


def view_of(value: dict[str, Any]) -> View:
    return unpack(pack(make_view(read_state(value), RUNS)))


def unpack(data: bytes) -> View:
    """Read what `pack` wrote, as the page's `static/data.js` does."""
    (size,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + size])
    arrays = {}
    for entry in header.pop("arrays"):
        kind = np.dtype(entry["type"])
        count = int(np.prod(entry["shape"]))
        found = np.frombuffer(data, kind, count, 4 + size + entry["offset"])
        arrays[entry["name"]] = found.reshape(entry["shape"])
    return View(header, arrays)
