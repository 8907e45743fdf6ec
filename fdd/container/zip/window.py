# SPDX-License-Identifier: Apache-2.0
"""One buffer of read-ahead over a source: headers that stand close together cost one read, not one each."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.source import CHUNK, ByteSource
from fdd.core.span import Span

_NEAR = 1 << 10
"""First step of a search forward: what is looked for is mostly near, and there may be very many such searches."""


class Window:
    """Reads of short ranges in mostly ascending order. Keeps the last range read, so memory is bounded by ``ahead``."""

    __slots__ = ("_data", "_end", "_source", "_start", "size")

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._data = b""
        self._start = 0
        self._end = 0
        self.size = source.size

    def read(self, offset: int, length: int, ahead: int = 0) -> bytes:
        """Return the bytes of ``[offset, offset + length)`` that exist; where they must be fetched, fetch ``ahead`` bytes."""
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        end = min(offset + length, self.size)
        if offset < self._start or end > self._end:
            self._data = self._source.read_at(offset, max(length, ahead))
            self._start = offset
            self._end = offset + len(self._data)
        at = offset - self._start
        return self._data[at : at + length]


def find_forward(source: ByteSource, signature: bytes, span: Span) -> int | None:
    """Offset of the first ``signature`` that lies wholly inside ``span``."""
    position, end = span.offset, min(span.end, source.size)
    chunk = _NEAR
    while position + len(signature) <= end:
        at = source.read_at(position, min(chunk, end - position)).find(signature)
        if at >= 0:
            return position + at
        position += chunk - len(signature) + 1
        chunk = min(2 * chunk, CHUNK)
    return None


def chunks_backward(source: ByteSource, end: int, overlap: int, chunk: int = CHUNK) -> Iterator[tuple[int, bytes, int]]:
    """Yield ``(offset, bytes, fresh)`` from ``end`` down to 0: the first ``fresh`` bytes are new, up to ``overlap`` follow.

    Whatever begins at a fresh byte and is at most ``overlap`` bytes long is therefore whole in one chunk.
    """
    while end > 0:
        start = max(0, end - chunk)
        yield start, source.read_at(start, end - start + overlap), end - start
        end = start


def content_end(source: ByteSource) -> int:
    """Offset behind the last byte of the file that is not zero."""
    for start, data, fresh in chunks_backward(source, source.size, 0):
        content = data[:fresh].rstrip(b"\0")
        if content:
            return start + len(content)
    return 0
