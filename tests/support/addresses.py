"""What the address of the explorer's page says."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

from sih.explorer.parse_state import read_state
from sih.explorer.state import State


def from_fragment(text: str) -> State:
    """Read a state from the fragment of an address."""
    return read_state(
        {name: json.loads(entry) for name, entry in parse_qsl(text.removeprefix("#"))}
    )
