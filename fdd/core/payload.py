# SPDX-License-Identifier: Apache-2.0
"""One read of the bytes of a file: digests of the whole, and checksums of its parts, in bounded memory.

Parts are spans of stored bytes; a part may be deflated, then what comes out of it is counted and checked. Parts may
overlap (only bad files have such) and may lie in any order; every byte of the file is still read once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fdd.core.digests import Hasher, crc32_function, new_hasher
from fdd.core.source import CHUNK, ByteSource
from fdd.core.span import Span

_ZEROS = bytes(CHUNK)


class Tap(Protocol):
    """Anything that wants to see the bytes of a part as they pass."""

    def update(self, data: memoryview) -> None:
        """Take the next bytes, in order."""
        ...


@dataclass(slots=True)
class Part:
    """A span whose bytes are to be checked, and what came out.

    ``deflated`` parts are inflated on the way; digests, CRC, ``size`` and ``all_zero`` then speak of what came out.
    """

    span: Span
    deflated: bool = False
    algorithms: tuple[str, ...] = ()
    taps: tuple[Tap, ...] = ()
    crc32: int = 0
    size: int = 0
    all_zero: bool = True
    digests: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    """For deflated parts: why inflating stopped, or what was left over."""


class _Reader:
    """Feeds one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._crc32 = crc32_function()
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
        try:
            while pending or not inflater.eof:
                piece = inflater.decompress(pending, CHUNK)
                pending = inflater.unconsumed_tail
                if piece:
                    self._take(memoryview(piece))
                elif not pending:
                    break
        except zlib.error as error:
            self.part.fault = f"damaged deflate stream: {error}"
            return
        if inflater.unused_data:
            self.part.fault = "bytes are left behind the end of the deflate stream"

    def _take(self, data: memoryview) -> None:
        part = self.part
        part.crc32 = self._crc32(data, part.crc32)
        part.size += len(data)
        if part.all_zero:
            part.all_zero = data == memoryview(_ZEROS)[: len(data)]
        for hasher in self._hashers.values():
            hasher.update(data)
        for tap in part.taps:
            tap.update(data)

    def finish(self) -> None:
        if self._inflater is not None and self.part.fault is None and not self._inflater.eof:
            self.part.fault = "the deflate stream ends too early"
        self.part.digests = {name: hasher.hexdigest() for name, hasher in self._hashers.items()}


def read_payload(source: ByteSource, parts: Iterable[Part], algorithms: tuple[str, ...] = ()) -> dict[str, str]:
    """Read the whole file once, fill every part, and return the digests of the file.

    Without ``algorithms`` only the spans of the parts are read. Raises :class:`SourceError` where reading fails.
    Parts that reach behind the end of the file are read as far as there are bytes.
    """
    hashers = {name: new_hasher(name) for name in algorithms}
    waiting = sorted((_Reader(part) for part in parts), key=lambda reader: reader.part.span, reverse=True)
    for reader in waiting:
        if reader.part.span.length == 0:
            reader.finish()
    waiting = [reader for reader in waiting if reader.part.span.length]
    active: list[_Reader] = []
    for offset, chunk in _chunks(source, waiting, whole=bool(hashers)):
        for hasher in hashers.values():
            hasher.update(chunk)
        end = offset + len(chunk)
        while waiting and waiting[-1].part.span.offset < end:
            active.append(waiting.pop())
        still: list[_Reader] = []
        for reader in active:
            span = reader.part.span
            reader.feed(chunk[max(span.offset, offset) - offset : min(span.end, end) - offset])
            if span.end <= end:
                reader.finish()
            else:
                still.append(reader)
        active = still
    for reader in active + waiting:
        reader.finish()
    return {name: hasher.hexdigest() for name, hasher in hashers.items()}


def _chunks(source: ByteSource, readers: list[_Reader], *, whole: bool) -> Iterator[tuple[int, memoryview]]:
    """Yield the chunks of the file, or only those of the merged spans of the readers."""
    spans = [Span(0, source.size)] if whole else _merged(reader.part.span for reader in readers)
    source.will_read(spans)
    for span in spans:
        position = span.offset
        for piece in source.stream(span):
            yield position, memoryview(piece)
            position += len(piece)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.offset <= merged[-1].end:
            merged[-1] = Span(merged[-1].offset, max(merged[-1].end, span.end) - merged[-1].offset)
        else:
            merged.append(span)
    return merged
