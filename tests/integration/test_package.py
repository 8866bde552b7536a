"""What is shipped: wheel and sdist built, installed in a clean folder, and used from there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import sih

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_same_everywhere() -> None:
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    released = re.findall(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert sih.__version__ == cited
    assert released[:1] in ([], [cited])


def _run(*command: str | Path, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_is_small_and_the_sdist_makes_the_same(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, sdist = built
    assert wheel.stat().st_size < 9e6
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert (unpacked / "tests").is_dir()
    assert not list(unpacked.glob(".venv*"))
    _run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        tmp_path / "again",
        cwd=unpacked,
    )
    (again,) = (tmp_path / "again").glob("*.whl")
    assert _contents(again) == _contents(wheel)


def _contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_folder(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Dependencies are those of this set-up, found by their folder; `sih` is the wheel's, not the one under test."""
    wheel, _ = built
    home = tmp_path / "clean"
    _run(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
    python = home / "bin" / "python"
    install = (
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        wheel,
    )
    _run(sys.executable, *install, cwd=tmp_path)
    (packages,) = home.glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])

    assert _run(home / "bin" / "sih", "--version", cwd=tmp_path) == f"sih {sih.__version__}\n"
    where = _run(python, "-I", "-c", "import sih; print(sih.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(home)
    names = _run(home / "bin" / "sih", "models", "--plain", cwd=tmp_path).split()
    assert "standard-1.2.3" in names
    load = "import sih; print(len([sih.open_run(name).model for name in {names!r}]))"
    assert _run(python, "-I", "-c", load.format(names=names), cwd=tmp_path).strip() == str(
        len(names)
    )
    _run(
        home / "bin" / "sih",
        "explore",
        "--export",
        "page.html",
        "--lags",
        "1",
        "2",
        "--length",
        "16",
        cwd=tmp_path,
    )
    assert (tmp_path / "page.html").stat().st_size > 10_000
