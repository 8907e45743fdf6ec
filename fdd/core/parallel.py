# SPDX-License-Identifier: Apache-2.0
"""Runs one step over many items, in this process or in several, and gives results in order or as they come."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 32
"""Most items handed to a process at a time: handing over costs about as much as a small file."""
BATCH_SECONDS = 0.1
"""What a batch should take: large files go one by one, so that no process waits while another has a queue of them."""
AHEAD = 4
"""Batches per process that may be waiting, so that memory stays bounded whatever the number of items."""


def in_order(step: Callable[[Item], Result], items: Iterable[Item], jobs: int, *, as_done: bool = False) -> Iterator[Result]:
    """Yield ``step(item)`` for every item, in order unless ``as_done``.

    With one job everything happens in this process. ``step`` and items must be picklable otherwise. When the consumer
    stops early, or is interrupted, waiting work is dropped and the processes are ended.
    """
    if jobs <= 1:
        yield from map(step, items)
        return
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

    pool = ProcessPoolExecutor(jobs, initializer=_prepare_process)
    pending: deque[Future[tuple[list[Any], float]]] = deque()
    source = iter(items)
    size = 1
    finished = False
    try:
        while True:
            while len(pending) < jobs * AHEAD and (batch := list(islice(source, size))):
                pending.append(pool.submit(_run_batch, step, batch))
            if not pending:
                finished = True
                return
            if as_done:
                done = wait(pending, return_when=FIRST_COMPLETED).done
                ready = next(future for future in pending if future in done)
                pending.remove(ready)
            else:
                ready = pending.popleft()
            results, seconds = ready.result()
            size = _batch_size(len(results), seconds)
            yield from results
    finally:
        if not finished:
            _end_processes(pool)
        pool.shutdown(wait=True, cancel_futures=True)


def _batch_size(items: int, seconds: float) -> int:
    """How many items of the kind that took ``seconds`` for ``items`` make a batch."""
    return max(1, min(BATCH, int(BATCH_SECONDS * items / seconds))) if seconds > 0 else BATCH


def _run_batch(step: Callable[[Any], Any], batch: list[Any]) -> tuple[list[Any], float]:
    started = time.perf_counter()
    return _PROCESS.run(step, batch), time.perf_counter() - started


class _Process:
    """What a process of the pool knows of itself.

    It is asked to stop by SIGTERM, and stops only while it works: ended in the middle of handing over a result, it would
    leave the parent waiting for the rest.
    """

    def __init__(self) -> None:
        self._working = False
        self._stopping = False

    def run(self, step: Callable[[Any], Any], batch: list[Any]) -> list[Any]:
        self._working = not self._stopping
        try:
            return [step(item) for item in batch] if self._working else []
        finally:
            self._working = False

    def stop(self, *_: object) -> None:
        """The handler of the signal."""
        self._stopping = True
        if self._working:
            raise KeyboardInterrupt


_PROCESS = _Process()


def _end_processes(pool: Any) -> None:
    """Ask the processes of a pool to stop at once: what they are at is wanted by nobody, and may be gigabytes."""
    # The pool has no public way before Python 3.14, and there only one that ends them in the middle of anything.
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _prepare_process() -> None:
    """Ctrl-C reaches every process of the group: the parent decides what is kept, and asks the others to stop.

    A parent that is killed cannot; so each process watches it and goes with it.
    """
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _PROCESS.stop)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def default_jobs() -> int:
    """Processes for a collection: as many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
