"""Full disks (a small tmpfs, as root) and hostile folders: small files that ask for huge models."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torture.damage import originals
from torture.kills import WORK, begin
from torture.trial import Trial, command, forked


def full_disk_trials(share: float) -> Iterator[Trial]:
    if os.getuid() == 0:
        for number in range(int(60 * share)):
            name = [*WORK, "sample"][number % (len(WORK) + 1)]
            yield lambda draw, folder, name=name: _full(draw, folder, name)  # type: ignore[misc]


def _full(draw: random.Random, folder: Path, name: str) -> str:
    """Run a command on a disk with little left: an error of one line, nothing old lost; and with room it goes on."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "torture", str(disk)], check=True)
    try:
        begin(name, disk)
        before = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}
        free = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(
            b"\0" * max(0, free - draw.choice((0, 4096, 20_000, 60_000, 200_000)))
        )
        work = WORK.get(name) or command("sample", "--size", "400", "--out", "s.npz")
        found = forked(work, disk)
        if found.fault:
            return f"{name}: {found.fault}"
        if found.code not in (0, 2):
            return f"{name}: exit code {found.code} on a full disk: {found.err[:200]}"
        if (
            found.code == 2
            and name == "construct"
            and any(path.read_bytes() != was for path, was in before.items())
        ):
            return f"{name}: what was there is lost"
        (disk / "ballast").unlink()
        again = forked(work, disk)
        return "" if again.code == 0 else f"{name}: does not go on with room: {again.err[:200]}"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


HUGE: list[tuple[str, Any]] = [
    *(("heads", heads) for heads in ([1] * 40, [1, 1_000_000, 1], [10**9], [1] * 2000, [2] * 12)),
    *(("length", length) for length in (10**6, 10**9, 10**18)),
    *(("num_states", states) for states in (10**5, 10**9)),
    *(("states", states) for states in (20_000, 10**6, 10**12)),
    *(("dim", dim) for dim in (10**5, 10**8)),
    *(("lags", lags) for lags in ([1, 10**9], list(range(1, 5000)))),
    *(
        ("steps", 10**30),
        ("batch", 10**12),
        ("held_out", 10**12),
        ("qk_dim", 10**9),
        ("concentration", 1e-300),
    ),
]


def folder_trials(share: float) -> Iterator[Trial]:
    for key, value in HUGE[:: max(1, round(1 / share))]:
        for place in ("circuit", "run"):
            for act in ("load", "verify", "runs", "runs rm", "train"):
                yield lambda draw, folder, a=(place, key, value, act): _hostile(folder, *a)  # type: ignore[misc]
    for damage in _LINKS:
        yield lambda draw, folder, damage=damage: _linked(folder, damage)  # type: ignore[misc]


def _hostile(folder: Path, place: str, key: str, value: Any, act: str) -> str:
    """Read a folder whose configuration asks for something huge, in 4 GB and 60 s."""
    shutil.copytree(originals() / place, folder / "runs" / "it")
    path = folder / "runs" / "it" / "config.json"
    path.write_text(json.dumps(_with(json.loads(path.read_text()), key, value)))

    def load() -> int:
        import sih

        try:
            sih.load("runs/it")
            sih.open_run("runs/it").model  # noqa: B018
        except ValueError as error:
            print(f"sih: {error}", file=sys.stderr)
            return 2
        return 0

    words = {
        "verify": ["verify", "runs/it"],
        "runs": ["runs", "runs"],
        "runs rm": ["runs", "rm", "runs/it", "--yes"],
    }
    words["train"] = ["train", "--out", "runs/it"]
    found = forked(load if act == "load" else command(*words[act]), folder, memory=4 * 10**9)
    return f"{place}, {key} {str(value)[:30]}, {act}: {found.fault}" if found.fault else ""


def _with(config: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Put a value wherever a configuration has the key, in a part of it too."""
    found = {
        name: _with(entry, key, value) if isinstance(entry, dict) else entry
        for name, entry in config.items()
    }
    return {**found, key: value} if key in config else found


_LINKS: list[Callable[[Path], Any]] = [
    lambda folder: (folder / "config.json").symlink_to("config.json"),
    lambda folder: (folder / "config.json").mkdir(),
    lambda folder: (folder / "notes.json").mkdir(),
    lambda folder: (folder / "weights.safetensors").symlink_to("/dev/zero"),
    lambda folder: (folder / "config.json").symlink_to("/dev/full"),
    lambda folder: subprocess.run(
        ["truncate", "-s", "100G", str(folder / "weights.safetensors")], check=True
    ),
]


def _linked(folder: Path, damage: Callable[[Path], Any]) -> str:
    shutil.copytree(originals() / "circuit", folder / "it")
    for name in ("config.json", "notes.json", "weights.safetensors"):
        before = (folder / "it" / name).read_bytes()
        (folder / "it" / name).unlink()
        try:
            damage(folder / "it")
        except FileExistsError:
            (folder / "it" / name).write_bytes(before)
            continue
        break
    found = forked(command("verify", "it"), folder, memory=4 * 10**9)
    return (
        f"{sorted(path.name for path in (folder / 'it').iterdir())}: {found.fault}"
        if found.fault
        else ""
    )
