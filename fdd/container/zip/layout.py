# SPDX-License-Identifier: Apache-2.0
"""Who owns which bytes: a partition of the file into regions, and the extents that share bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fdd.container.zip.structs import END_RECORD, Region, ZipFacts, ZipRecord
from fdd.core.span import Span, gaps

UNOWNED = frozenset({"prefix", "gap", "trailing"})


def lay_out(facts: ZipFacts) -> None:
    """Fill ``regions`` and ``overlaps`` of ``facts`` from its records, directory and end records.

    End records and directory own their bytes before any record does; of two records the one that begins first does,
    and of two that begin together the one that is listed first.
    """
    fixed = _disjoint(_structures(facts), Span(0, facts.size))
    order = sorted((record.local.span.offset, number) for number, record in enumerate(facts.records) if record.local is not None)
    owned = sorted([*fixed, *_owned(facts, order, fixed)], key=_offset)
    begin, end = _begin(facts, owned), _end(facts, owned)
    facts.regions = []
    position = 0
    for region in owned:
        offset, length = region.span
        if offset > position:
            facts.regions.extend(_unowned(Span(position, offset - position), begin, end))
        facts.regions.append(region)
        position = offset + length
    if position < facts.size:
        facts.regions.extend(_unowned(Span(position, facts.size - position), begin, end))
    facts.overlaps = list(_overlaps(facts, order, [region.span for region in fixed]))


def _offset(region: Region) -> int:
    return region.span.offset


def _owned(facts: ZipFacts, order: list[tuple[int, int]], fixed: list[Region]) -> Iterator[Region]:
    """What the records own, besides the ``fixed`` structures; ``order`` are offset and number of those with a header."""
    free = fixed[0].span.offset if fixed else facts.size
    cursor = 0
    for _, number in order:
        for what, (offset, length) in _parts(facts.records[number]):
            start, end = max(cursor, offset), min(offset + length, facts.size)
            if start < end:
                cursor = end
                span = Span(start, end - start)
                if end <= free:
                    yield Region(span, what, number)
                else:
                    yield from (Region(piece, what, number) for piece in _without(span, fixed))


def unowned_spans(facts: ZipFacts) -> list[Span]:
    """The bytes of the file that neither a record nor the directory nor an end record owns, ascending; none touch."""
    owned = (region.span for region in facts.regions if region.what not in UNOWNED)
    return list(gaps(owned, Span(0, facts.size)))


def _parts(record: ZipRecord) -> Iterator[tuple[str, Span]]:
    if record.local is not None:
        yield "local-header", record.local.span
    descriptor = record.descriptor
    if record.payload is not None:
        payload = record.payload
        if descriptor is not None and payload.offset <= descriptor.span.offset < payload.end:
            # A displaced descriptor: the size in the directory is too large.
            payload = Span(payload.offset, descriptor.span.offset - payload.offset)
        yield "payload", payload
    if descriptor is not None:
        yield "descriptor", descriptor.span


def _structures(facts: ZipFacts) -> Iterator[Region]:
    """End records and directory, the strongest claim first."""
    ends = facts.ends
    if ends.end is not None:
        fixed_length = min(END_RECORD.size, ends.end.span.length)
        yield Region(Span(ends.end.span.offset, fixed_length), "end")
        yield Region(Span(ends.end.span.offset + fixed_length, ends.end.span.length - fixed_length), "comment")
    if ends.locator is not None:
        yield Region(ends.locator.span, "zip64-locator")
    if ends.zip64_end is not None:
        span = ends.zip64_end.span
        yield Region(Span(span.offset, span.length + ends.zip64_end.extensible.length), "zip64-end")
    if facts.directory is not None:
        yield Region(facts.directory.span, "directory")


def _disjoint(claims: Iterable[Region], whole: Span) -> list[Region]:
    """Cut each claim down to what lies in ``whole`` and none before it has; ascending."""
    taken: list[Region] = []
    for claim in claims:
        start, end = max(claim.span.offset, whole.offset), min(claim.span.end, whole.end)
        if start < end:
            taken.extend([Region(piece, claim.what) for piece in _without(Span(start, end - start), taken)])
            taken.sort(key=lambda region: region.span)
    return taken


def _without(span: Span, taken: list[Region]) -> Iterable[Span]:
    """The parts of ``span`` that no taken region covers."""
    covered = [region.span for region in taken if region.span.overlaps(span)]
    return gaps(covered, span) if covered else (span,)


def _unowned(span: Span, begin: int, end: int) -> Iterator[Region]:
    """Name a span without owner: in front of the archive, behind it, or inside; one that crosses its begin is split."""
    if span.offset < begin:
        yield Region(Span(span.offset, min(span.end, begin) - span.offset), "prefix")
    if span.end > begin:
        rest = Span(max(span.offset, begin), span.end - max(span.offset, begin))
        yield Region(rest, "trailing" if rest.offset >= end else "gap")


def _begin(facts: ZipFacts, owned: list[Region]) -> int:
    """Where the archive begins: at the first byte with an owner, or where the first record should be, or is after all."""
    stated = [record.entry.header_offset for record in facts.records if record.entry is not None]
    lost = {record.name for record in facts.records if record.local is None}
    stated += [record.local.span.offset for record in facts.unlisted if record.local is not None and record.name in lost]
    first_owned = min((region.span.offset for region in owned), default=facts.size)
    return min((offset for offset in stated if 0 <= offset < first_owned), default=first_owned)


def _end(facts: ZipFacts, owned: list[Region]) -> int:
    """Where the archive ends: behind the end record, or behind the last byte with an owner."""
    if facts.ends.end is not None:
        return facts.ends.end.span.end
    return max((region.span.end for region in owned), default=0)


def _overlaps(facts: ZipFacts, order: list[tuple[int, int]], fixed: list[Span]) -> Iterator[tuple[int, int, Span]]:
    farthest: tuple[int, Span] | None = None
    for _, number in order:
        extent = facts.records[number].extent
        if extent is None:
            continue
        if fixed and extent.end > fixed[0].offset:
            yield from ((number, -1, _shared(extent, span)) for span in fixed if extent.overlaps(span))
        if farthest is not None and extent.overlaps(farthest[1]):
            yield farthest[0], number, _shared(extent, farthest[1])
        if farthest is None or extent.end > farthest[1].end:
            farthest = number, extent


def _shared(one: Span, other: Span) -> Span:
    start = max(one.offset, other.offset)
    return Span(start, min(one.end, other.end) - start)
