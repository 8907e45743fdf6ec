# SPDX-License-Identifier: Apache-2.0
"""Random access to deflated contents: kept in memory, or inflated on the way."""

from __future__ import annotations

import random
import zlib

import pytest

from fdd.core.errors import LimitExceeded
from fdd.core.inflate import MOST_INFLATED, InflatedSource
from fdd.core.source import CHUNK, BytesSource
from fdd.core.span import Span

SIZE = 3 * CHUNK + 17


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(3).randbytes(SIZE // 2) + bytes(SIZE - SIZE // 2)


def source(data: bytes, most_kept: int, *, size: int | None = None) -> InflatedSource:
    packed = deflated(data)
    return InflatedSource(BytesSource(b"head" + packed + b"tail"), Span(4, len(packed)), size or len(data), most_kept)


@pytest.mark.parametrize("most_kept", [0, 1 << 30])
def test_reads_give_what_was_deflated(data: bytes, most_kept: int) -> None:
    opened = source(data, most_kept)
    for offset, length in ((0, 10), (CHUNK - 5, 10), (CHUNK + 5, 2 * CHUNK), (7, 1), (SIZE - 3, 100), (SIZE, 1), (-1, 5)):
        assert opened.read_at(offset, length) == (data[offset : offset + length] if offset >= 0 else b"")
    assert b"".join(opened.stream(Span(100, SIZE))) == data[100:]


@pytest.mark.parametrize("most_kept", [0, 1 << 30])
def test_a_stream_shorter_than_announced_gives_short_reads(data: bytes, most_kept: int) -> None:
    opened = source(data, most_kept, size=SIZE + 1000)
    assert opened.read_at(SIZE - 2, 500) == data[-2:]
    assert opened.read_at(SIZE + 10, 5) == b""
    assert b"".join(opened.stream(Span(SIZE - 9, 900))) == data[-9:]


def test_going_back_too_often_is_a_limit(data: bytes) -> None:
    opened = source(data, 0)

    def back_and_forth() -> None:
        for _ in range(2 * MOST_INFLATED):
            opened.read_at(SIZE - 1, 1)
            opened.read_at(0, 1)

    with pytest.raises(LimitExceeded):
        back_and_forth()


def test_damage_ends_the_contents(data: bytes) -> None:
    packed = bytearray(deflated(data))
    packed[-40:] = b"\xff" * 40
    opened = InflatedSource(BytesSource(bytes(packed)), Span(0, len(packed)), SIZE, 0)
    found = b"".join(opened.stream(Span(0, SIZE)))
    assert len(found) < SIZE
