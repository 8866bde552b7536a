"""Compilation of attention.c by the machine's C compiler, at its first use.

The library is kept in the user's cache folder, under a name made of source, flags,
compiler and processor. A changed source or another machine thus gets its own. Without a
compiler, or with SIH_COMPILED=0, there is no library. Attention is then made of torch's
operations, with the same result up to rounding.

The logger "sih" reports the compilation, or the lack of a compiler, in one line each,
once for a cache folder. A program without logging prints them on standard error.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError

LOG = logging.getLogger("sih")
SOURCE = Path(__file__).with_name("attention.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-Wno-psabi", "-shared", "-fPIC")
"""Flags of the compiler, followed by the CFLAGS of the environment."""


def forward(
    qkv: Float[Tensor, "batch time columns"],
    r: Float[Tensor, "batch time buckets"] | None,
    heads: int,
    qk_dim: int,
) -> tuple[Float[Tensor, "batch time values"], Float[Tensor, "batch time buckets"] | None]:
    """Return the heads' summed output and, given `r`, attention by bucket."""
    batch, time, columns = qkv.shape
    output = qkv.new_empty(batch, time, columns // heads - 2 * qk_dim)
    u = None if r is None else torch.empty_like(r)
    _call(
        "attention_forward",
        (qkv, r, output, u),
        (batch, time, heads, qk_dim, output.shape[-1], _reach(r, heads)),
    )
    return output, u


def backward(
    qkv: Float[Tensor, "batch time columns"],
    r: Float[Tensor, "batch time buckets"] | None,
    above: Float[Tensor, "batch time values"],
    above_u: Float[Tensor, "batch time buckets"] | None,
    heads: int,
    qk_dim: int,
) -> tuple[Float[Tensor, "batch time columns"], Float[Tensor, "batch time buckets"] | None]:
    """Return the gradients of `qkv` and `r`.

    Given are those of the output and of the attention by bucket.
    """
    grad, grad_r = torch.empty_like(qkv), None if r is None else torch.empty_like(r)
    sizes = (*qkv.shape[:2], heads, qk_dim, above.shape[-1], _reach(r, heads))
    _call("attention_backward", (qkv, r, above, above_u, grad, grad_r), sizes)
    return grad, grad_r


def bucket_scores(
    x: Float[Tensor, "batch time columns"], table: Float[Tensor, "head bucket n"]
) -> Float[Tensor, "batch time buckets"]:
    """Return the product of each row with each bucket's entry in the table.

    Buckets in which a row has no key are left out. `x` has columns for each head, or
    one head's, which all share.
    """
    heads, buckets, _ = table.shape
    r = x.new_empty(*x.shape[:2], heads * buckets)
    _call("bucket_scores", (x, table, r), _bucket_sizes(x, table))
    return r


def bucket_values(
    u: Float[Tensor, "batch time buckets"], table: Float[Tensor, "head bucket n"], shared: bool
) -> Float[Tensor, "batch time columns"]:
    """Return the sum of the table's entries of all buckets, weighted by `u`.

    It is the sum of all heads (`shared`), or of each.
    """
    heads, _, n = table.shape
    x = u.new_empty(*u.shape[:2], n if shared else heads * n)
    _call("bucket_values", (u, table, x), _bucket_sizes(x, table))
    return x


def bucket_gradient(
    u: Float[Tensor, "batch time buckets"],
    x: Float[Tensor, "batch time columns"],
    table: Float[Tensor, "head bucket n"],
) -> Float[Tensor, "head bucket n"]:
    """Return the gradient of the table in the sum of u times
    `bucket_scores(x, table)`.
    """
    grad = torch.empty_like(table)
    _call("bucket_gradient", (u, x, grad), _bucket_sizes(x, table))
    return grad


def _bucket_sizes(x: Tensor, table: Tensor) -> tuple[int, ...]:
    batch, time, columns = x.shape
    heads, buckets, n = table.shape
    return batch, time, heads, buckets, n, columns, 0 if columns == n else n


def _reach(r: Tensor | None, heads: int) -> int:
    return -1 if r is None else r.shape[-1] // heads - 1


def _call(name: str, arrays: tuple[Tensor | None, ...], sizes: tuple[int, ...]) -> None:
    found = library()
    assert found is not None
    given = [array for array in arrays if array is not None]
    assert all(array.is_contiguous() and array.dtype == torch.float32 for array in given)
    pointers = (None if array is None else ctypes.c_void_p(array.data_ptr()) for array in arrays)
    call: Callable[..., int] = found[name]
    if call(*pointers, *map(ctypes.c_long, sizes)):
        raise MemoryError(f"no memory for {name} of sizes {sizes}")


def fits(weights: Tensor) -> bool:
    """Return whether the library can be used with such weights.

    They must be float32 on a CPU, and a compiler must have been found.
    """
    return weights.dtype == torch.float32 and weights.device.type == "cpu" and library() is not None


def check_fits(weights: Tensor) -> None:
    """Raise a FieldError unless the library can be used with such weights."""
    if not fits(weights):
        why = missing() or f"these weights are {weights.dtype} on {weights.device.type}"
        raise FieldError(
            "path", f"path 'compiled' is for float32 on a CPU with a C compiler: {why}; use 'fused'"
        )


def library() -> ctypes.CDLL | None:
    """Return the compiled library, or None without one (`missing` gives the reason)."""
    return _loaded()[0]


def missing() -> str:
    """Return in one line why there is no compiled library, or an empty text."""
    return _loaded()[1]


@lru_cache(maxsize=1)
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    if os.environ.get("SIH_COMPILED", "1") == "0":
        return None, "SIH_COMPILED is 0"
    try:
        return ctypes.CDLL(str(_built())), ""
    except (OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split()[:30])
    _report(
        f"no compiled attention ({why}): torch's operations do it, slower; SIH_COMPILED=0 leaves this line out"
    )
    return None, why


def _report(line: str) -> None:
    """Log a line that no process has logged before, unless the cache folder cannot be
    written to.
    """
    marker = cache_folder() / f"attention-{hashlib.sha256(line.encode()).hexdigest()[:16]}.said"
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.open("x").close()
    except FileExistsError:
        if marker.exists():
            return
    except OSError:
        pass
    LOG.warning("sih: %s", line)


def built_name() -> str:
    """Return the library's name, made of source, flags, compiler and processor."""
    version = subprocess.run(
        [_compiler(), "--version"], capture_output=True, check=True, timeout=60
    ).stdout
    content = b"\0".join(
        [SOURCE.read_bytes(), " ".join(_flags()).encode(), version, processor().encode()]
    )
    return f"attention-{hashlib.sha256(content).hexdigest()[:16]}.so"


def _flags() -> list[str]:
    given = os.environ.get("CFLAGS", "")
    try:
        return [*FLAGS, *shlex.split(given)]
    except ValueError as error:
        raise OSError(f"CFLAGS is not a list of words, {str(error).lower()}: {given}") from None


def _built() -> Path:
    compiler, name = _compiler(), built_name()
    kept = cache_folder() / name
    if kept.exists():
        return kept
    folder = kept.parent if _writable(kept.parent) else Path(tempfile.mkdtemp(prefix="sih-"))
    once = (
        f"once, into {kept}"
        if folder == kept.parent
        else "for this process alone: the cache cannot be written to"
    )
    _report(
        f"compiling attention for this processor with {compiler}, {once}; SIH_COMPILED=0 turns this off"
    )
    descriptor, part = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    os.close(descriptor)
    try:
        built = subprocess.run(
            [compiler, *_flags(), "-o", part, str(SOURCE)], capture_output=True, timeout=120
        )
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


def processor() -> str:
    """Return a description of the processor, as far as -march=native depends on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told = [line for line in lines if line.startswith(("model name", "flags", "Features"))][:2]
    return " ".join([platform.machine(), platform.processor(), *told])


def cache_folder() -> Path:
    """Return the folder for measurements and libraries of this machine."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sih"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
