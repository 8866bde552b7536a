"""How long `import sih` takes beside `import torch` alone."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.timing import medians


def fresh(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    found = medians(
        {"torch": lambda: fresh("import torch"), "sih": lambda: fresh("import sih")}, rounds=5
    )
    print("start: a fresh process (medians of 5)")
    print(
        f"  import torch {found['torch']:.2f} s, import sih {found['sih']:.2f} s, "
        f"{found['sih'] / found['torch']:.2f}x (wanted under 1.5x)"
    )


if __name__ == "__main__":
    main()
