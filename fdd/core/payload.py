# SPDX-License-Identifier: Apache-2.0
"""One read of the bytes of a file: digests of the whole, and checksums of its parts, in bounded memory.

Parts are spans of stored bytes; a part may be deflated, then what comes out of it is counted and checked. Parts may
overlap (only bad files have such) and may lie in any order; every byte of the file is still read once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fdd.core.digests import Hasher, crc32_function, has_fast_crc32, new_hasher
from fdd.core.ring import Consumer, run_ring
from fdd.core.source import CHUNK, ByteSource, FileSource
from fdd.core.span import Span

THREADS_FROM = 8 << 20
"""Bytes from which threads pay: below, handing over costs more than the second core gains."""


class Tap(Protocol):
    """Anything that wants to see the bytes of a part as they pass, in order; they are not kept valid afterwards."""

    def update(self, data: memoryview) -> None:
        """Take the next bytes."""
        ...


@dataclass(slots=True)
class Part:
    """A span whose bytes are to be checked, and what came out.

    ``deflated`` parts are inflated on the way; digests, CRC, ``size`` and ``all_zero`` then speak of what came out.
    ``watch_zeros`` asks for ``all_zero``, which stays None otherwise. Without ``checksum`` no CRC-32 is computed.
    """

    span: Span
    deflated: bool = False
    algorithms: tuple[str, ...] = ()
    taps: tuple[Tap, ...] = ()
    watch_zeros: bool = False
    checksum: bool = True
    crc32: int = 0
    size: int = 0
    all_zero: bool | None = None
    digests: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    """For deflated parts: why inflating stopped, or what was left over."""


def read_payload(source: ByteSource, parts: Iterable[Part], algorithms: tuple[str, ...] = ()) -> dict[str, str]:
    """Read the whole file once, fill every part, and return the digests of the file.

    Without ``algorithms`` only the spans of the parts are read. Raises :class:`SourceError` where reading fails.
    Parts that reach behind the end of the file are read as far as there are bytes. Large files on disk are read by
    one thread while others hash: each digest of the file is one serial chain, and a second core takes the parts.
    """
    parts = list(parts)
    whole = Span(0, source.size)
    spans = [whole] if algorithms else _merged(_within(part.span, whole) for part in parts)
    source.will_read(spans)
    hashers = {name: new_hasher(name) for name in algorithms}
    threaded = isinstance(source, FileSource) and sum(span.length for span in spans) >= THREADS_FROM
    if threaded:
        assert isinstance(source, FileSource)
        run_ring(source.read_into, spans, _consumers(list(hashers.values()), parts))
    else:
        one = _Everything(list(hashers.values()), _Sweep([_PartReader(part) for part in parts]))
        for offset, chunk in _chunks(source, spans):
            one.feed(offset, chunk)
        one.finish()
    return {name: hasher.hexdigest() for name, hasher in hashers.items()}


def _consumers(hashers: list[Hasher], parts: list[Part]) -> Sequence[Consumer]:
    """One thread for each digest of the file and one for the parts; a slow CRC-32 gets its own. Parts that are only looked
    at go with the first digest: in the caches of its core the bytes are at hand, where a thread of their own costs the whole
    pass twice as much more (measured with statistics: 0.09 s/GB of CPU against 0.21)."""
    watched = [part for part in parts if not part.checksum and not part.algorithms]
    parts = [part for part in parts if part.checksum or part.algorithms]
    looks = _Sweep([_PartReader(part) for part in watched]) if watched else None
    consumers: list[Consumer] = [_Everything(hashers[:1], looks)] if hashers or looks is not None else []
    consumers.extend(_Everything([hasher], None) for hasher in hashers[1:])
    if not parts:
        return consumers
    if has_fast_crc32():
        consumers.append(_sweep(_PartReader(part) for part in parts))
        return consumers
    # The CRC-32 of zlib takes half as long as SHA-256 (performance.md 1.1): beside it, it would be the longest chain.
    consumers.append(_sweep(_PartReader(part, crc=part.deflated) for part in parts))
    consumers.append(_sweep(_CrcReader(part) for part in parts if not part.deflated and part.checksum))
    return consumers


def _sweep(readers: Iterable[_Feeder]) -> Consumer:
    return _Everything([], _Sweep(readers))


class _Feeder(Protocol):
    part: Part

    def feed(self, data: memoryview) -> None: ...

    def finish(self) -> None: ...


class _CrcReader:
    """Computes nothing but the CRC-32 of a stored part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._crc32 = crc32_function()

    def feed(self, data: memoryview) -> None:
        self.part.crc32 = self._crc32(data, self.part.crc32)

    def finish(self) -> None:
        """Nothing is left to do."""


class _PartReader:
    """Feeds one part."""

    def __init__(self, part: Part, *, crc: bool = True) -> None:
        self.part = part
        part.all_zero = True if part.watch_zeros else None
        self._crc32: Callable[[bytes | memoryview, int], int] | None = crc32_function() if crc and part.checksum else None
        self._hashers: dict[str, Hasher] = {name: new_hasher(name) for name in part.algorithms}
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS) if part.deflated else None

    def feed(self, data: memoryview) -> None:
        if self._inflater is None:
            self._take(data)
        elif self.part.fault is None:
            self._inflate(data)

    def _inflate(self, data: memoryview) -> None:
        inflater = self._inflater
        assert inflater is not None
        if inflater.eof:
            self.part.fault = "bytes are left behind the end of the deflate stream"
            return
        pending: bytes | memoryview = data
        # At the end of the stream zlib may repeat the rest as unconsumed: only ``eof`` tells that it is over.
        while not inflater.eof:
            before = inflater.copy()
            try:
                piece = inflater.decompress(pending, CHUNK)
            except zlib.error:
                self._inflate_to_fault(before, pending)
                return
            pending = inflater.unconsumed_tail
            if piece:
                self._take(memoryview(piece))
            elif not pending:
                break
        if inflater.unused_data:
            self.part.fault = "bytes are left behind the end of the deflate stream"

    def _inflate_to_fault(self, inflater: zlib._Decompress, data: bytes | memoryview) -> None:
        """Take what comes out in front of a fault, at last byte by byte: zlib drops what a call that fails has made, and
        how much that is must not depend on how the bytes came in pieces."""
        position, step = 0, 1 << 12
        while position < len(data):
            before = inflater.copy()
            try:
                piece = inflater.decompress(data[position : position + step])
            except zlib.error as error:
                if step == 1:
                    self.part.fault = f"damaged deflate stream: {error}"
                    return
                inflater, step = before, 1
                continue
            self._take(memoryview(piece))
            position += step

    def _take(self, data: memoryview) -> None:
        part = self.part
        if self._crc32 is not None:
            part.crc32 = self._crc32(data, part.crc32)
        part.size += len(data)
        if part.all_zero:
            part.all_zero = data.tobytes().count(0) == len(data)
        for hasher in self._hashers.values():
            hasher.update(data)
        for tap in part.taps:
            tap.update(data)

    def finish(self) -> None:
        if self._inflater is not None and self.part.fault is None and not self._inflater.eof:
            self.part.fault = "the deflate stream ends too early"
        self.part.digests = {name: hasher.hexdigest() for name, hasher in self._hashers.items()}


class _Sweep:
    """Hands each chunk to the parts it touches; chunks come in ascending order."""

    def __init__(self, readers: Iterable[_Feeder]) -> None:
        self._waiting = sorted(readers, key=lambda reader: reader.part.span, reverse=True)
        self._active: list[_Feeder] = []

    def feed(self, offset: int, chunk: memoryview) -> None:
        end = offset + len(chunk)
        while self._waiting and self._waiting[-1].part.span.offset < end:
            self._active.append(self._waiting.pop())
        still: list[_Feeder] = []
        for reader in self._active:
            span = reader.part.span
            if span.length:
                reader.feed(chunk[max(span.offset, offset) - offset : min(span.end, end) - offset])
            if span.end <= end:
                reader.finish()
            else:
                still.append(reader)
        self._active = still

    def finish(self) -> None:
        for reader in self._active + self._waiting:
            reader.finish()
        self._active, self._waiting = [], []


class _Everything:
    """A consumer: digests of the whole, and perhaps a sweep over parts."""

    def __init__(self, hashers: list[Hasher], sweep: _Sweep | None) -> None:
        self._hashers = hashers
        self._sweep = sweep

    def feed(self, offset: int, chunk: memoryview) -> None:
        for hasher in self._hashers:
            hasher.update(chunk)
        if self._sweep is not None:
            self._sweep.feed(offset, chunk)

    def finish(self) -> None:
        if self._sweep is not None:
            self._sweep.finish()


def _chunks(source: ByteSource, spans: list[Span]) -> Iterator[tuple[int, memoryview]]:
    for span in spans:
        position = span.offset
        for piece in source.stream(span):
            yield position, memoryview(piece)
            position += len(piece)


def _within(span: Span, whole: Span) -> Span:
    """The part of ``span`` that exists; empty where none does."""
    start = min(max(span.offset, whole.offset), whole.end)
    return Span(start, max(0, min(span.end, whole.end) - start))


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(span for span in spans if span.length):
        if merged and span.offset <= merged[-1].end:
            merged[-1] = Span(merged[-1].offset, max(merged[-1].end, span.end) - merged[-1].offset)
        else:
            merged.append(span)
    return merged
