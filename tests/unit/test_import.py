from __future__ import annotations

import subprocess
import sys
import time

HEAVY = (
    "matplotlib",
    "tyro",
    "rich",
    "starlette",
    "uvicorn",
    "safetensors",
    "ray",
    "transformer_lens",
    "scipy",
)


def _fresh(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


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


def test_a_picture_loads_what_draws_it_alone() -> None:
    """No experiment, no subject past those that `import sih` needs: a handful of modules."""
    task = "task = sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 16)"
    ours = "{name for name in sys.modules if name.startswith('sih')}"
    code = f"before = {ours}; task.plot(); print(*sorted({ours} - before))"
    loaded = _fresh(f"import sys, sih; {task}; {code}").split()
    results = {"sih.results", "sih.results.maps", "sih.results.style"}
    assert set(loaded) == results | {"sih.results.plots", "sih.results.plots.task"}


def test_a_line_in_words_loads_no_matplotlib() -> None:
    task = "task = sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 16)"
    code = f"{task}; repr(task); repr(sih.construct(task))"
    assert _fresh(f"import sys, sih; {code}; print('matplotlib' in sys.modules)").strip() == "False"


def test_the_package_lists_its_names_by_what_one_does() -> None:
    import sih

    listed = [
        word for line in (sih.__doc__ or "").split("\n\n")[2].splitlines() for word in line.split()
    ]
    assert sorted(word for word in listed if word in sih.__all__) == sih.__all__
    assert len((sih.__doc__ or "").splitlines()) <= 25
    assert set(dir(sih)) == {*sih.__all__, "__version__"}
