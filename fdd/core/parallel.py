# SPDX-License-Identifier: Apache-2.0
"""Runs one step over many items, in this process or in several, and gives results in order or as they come."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")
_Done = tuple[list[Any], float]
"""The results of a batch, and the seconds they took."""
GRACE_SECONDS = 1.0
"""How long a process that was asked to stop may take to hand over what it has."""
LOST = "the process that read this file was ended from outside, as systems do where memory is short"

BATCH = 32
"""Most items handed to a process at a time: handing over costs about as much as a small file."""
BATCH_SECONDS = 0.1
"""What a batch should take: large files go one by one, so that no process waits while another has a queue of them."""
AHEAD = 4
"""Batches per process that may be waiting, so that memory stays bounded whatever the number of items."""


def in_order(
    step: Callable[[Item], Result],
    items: Iterable[Item],
    jobs: int,
    *,
    as_done: bool = False,
    lost: Callable[[Item], Result] | None = None,
) -> Iterator[Result]:
    """Yield ``step(item)`` for every item, in order unless ``as_done``.

    With one job everything happens in this process. ``step`` and items must be picklable otherwise. When the consumer
    stops early, or is interrupted, waiting work is dropped and the processes are ended. ``lost`` gives the result of an item
    at which its process was killed (by the system, for want of memory); without it that ends the run.
    """
    if jobs <= 1:
        yield from map(step, items)
        return
    pool = _Pool(step, jobs, lost)
    source = iter(items)
    size = 1
    try:
        while True:
            while len(pool.pending) < jobs * AHEAD and (batch := list(islice(source, size))):
                pool.submit(batch)
            if not pool.pending:
                pool.finished = True
                return
            results, seconds = pool.next_done() if as_done else pool.next_in_order()
            size = _batch_size(len(results), seconds)
            yield from results
    finally:
        pool.end()


class _Pool:
    """Processes, and the batches they have or wait for."""

    def __init__(self, step: Callable[[Any], Any], jobs: int, lost: Callable[[Any], Any] | None) -> None:
        self.pending: deque[tuple[Future[_Done], list[Any]]] = deque()
        self.finished = False
        self._step = step
        self._jobs = jobs
        self._lost = lost
        self._pool = _new_pool(jobs)
        self._broken = False

    def submit(self, batch: list[Any]) -> None:
        """Put a batch at the end."""
        from concurrent.futures import BrokenExecutor, Future

        try:
            future = self._pool.submit(_run_batch, self._step, batch)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        self.pending.append((future, batch))

    def next_in_order(self) -> _Done:
        """The results of the first batch, and the seconds they took."""
        return self._results(*self.pending.popleft())

    def next_done(self) -> _Done:
        """The results of whichever batch is done first."""
        from concurrent.futures import FIRST_COMPLETED, wait

        done = wait([future for future, _ in self.pending], return_when=FIRST_COMPLETED).done
        ready = next(pair for pair in self.pending if pair[0] in done)
        self.pending.remove(ready)
        return self._results(*ready)

    def _results(self, future: Future[_Done], batch: list[Any]) -> _Done:
        from concurrent.futures import BrokenExecutor

        try:
            return future.result()
        except BrokenExecutor:
            self._broken = True
            if self._lost is None:
                raise
        # One process is gone, and takes the pool with it: the batch is done again, an item at a time, by processes of its
        # own, so that the item that kills them is found; the others get a new pool.
        waiting = list(self.pending)
        self.pending.clear()
        self._close()
        results = [self._alone(item) for item in batch]
        self._pool = _new_pool(self._jobs)
        for pair in waiting:
            if pair[0].done() and pair[0].exception() is None:
                self.pending.append(pair)
            else:
                self.submit(pair[1])
        return results, 0.0

    def _alone(self, item: Any) -> Any:
        from concurrent.futures import BrokenExecutor

        assert self._lost is not None
        self._pool = _new_pool(1)
        try:
            return self._pool.submit(_run_batch, self._step, [item]).result()[0][0]
        except BrokenExecutor:
            self._broken = True
            return self._lost(item)
        except BaseException:
            self._stop()  # interrupted: nobody waits for the item any more
            raise
        finally:
            self._close()

    def _stop(self) -> None:
        for process in _processes_of(self._pool):
            process.terminate()

    def _close(self) -> None:
        """Let the processes go. Those of a broken pool are killed: executors since Python 3.12 no longer tell them to end, and
        one may have died with the lock of their queue."""
        if self._broken:
            for process in _processes_of(self._pool):
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._broken = False

    def end(self) -> None:
        """Let the processes go; in the middle of work they are stopped."""
        if not self.finished:
            self._stop()
        self._close()


def _new_pool(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(jobs, initializer=_prepare_process)


def _batch_size(items: int, seconds: float) -> int:
    """How many items of the kind that took ``seconds`` for ``items`` make a batch."""
    return max(1, min(BATCH, int(BATCH_SECONDS * items / seconds))) if seconds > 0 else BATCH


def _run_batch(step: Callable[[Any], Any], batch: list[Any]) -> tuple[list[Any], float]:
    started = time.perf_counter()
    return _PROCESS.run(step, batch), time.perf_counter() - started


class _Process:
    """What a process of the pool knows of itself.

    It is asked to stop by SIGTERM, and stops at once only while it works: ended in the middle of handing over a result, it
    would leave the parent waiting for the rest. Where it is told nothing more it ends by itself after a while: an executor
    whose pool is broken asks in this way only, and waits for it.
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
        if not self._stopping:
            import threading

            end = threading.Timer(GRACE_SECONDS, os._exit, (1,))
            end.daemon = True
            end.start()
        self._stopping = True
        if self._working:
            raise KeyboardInterrupt


_PROCESS = _Process()


def _processes_of(pool: ProcessPoolExecutor) -> list[Any]:
    """The processes of a pool, to be stopped at once: what they are at is wanted by nobody, and may be gigabytes."""
    # The pool has no public way before Python 3.14, and there only one that ends them in the middle of anything.
    return list((getattr(pool, "_processes", None) or {}).values())


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
