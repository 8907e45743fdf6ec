# SPDX-License-Identifier: Apache-2.0
"""The parts of a file as fixity records them: a partition of every byte, each part with its owner."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fdd.core.model import Document, Record
from fdd.core.span import Span, gaps


class Segment(NamedTuple):
    """A part of the file. ``kind``: header, padding, data, descriptor, directory, end, other. ``record`` owns it, if one does."""

    kind: str
    span: Span
    record: str | None = None
    deflated: bool = False


def partition(owned: Iterable[Segment], size: int, rest: str = "other") -> list[Segment]:
    """Make a partition of ``size`` bytes of segments that may overlap or leave gaps.

    The first owner of a byte keeps it; what nobody owns becomes a segment of the kind ``rest``. Empty segments vanish,
    but for empty data: that a record is empty is worth recording.
    """
    kept: list[Segment] = []
    position = 0
    for segment in sorted(owned, key=lambda segment: (segment.span.offset, segment.span.end)):
        start, end = max(segment.span.offset, position), min(segment.span.end, size)
        if start < end or (segment.kind == "data" and segment.span.length == 0 and segment.span.offset <= size):
            kept.append(segment._replace(span=Span(start, max(0, end - start))))
            position = max(position, end)
    filled = (segment.span for segment in kept if segment.span.length)
    empty = sorted({segment.span.offset for segment in kept if not segment.span.length})
    kept += [Segment(rest, piece) for span in gaps(filled, Span(0, size)) if span.length for piece in _cut(span, empty)]
    return sorted(kept, key=lambda segment: (segment.span.offset, segment.span.length))


def _cut(span: Span, places: list[int]) -> Iterator[Span]:
    """The pieces of a span between the places that lie inside it: where empty data stands, a gap has to end."""
    start = span.offset
    for place in places[bisect_right(places, span.offset) : bisect_left(places, span.end)]:
        yield Span(start, place - start)
        start = place
    yield Span(start, span.end - start)


def segments_of_records(document: Document, others: Iterable[Segment] = ()) -> list[Segment]:
    """For formats without a container of their own: the records are data, what lies between them is header."""
    return partition([*_data(document.records), *others], document.size, rest="header")


def _data(records: Iterable[Record]) -> Iterator[Segment]:
    return (Segment("data", record.span, record.name) for record in records if record.span is not None)
