"""Fits in processes of their own: one at a time, a few may wait, and none goes on for ever.

A fit takes seconds of a core. Elsewhere it holds up no view, and it can be ended at any moment. What it finds is kept
in the cache folder by `sih.two_sided`.
"""

import sys
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

WAITING = 4
"""Fits that may wait for their turn."""
PATIENCE = 300.0
"""Seconds after which a fit is given up."""


class FitRefusedError(Exception):
    """Says in one line why a fit was not made."""


class Fits:
    """Makes fits for whoever asks, in turn."""

    def __init__(self) -> None:
        self.turn, self.asked, self.stopped = anyio.Semaphore(1), 0, False
        self.running: Process | None = None

    async def make(self, lags: tuple[int, ...], length: int, heads: int) -> None:
        """Make a fit and return when it is kept."""
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
        """End the fit that is under way and refuse all others."""
        self.stopped = True
        if self.running is not None and self.running.returncode is None:
            self.running.kill()
