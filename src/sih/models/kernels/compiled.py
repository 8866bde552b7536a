"""Compiles attention.c by whatever C compiler the machine has, the first time it is wanted.

The library is kept in the user's cache folder under a name made of source, flags, compiler and processor, so that a
changed source or another machine gets its own. Without a compiler, or with SIH_COMPILED=0, there is none: attention is
then made of torch's operations, with the same result up to rounding.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

SOURCE = Path(__file__).with_name("attention.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
LANES = 16
"""As in attention.c: rows of attention are padded to a multiple of it."""


def forward(qkv: Float[Tensor, "batch time columns"], heads: int, qk_dim: int) -> tuple[Tensor, Tensor]:
    """Compute the heads' summed output, and the attention, defined up to each row's tile of keys, for `backward`."""
    batch, time, columns = qkv.shape
    values = columns // heads - 2 * qk_dim
    output = qkv.new_empty(batch, time, values)
    attention = qkv.new_empty(batch, heads, time, -(-time // LANES) * LANES)
    _call("attention_forward", (qkv, output, attention), (batch, time, heads, qk_dim, values))
    return output, attention


def backward(qkv: Tensor, attention: Tensor, above: Tensor, qk_dim: int) -> Tensor:
    """Compute the gradient by `qkv`."""
    batch, heads, time, _ = attention.shape
    grad = torch.empty_like(qkv)
    sizes = (batch, time, heads, qk_dim, above.shape[-1])
    _call("attention_backward", (qkv, attention, above.contiguous(), grad), sizes)
    return grad


def wanted(qkv: Tensor) -> bool:
    """Say whether attention goes through the compiled library: float32 on a CPU, and there is one."""
    return qkv.dtype == torch.float32 and qkv.device.type == "cpu" and library() is not None


def _call(name: str, arrays: tuple[Tensor, ...], sizes: tuple[int, ...]) -> None:
    found = library()
    assert found is not None
    assert all(array.is_contiguous() and array.dtype == torch.float32 for array in arrays)
    call: Callable[..., int] = found[name]
    failed = call(*(ctypes.c_void_p(array.data_ptr()) for array in arrays), *map(ctypes.c_long, sizes))
    if failed:
        raise MemoryError(f"no memory for {name} of sizes {sizes}")


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Load the compiled source, or give None, with one line of warning unless that was asked for."""
    if os.environ.get("SIH_COMPILED", "1") == "0":
        return None
    try:
        return ctypes.CDLL(str(_built()))
    except (OSError, subprocess.SubprocessError) as error:
        words = str(error).split()
        why = " ".join(words[:30])
        warnings.warn(f"attention runs without its compiled kernel, at about half the speed: {why}", stacklevel=2)
        return None


def _built() -> Path:
    compiler = _compiler()
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=60).stdout
    content = b"\0".join([SOURCE.read_bytes(), " ".join(FLAGS).encode(), version, _processor().encode()])
    name = f"attention-{hashlib.sha256(content).hexdigest()[:16]}.so"
    kept = _cache() / name
    if kept.exists():
        return kept
    folder = kept.parent if _writable(kept.parent) else Path(tempfile.mkdtemp(prefix="sih-"))
    descriptor, part = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    os.close(descriptor)
    try:
        built = subprocess.run([compiler, *FLAGS, "-o", part, str(SOURCE)], capture_output=True, timeout=120)
        if built.returncode:
            raise OSError(f"{compiler} could not build it: {built.stderr.decode(errors='replace')}")
        os.replace(part, folder / name)  # whole or not at all: several processes may build at once
    finally:
        Path(part).unlink(missing_ok=True)
    return folder / name


def _compiler() -> str:
    names = [name for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError(f"no C compiler found ({', '.join(names)})")
    return found


def _processor() -> str:
    """Describe what -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    described = [line for line in lines if line.startswith(("model name", "flags", "Features"))][:2]
    return " ".join([platform.machine(), platform.processor(), *described])


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sih"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
