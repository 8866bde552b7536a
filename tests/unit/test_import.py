from __future__ import annotations

import subprocess
import sys
import time

HEAVY = ("matplotlib", "tyro", "rich", "starlette", "uvicorn", "safetensors", "ray", "transformer_lens", "scipy")


def _fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_no_figure_web_or_command_line_library() -> None:
    loaded = _fresh(f"import sys, sih; print([m for m in {HEAVY} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_import_takes_little_longer_than_torch() -> None:
    def seconds(code: str) -> float:
        begin = time.perf_counter()
        _fresh(code)
        return time.perf_counter() - begin

    # Of three tries one will do: what else the machine does may be in the way of the others.
    assert any(seconds("import sih") < 1.5 * seconds("import torch") for _ in range(3))
