from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sih.beyond.sweep.ray_cluster import run_on_ray


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is not None, reason="ray is installed: tests/tools tries it"
)
def test_without_ray_one_line_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"in a clone: pip install '\.\[cluster\]'"):
        next(run_on_ray([], "local"))
