# SPDX-License-Identifier: Apache-2.0
"""Random access to what a deflated record inflates to, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from fdd.core.errors import LimitExceeded
from fdd.core.source import CHUNK, ByteSource
from fdd.core.span import Span

MOST_INFLATED = 16
"""Going back means inflating from the start: in all, this many times the size of the record is inflated."""


class InflatedSource:
    """The contents of a raw deflate stream as a source of ``size`` bytes, of which ``most_kept`` at a time are in memory.

    Records up to that size are inflated once and kept. Of larger ones, reading forward costs nothing more than inflating;
    reading backward begins again. Damaged streams end where the damage is: reads then are short. Reads raise
    :class:`LimitExceeded` where they would inflate too much, and SourceError where reading fails.
    """

    def __init__(self, parent: ByteSource, span: Span, size: int, most_kept: int) -> None:
        self.size = size
        self.bytes_read = 0
        self.reads = 0
        self._parent = parent
        self._span = span
        self._kept = b""
        self._most_kept = most_kept
        self._position = 0
        """Offset of the first byte that ``_pieces`` will give, or that ``_rest`` holds."""
        self._rest = b""
        self._pieces: Iterator[bytes] = iter(())
        self._left = MOST_INFLATED * size + CHUNK
        self._begun = False

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of ``[offset, offset + length)`` that exist."""
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        length = min(length, self.size - offset)
        self.reads += 1
        self.bytes_read += length
        if self.size <= self._most_kept:
            if not self._begun:
                self._restart()
                self._kept = self._forward(self.size)
            return self._kept[offset : offset + length]
        if not self._begun or offset < self._position:
            self._restart()
        while self._position < offset:
            if not self._forward(min(offset - self._position, CHUNK)):
                return b""
        return self._forward(length)

    def stream(self, span: Span, chunk: int = CHUNK) -> Iterator[bytes]:
        """The bytes of ``span`` in pieces of at most ``chunk`` bytes; fewer where the stream is damaged."""
        position, end = span.offset, min(span.end, self.size)
        while position < end:
            piece = self.read_at(position, min(chunk, end - position))
            if not piece:
                return
            yield piece
            position += len(piece)

    def will_read(self, spans: object) -> None:
        """Nothing to do."""

    def _restart(self) -> None:
        self._begun = True
        self._position = 0
        self._rest = b""
        self._pieces = self._inflate()

    def _forward(self, length: int) -> bytes:
        """The next ``length`` bytes, fewer at the end."""
        found = [self._rest]
        got = len(self._rest)
        while got < length:
            piece = next(self._pieces, b"")
            if not piece:
                break
            found.append(piece)
            got += len(piece)
        data = b"".join(found)
        self._rest = data[length:]
        data = data[:length]
        self._position += len(data)
        return data

    def _inflate(self) -> Iterator[bytes]:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        for chunk in self._parent.stream(self._span):
            pending = chunk
            while not inflater.eof:
                try:
                    piece = inflater.decompress(pending, CHUNK)
                except zlib.error:
                    return
                pending = inflater.unconsumed_tail
                self._left -= len(piece)
                if self._left < 0:
                    raise LimitExceeded("inflated_bytes", "a deflated record would have to be inflated too often")
                if piece:
                    yield piece
                elif not pending:
                    break
