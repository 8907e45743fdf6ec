# SPDX-License-Identifier: Apache-2.0
"""The ring: every consumer sees every byte in order, and a fault anywhere ends the run instead of hanging it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from fdd.core.errors import SourceError
from fdd.core.ring import SLOT_BYTES, SLOTS, run_ring
from fdd.core.span import Span

SIZE = 2 * SLOTS * SLOT_BYTES + 12_345
DATA = b"".join(bytes([number % 251]) * (SLOT_BYTES // 3) for number in range(3 * SIZE // SLOT_BYTES + 3))[:SIZE]
WHOLE = [Span(0, SIZE)]


def read(target: memoryview, offset: int) -> int:
    piece = DATA[offset : offset + len(target)]
    target[: len(piece)] = piece
    return len(piece)


class Collector:
    """Keeps what it is fed."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pieces: list[tuple[int, bytes]] = []
        self.finished = 0
        self._pause = pause

    def feed(self, offset: int, chunk: memoryview) -> None:
        time.sleep(self._pause)
        self.pieces.append((offset, bytes(chunk)))

    def finish(self) -> None:
        self.finished += 1

    @property
    def data(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)


class Trouble(Exception):
    """What breaks in these tests."""


class Failing(Collector):
    """Fails in the middle, holding a part of the chunk in the frame that the traceback keeps."""

    def feed(self, offset: int, chunk: memoryview) -> None:
        part = chunk[3:9]
        if offset > SIZE // 2:
            raise Trouble(bytes(part))


class FailingAtTheEnd(Collector):
    def finish(self) -> None:
        raise Trouble


def within_seconds(run: Callable[[], None], seconds: float = 20.0) -> None:
    """Run, and fail instead of hanging."""
    caught: list[BaseException] = []

    def guarded() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  (handed to the test)
            caught.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"
    if caught:
        raise caught[0]


def no_threads_left(before: int) -> bool:
    return threading.active_count() <= before


def test_consumers_of_different_speed_see_the_same() -> None:
    fast, slow = Collector(), Collector(0.001)
    within_seconds(lambda: run_ring(read, WHOLE, [fast, slow]))
    assert fast.data == slow.data == DATA
    assert fast.finished == slow.finished == 1
    offsets = [offset for offset, _ in fast.pieces]
    assert offsets == sorted(offsets)


def test_spans_are_read_and_nothing_else() -> None:
    spans = [Span(5, 10), Span(SLOT_BYTES - 3, 7), Span(SLOT_BYTES * 2, SLOT_BYTES + 1), Span(100, 0)]
    consumer = Collector()
    within_seconds(lambda: run_ring(read, spans, [consumer]))
    assert consumer.data == b"".join(DATA[span.offset : span.end] for span in spans)


def test_reads_that_give_less_than_was_asked_for() -> None:
    consumer = Collector()
    within_seconds(lambda: run_ring(lambda target, offset: read(target[:100_000], offset), WHOLE, [consumer]))
    assert consumer.data == DATA


def test_nobody_listens() -> None:
    within_seconds(lambda: run_ring(read, WHOLE, []))


@pytest.mark.parametrize("position", [0, SLOT_BYTES, SIZE - 1])
def test_a_fault_of_reading(position: int) -> None:
    def fail(target: memoryview, offset: int) -> int:
        if offset >= position // SLOT_BYTES * SLOT_BYTES:
            raise SourceError("broken", offset=offset)
        return read(target, offset)

    before = threading.active_count()
    consumers = [Collector(), Collector(0.001)]
    with pytest.raises(SourceError, match="broken"):
        within_seconds(lambda: run_ring(fail, WHOLE, consumers))
    assert no_threads_left(before)
    assert consumers[0].data == consumers[1].data == DATA[: position // SLOT_BYTES * SLOT_BYTES]


def test_an_end_that_comes_too_early() -> None:
    with pytest.raises(SourceError, match="became shorter") as caught:
        within_seconds(lambda: run_ring(read, [Span(0, SIZE + 1)], [Collector()]))
    assert caught.value.offset == SIZE


@pytest.mark.parametrize("consumers", [1, 3])
def test_a_fault_of_a_consumer(consumers: int) -> None:
    before = threading.active_count()
    others = [Collector(0.0005) for _ in range(consumers - 1)]
    with pytest.raises(Trouble) as caught:
        within_seconds(lambda: run_ring(read, WHOLE, [*others, Failing()]))
    assert len(caught.value.args[0]) == 6
    assert no_threads_left(before)
    assert all(other.data == DATA for other in others)


def test_a_fault_at_the_end() -> None:
    with pytest.raises(Trouble):
        within_seconds(lambda: run_ring(read, WHOLE, [Collector(), FailingAtTheEnd()]))


def test_an_interrupt_while_reading() -> None:
    def interrupted(target: memoryview, offset: int) -> int:
        if offset >= 4 * SLOT_BYTES:
            raise KeyboardInterrupt
        return read(target, offset)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        within_seconds(lambda: run_ring(interrupted, WHOLE, [Collector()]))
    assert no_threads_left(before)
