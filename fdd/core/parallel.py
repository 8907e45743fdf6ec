# SPDX-License-Identifier: Apache-2.0
"""Runs one step over many items, in this process or in several, and gives results in order or as they come."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 32
"""Items handed to a process at a time: handing over costs about as much as a small file."""
AHEAD = 4
"""Batches per process that may be waiting, so that memory stays bounded whatever the number of items."""


def in_order(step: Callable[[Item], Result], items: Iterable[Item], jobs: int, *, as_done: bool = False) -> Iterator[Result]:
    """Yield ``step(item)`` for every item, in order unless ``as_done``.

    With one job everything happens in this process. ``step`` and items must be picklable otherwise. When the consumer
    stops early, or is interrupted, waiting work is dropped and the processes end.
    """
    if jobs <= 1:
        yield from map(step, items)
        return
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

    pool = ProcessPoolExecutor(jobs, initializer=_ignore_interrupt)
    pending: deque[Future[list[Any]]] = deque()
    source = iter(items)
    try:
        while True:
            while len(pending) < jobs * AHEAD and (batch := list(islice(source, BATCH))):
                pending.append(pool.submit(_run_batch, step, batch))
            if not pending:
                return
            if as_done:
                done = wait(pending, return_when=FIRST_COMPLETED).done
                ready = next(future for future in pending if future in done)
                pending.remove(ready)
            else:
                ready = pending.popleft()
            yield from ready.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_batch(step: Callable[[Any], Any], batch: list[Any]) -> list[Any]:
    return [step(item) for item in batch]


def _ignore_interrupt() -> None:
    """Ctrl-C reaches every process of the group: the parent decides what is kept, the workers just finish."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def default_jobs() -> int:
    """Processes for a collection: as many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
