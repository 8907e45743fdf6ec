# SPDX-License-Identifier: Apache-2.0
"""Spans of bytes in a file, and the arithmetic of covering a file with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """``length`` bytes from ``offset``; both in bytes, ``offset`` absolute in the file."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte behind the span."""
        return self.offset + self.length

    def holds(self, offset: int) -> bool:
        """Whether the byte at ``offset`` lies inside."""
        return self.offset <= offset < self.end

    def overlaps(self, other: Span) -> bool:
        """Whether both have at least one byte in common; an empty span overlaps nothing."""
        return self.offset < other.end and other.offset < self.end and self.length > 0 and other.length > 0


def gaps(spans: Iterable[Span], whole: Span) -> Iterator[Span]:
    """Yield the parts of ``whole`` that no span covers, ascending and as long as can be: an empty span parts none."""
    position = whole.offset
    for span in sorted(span for span in spans if span.length > 0):
        start = min(span.offset, whole.end)
        if start > position:
            yield Span(position, start - position)
        position = max(position, span.end)
        if position >= whole.end:
            return
    if position < whole.end:
        yield Span(position, whole.end - position)
