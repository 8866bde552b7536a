"""A sweep on this machine: one process per run, several at a time."""

import multiprocessing as mp
import os
import signal
import threading
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection, wait

from sih.beyond.sweep.worker import Job, News, work
from sih.results.processes import ctrl_c_waits


def run_here(jobs: Sequence[Job], at_once: int) -> Generator[News, None, None]:
    """Train all jobs and yield the news. After an early end, the workers save their
    state and stop.

    If a process dies (killed for its memory use, for example), only its run fails. If
    this process dies, the workers end too.
    """
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["sih.beyond.sweep.worker"])
    waiting, running = list(reversed(jobs)), dict[Connection, tuple[Job, mp.process.BaseProcess]]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                process: mp.process.BaseProcess = context.Process(
                    target=_process, args=(job, theirs), daemon=True
                )
                with ctrl_c_waits():  # so that no process is started and forgotten
                    process.start()
                    running[ours] = (job, process)
                theirs.close()
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                job, process = running[connection]
                try:
                    news: News = connection.recv()
                except EOFError:
                    process.join()
                    news = News(
                        job.name,
                        0,
                        "failed",
                        f"its process ended with exit code {process.exitcode}",
                    )
                if news.state != "running":
                    process.join()
                    del running[connection]
                yield news
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _process(job: Job, connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which sends a SIGTERM
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    connection.send(work(job, connection.send, asked))


def _end_with_parent() -> None:
    parent = mp.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
