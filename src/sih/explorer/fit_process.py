"""Fits in separate processes: one at a time, with a short queue and a time limit.

A fit takes seconds of a core. In its own process it delays no view, and it can be
stopped at any moment. `sih.two_sided` stores the result in the cache folder.
"""

import sys
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

WAITING = 4
"""Largest number of fits in the queue."""
PATIENCE = 300.0
"""Seconds after which a fit is stopped."""


class FitRefusedError(Exception):
    """Error: a fit was refused or stopped, with the reason in one line."""


class Fits:
    """A queue of fits, made one after the other."""

    def __init__(self) -> None:
        self.turn, self.asked, self.stopped = anyio.Semaphore(1), 0, False
        self.running: Process | None = None

    async def make(self, lags: tuple[int, ...], length: int, heads: int) -> None:
        """Make a fit, and return when it is stored."""
        if self.asked > WAITING:
            raise FitRefusedError(f"{self.asked} fits are waiting for their turn; ask again later")
        self.asked += 1
        try:
            async with self.turn:
                await self._run(
                    f"from sih.heads import two_sided; two_sided({lags}, {length}, {heads})"
                )
        finally:
            self.asked -= 1

    async def _run(self, code: str) -> None:
        if self.stopped:
            raise FitRefusedError("the explorer is ending")
        command = [sys.executable, "-c", code]
        process = await anyio.open_process(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        self.running = process
        try:
            with anyio.fail_after(PATIENCE):
                if await process.wait() != 0:
                    raise FitRefusedError(
                        "the fit was stopped" if self.stopped else "the fit failed"
                    )
        except TimeoutError:
            raise FitRefusedError(
                f"the fit took more than {PATIENCE:g} seconds and was given up"
            ) from None
        finally:
            self.running = None
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()

    def stop(self) -> None:
        """Stop the current fit and refuse all others."""
        self.stopped = True
        if self.running is not None and self.running.returncode is None:
            self.running.kill()
