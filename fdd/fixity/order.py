# SPDX-License-Identifier: Apache-2.0
"""Finds recorded segments that stand in another order: payloads swapped, records moved, whatever the container says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import product

from fdd.core.digests import new_hasher
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.fixity.manifest import Manifest, SegmentEntry

MOST_READ = 4
AT_LEAST = 64 << 20
"""Times the size of the file that may be digested before the search gives up, and bytes that may be in any case."""
MOST_TRIES = 100_000
"""Digests that may be made before it does: a file of a hundred thousand parts in disorder is not sorted out."""
CHANCE = 4096
"""Bytes up to which a segment may be found in its old place by chance, where others are now (zeros): it is looked for too."""
NEAR = 8
"""Payloads looked at beyond either end of what is not in its place: small ones may be alike by chance."""


class Order:
    """Where recorded segments lie now in a file of the recorded size.

    ``offsets`` gives the place of each segment found elsewhere, by its index in the manifest; ``alone`` are those among
    them that were moved, while the others moved along.
    """

    def __init__(self, manifest: Manifest, source: ByteSource, away: Sequence[int]) -> None:
        """``away``: indices of the segments that are not in their place. Raises SourceError where reading fails."""
        self.offsets: dict[int, int] = {}
        self.alone: set[int] = set()
        self._segments = manifest.segments
        self._source = source
        self._bytes_left = max(MOST_READ * source.size, AT_LEAST)
        self._tries_left = MOST_TRIES
        for first, second in _exchanges(self._segments, away):
            if self._is_exchanged(first, second, set(away)):
                return
        self._in_place = set(range(len(self._segments))).difference(away)
        self._rest: dict[int, dict[str, list[int]]] = {}
        """Segments to be found: length -> digest -> indices, ascending."""
        for index, segment in enumerate(self._segments):
            if segment.span.length and (index not in self._in_place or segment.span.length <= CHANCE):
                self._rest.setdefault(segment.span.length, {}).setdefault(_key(segment), []).append(index)
        filled = (index for index in self._in_place if self._segments[index].span.length)
        order = self._lay({self._segments[index].span.offset: index for index in filled})
        for place, found in enumerate(order):
            before = order[place - 1] if place else -1
            behind = order[place + 1] if place + 1 < len(order) else None
            if found is not None and found in self.offsets and before != found - 1 and behind != found + 1:
                self.alone.add(found)

    def _is_exchanged(self, first: Sequence[int], second: Sequence[int], away: set[int]) -> bool:
        """Whether two runs of segments stand in each other's place; what lies between them has moved along then."""
        order = [*second, *range(first[-1] + 1, second[0]), *first]
        offsets: dict[int, int] = {}
        position = self._segments[first[0]].span.offset
        for index in order:
            segment = self._segments[index]
            if segment.span.length and self._digest(Span(position, segment.span.length)) != _key(segment):
                return False
            offsets[index] = position
            position += segment.span.length
        self.offsets = {index: offset for index, offset in offsets.items() if index in away}
        self.alone = {index for index in (*first, *second) if index in away}
        return True

    def _lay(self, fixed: dict[int, int]) -> list[int | None]:
        """The segments in the order of the file; None stands for bytes that are of none."""
        stops = sorted(fixed)
        order: list[int | None] = []
        position = 0
        while position < self._source.size and self._rest:
            found = fixed.get(position)
            if found is None:
                found = self._found_at(position, order[-1] if order else -1)
            if found is None:
                stop = bisect_right(stops, position)
                position = stops[stop] if stop < len(stops) else self._source.size
            else:
                if found not in self._in_place:
                    self.offsets[found] = position
                position += self._segments[found].span.length
                self._strike(found)
            order.append(found)
        if position in fixed:
            order.append(fixed[position])
        return order

    def _found_at(self, position: int, before: int | None) -> int | None:
        """The segment whose bytes begin at ``position``: the one that followed ``before``, else one that is not in its place,
        else any; long ones first, because short ones are alike by chance."""
        follower = before + 1 if before is not None and before + 1 < len(self._segments) else None
        if follower is not None and self._is_listed(follower):
            span = Span(position, self._segments[follower].span.length)
            if self._digest(span) == _key(self._segments[follower]):
                return follower
        chance: int | None = None
        for length in sorted(self._rest, reverse=True):
            indices = self._rest[length].get(self._digest(Span(position, length)) or "", ())
            away = next((index for index in indices if index not in self._in_place), None)
            if away is not None:
                return away
            if chance is None and indices:
                chance = indices[0]
        return chance

    def _is_listed(self, index: int) -> bool:
        segment = self._segments[index]
        return index in self._rest.get(segment.span.length, {}).get(_key(segment), ())

    def _strike(self, index: int) -> None:
        """Take a segment off the list, if it is there."""
        if self._is_listed(index):
            segment = self._segments[index]
            by_digest = self._rest[segment.span.length]
            by_digest[_key(segment)].remove(index)
            if not by_digest[_key(segment)]:
                del by_digest[_key(segment)]
            if not by_digest:
                del self._rest[segment.span.length]

    def _digest(self, span: Span) -> str | None:
        if span.end > self._source.size or span.length > self._bytes_left or not self._tries_left:
            return None
        self._bytes_left -= span.length
        self._tries_left -= 1
        hasher = new_hasher(_algorithm(self._segments))
        for piece in self._source.stream(span):
            hasher.update(piece)
        return hasher.hexdigest()


def _exchanges(segments: Sequence[SegmentEntry], away: Sequence[int]) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Pairs of runs that may have been exchanged, if a single exchange is what happened: payloads, or whole records."""
    front = _payloads(segments, range(away[0], -1, -1))
    back = _payloads(segments, range(away[-1], len(segments)))
    for first, second in product(front, back):
        if first < second:
            yield [first], [second]
    front_records = [_record(segments, index) for index in (away[0], *front)]
    back_records = [_record(segments, index) for index in (away[-1], *back)]
    for one, other in product(front_records, back_records):
        if one[-1] < other[0]:
            yield one, other


def _payloads(segments: Sequence[SegmentEntry], indices: range) -> list[int]:
    """The first payload, and those behind it as long as they are small enough to be alike by chance."""
    found: list[int] = []
    for index in indices:
        segment = segments[index]
        if segment.kind != "data" or not segment.span.length:
            continue
        if len(found) > NEAR or (index != indices.start and segment.span.length > CHANCE):
            break
        found.append(index)
    return found


def _record(segments: Sequence[SegmentEntry], index: int) -> Sequence[int]:
    """The run of segments of one record round one of them."""
    name = segments[index].record
    start, stop = index, index + 1
    while name is not None and start and segments[start - 1].record == name:
        start -= 1
    while name is not None and stop < len(segments) and segments[stop].record == name:
        stop += 1
    return range(start, stop)


def _key(segment: SegmentEntry) -> str:
    return next(iter(segment.digests.values()), "")


def _algorithm(segments: tuple[SegmentEntry, ...]) -> str:
    """That of the parts: all have the same (:meth:`fdd.fixity.manifest.Manifest.from_json`)."""
    return next(iter(next(segment.digests for segment in segments if segment.digests)))
