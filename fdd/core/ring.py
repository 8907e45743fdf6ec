# SPDX-License-Identifier: Apache-2.0
"""A ring of buffers between one thread that reads and several that compute (performance.md 1.7).

The file is read once, so that every checksum describes the same bytes; hashing releases the interpreter's lock, so the
consumers run beside each other. Memory is the ring's, whatever the size of the file.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Protocol

from fdd.core.errors import SourceError
from fdd.core.span import Span

SLOTS = 8
SLOT_BYTES = 1 << 20
"""Below 256 KiB hand-overs cost up to a fifth; above a few MiB the caches no longer hold the ring."""


class Consumer(Protocol):
    """What a thread feeds: chunks in ascending order, then ``finish``. The chunk is valid only during the call."""

    def feed(self, offset: int, chunk: memoryview) -> None: ...

    def finish(self) -> None: ...


ReadInto = Callable[[memoryview, int], int]
"""Fills a buffer from an absolute offset and returns how many bytes it got."""


class _Slot:
    """One buffer of the ring and how many consumers still hold it."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.holders = 0


class _Ring:
    """The buffers: one anonymous private mapping, because its pages are aligned. Reading into a buffer that is not
    aligned to 64 bytes costs five times as much (performance.md 1.2). Private, so that a fork shares nothing."""

    def __init__(self) -> None:
        flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
        self._memory = mmap.mmap(-1, SLOTS * SLOT_BYTES, **flags)
        whole = memoryview(self._memory)
        self.slots = [_Slot(whole[index * SLOT_BYTES : (index + 1) * SLOT_BYTES]) for index in range(SLOTS)]
        self.free: SimpleQueue[_Slot] = SimpleQueue()
        for slot in self.slots:
            self.free.put(slot)
        whole.release()
        self._lock = threading.Lock()

    def give_back(self, slot: _Slot) -> None:
        """Called once by each consumer; the last one frees the slot."""
        with self._lock:
            slot.holders -= 1
            empty = slot.holders == 0
        if empty:
            self.free.put(slot)

    def close(self) -> None:
        # A failed consumer leaves views behind in the traceback of its failure; the mapping then goes when they go.
        with contextlib.suppress(BufferError):
            for slot in self.slots:
                slot.view.release()
            self._memory.close()


class _Worker(threading.Thread):
    """Feeds one consumer. After a failure it only gives slots back, so that the reader never waits for it."""

    def __init__(self, ring: _Ring, consumer: Consumer) -> None:
        super().__init__(daemon=True)
        self.queue: SimpleQueue[tuple[_Slot, int, int] | None] = SimpleQueue()
        self.failure: Exception | None = None
        self._ring = ring
        self._consumer = consumer

    def run(self) -> None:
        while (item := self.queue.get()) is not None:
            slot, offset, length = item
            try:
                if self.failure is None:
                    with slot.view[:length] as chunk:
                        self._consumer.feed(offset, chunk)
            except Exception as error:  # noqa: BLE001  (handed to the thread that waits for the result)
                self.failure = error
            finally:
                self._ring.give_back(slot)
        try:
            if self.failure is None:
                self._consumer.finish()
        except Exception as error:  # noqa: BLE001  (as above)
            self.failure = error


def run_ring(read_into: ReadInto, spans: Sequence[Span], consumers: Sequence[Consumer]) -> None:
    """Read the spans once and feed every consumer in a thread of its own.

    Raises :class:`SourceError` where reading fails or the file ends early, and whatever a consumer raises.
    """
    ring = _Ring()
    workers = [_Worker(ring, consumer) for consumer in consumers]
    for worker in workers:
        worker.start()
    try:
        for span in spans:
            _read(read_into, span, ring, workers)
    finally:
        for worker in workers:
            worker.queue.put(None)
        for worker in workers:
            worker.join()
        ring.close()
    failure = next((worker.failure for worker in workers if worker.failure is not None), None)
    if failure is not None:
        raise failure


def _read(read_into: ReadInto, span: Span, ring: _Ring, workers: Sequence[_Worker]) -> None:
    position = span.offset
    while position < span.end:
        slot = ring.free.get()
        with slot.view[: min(SLOT_BYTES, span.end - position)] as target:
            try:
                got = read_into(target, position)
            except BaseException:
                ring.free.put(slot)
                raise
        if got == 0:
            ring.free.put(slot)
            raise SourceError("the file became shorter while it was read", offset=position)
        slot.holders = len(workers)
        for worker in workers:
            worker.queue.put((slot, position, got))
        if not workers:
            ring.free.put(slot)
        position += got
