# SPDX-License-Identifier: Apache-2.0
"""Finds recorded segments that stand in another order: payloads swapped, records moved, whatever the container says."""

from __future__ import annotations

from bisect import bisect_right

from fdd.core.digests import new_hasher
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.fixity.manifest import Manifest, SegmentEntry

MOST_READ = 4
"""Times the size of the file that may be digested before the search gives up."""
MOST_TRIES = 100_000
"""Digests that may be made before it does: a file of a hundred thousand parts in disorder is not sorted out."""
CHANCE = 4096
"""Bytes up to which a segment may be found in its old place by chance, where others are now (zeros): it is looked for too."""


class Tiling:
    """The file laid out with recorded segments, as far as that works.

    ``offsets`` gives the place of each segment found elsewhere, by its index in the manifest; ``alone`` are those among
    them that stand between neighbours of which neither is their own: these were moved, the others moved along.
    """

    def __init__(self, manifest: Manifest, source: ByteSource, in_place: set[int]) -> None:
        """``in_place``: indices of the segments that are where they were. Raises SourceError where reading fails."""
        self.offsets: dict[int, int] = {}
        self.alone: set[int] = set()
        self._segments = manifest.segments
        self._source = source
        self._bytes_left = MOST_READ * source.size
        self._tries_left = MOST_TRIES
        self._in_place = in_place
        self._rest: dict[int, dict[str, list[int]]] = {}
        """Segments to be found: length -> digest -> indices, ascending."""
        for index, segment in enumerate(self._segments):
            if segment.span.length and segment.digests and (index not in in_place or segment.span.length <= CHANCE):
                self._list(index)
        order = self._lay({self._segments[index].span.offset: index for index in in_place if self._segments[index].span.length})
        for place, found in enumerate(order):
            before = order[place - 1] if place else -1
            behind = order[place + 1] if place + 1 < len(order) else None
            if found is not None and found in self.offsets and before != found - 1 and behind != found + 1:
                self.alone.add(found)

    def _lay(self, fixed: dict[int, int]) -> list[int | None]:
        """The segments in the order of the file; None stands for bytes that are of none."""
        stops = sorted(fixed)
        order: list[int | None] = []
        position = 0
        while position < self._source.size and self._rest:
            found = fixed.get(position)
            if found is None:
                found = self._found_at(position, order[-1] if order else -1)
            last = order[-1] if order else None
            if found is None and last is not None and self._segments[last].span.length <= CHANCE:
                # What was taken for the segment in front of here may be the beginning of a longer one.
                short = self._segments[last].span.length
                start = position - short
                longer = self._found_at(start, order[-2] if len(order) > 1 else -1, longer_than=short)
                if longer is not None:
                    self._put_back(last)
                    order.pop()
                    found, position = longer, start
            if found is None:
                stop = bisect_right(stops, position)
                position = stops[stop] if stop < len(stops) else self._source.size
            else:
                if found not in self._in_place:
                    self.offsets[found] = position
                position += self._segments[found].span.length
                self._take(found)
            order.append(found)
        if position in fixed:
            order.append(fixed[position])
        return order

    def _found_at(self, position: int, before: int | None, *, longer_than: int = 0) -> int | None:
        """The segment whose bytes begin at ``position``; the one that followed ``before`` is tried first."""
        follower = before + 1 if before is not None and before + 1 < len(self._segments) else None
        own = self._segments[follower].span.length if follower is not None else 0
        # Long ones first: short ones are alike by chance.
        lengths = (length for length in self._rest if length > longer_than)
        for length in sorted(lengths, key=lambda length: (length != own, -length)):
            indices = self._rest[length].get(self._digest(Span(position, length)) or "")
            if indices:
                return follower if follower is not None and follower in indices else indices[0]
        return None

    def _list(self, index: int) -> None:
        """Put a segment on the list of those to be found."""
        segment = self._segments[index]
        by_digest = self._rest.setdefault(segment.span.length, {})
        by_digest.setdefault(next(iter(segment.digests.values())), []).append(index)

    def _put_back(self, index: int) -> None:
        self.offsets.pop(index, None)
        self._list(index)

    def _take(self, index: int) -> None:
        """Strike a segment off the list of those to be found."""
        length, digest = self._segments[index].span.length, next(iter(self._segments[index].digests.values()))
        by_digest = self._rest.get(length, {})
        if index in by_digest.get(digest, ()):
            by_digest[digest].remove(index)
            if not by_digest[digest]:
                del by_digest[digest]
            if not by_digest:
                del self._rest[length]

    def _digest(self, span: Span) -> str | None:
        if span.end > self._source.size or span.length > self._bytes_left or not self._tries_left:
            return None
        self._bytes_left -= span.length
        self._tries_left -= 1
        hasher = new_hasher(_algorithm(self._segments))
        for piece in self._source.stream(span):
            hasher.update(piece)
        return hasher.hexdigest()


def _algorithm(segments: tuple[SegmentEntry, ...]) -> str:
    """That of the parts: all have the same (:meth:`fdd.fixity.manifest.Manifest.from_json`)."""
    return next(iter(next(segment.digests for segment in segments if segment.digests)))
