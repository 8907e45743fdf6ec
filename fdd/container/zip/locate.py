# SPDX-License-Identifier: Apache-2.0
"""Where the central directory is: where the end records say, or where the bytes say that it is."""

from __future__ import annotations

from fdd.container.zip.directory import LONGEST_ENTRY, Bounds, Walk, next_entry, walk_directory
from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    CentralEntry,
    Directory,
    Ends,
    Fault,
)
from fdd.container.zip.window import chunks_backward, content_end
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.limits import Limits

_SAMPLE = 16
"""Local headers looked at to find out what offsets count from."""
_SEARCHED = 16 << 20
"""Bytes in front of the end records in which the last directory entry is looked for."""


def read_directory_of(source: ByteSource, ends: Ends, limits: Limits) -> Directory | None:
    """Find and walk the directory that belongs to ``ends``; None where there is none."""
    record = ends.zip64_end if ends.governing == "zip64-end" else ends.end if ends.governing == "end" else None
    offset, size, count = -1, -1, -1
    if record is not None:
        offset, size, count = record.directory_offset, record.directory_size, record.entries
    limit = ends.start if ends.start is not None else _without_zero_tail(source)
    bounds = Bounds(limit, size, count, limits.directory_entries, cut=ends.start is None)
    found = _Search(source, offset, bounds, trusted=not ends.faults).find()
    if found is None:
        return None
    walk, base = found
    if base:
        for entry in walk.entries:
            entry.header_offset += base
    if offset >= 0 and offset + base != walk.start:
        walk.faults.insert(0, Fault("directory-offset", walk.start, 0, f"the directory at offset {offset + base}"))
    span = Span(walk.start, walk.end - walk.start)
    directory = Directory(span, walk.entries, offset, size, count, base, walk.faults)
    directory.alternatives = _alternatives(source, ends, walk.start)
    return directory


def _without_zero_tail(source: ByteSource) -> int:
    """Where the file ends, or the zeros that overwrote its end begin; a few zeros may belong to an entry that is cut."""
    behind = content_end(source)
    return behind if source.size - behind > CENTRAL_HEADER.size else source.size


class _Search:
    """``offset`` is where the directory should be by the end records, -1 without any.

    ``trusted``: the end records are without a fault. Only then is an archive believed to be empty without a look.
    """

    def __init__(self, source: ByteSource, offset: int, bounds: Bounds, *, trusted: bool) -> None:
        self.source = source
        self.offset = offset
        self.bounds = bounds
        self.limit = bounds.limit
        self.size = bounds.size
        self.count = bounds.count
        self.empty = self.size == 0 and self.count == 0
        self.trusted = trusted

    def walk(self, start: int) -> Walk:
        return walk_directory(self.source, start, self.bounds)

    def find(self) -> tuple[Walk, int] | None:
        """The walk and its base, from the first place that holds a directory: the stated one, the one that ends at the
        end records, the last run of entries in the file."""
        offset, limit = self.offset, self.limit
        beside = limit - self.size if 0 <= self.size <= limit else -1
        if offset >= 0 and beside == offset:
            walk = self.walk(offset)
            if walk.entries or (self.empty and self.trusted):
                return walk, 0
        found = self._of_two(offset, beside) or self._without_signature(beside) or self._searched()
        if found is None and self.empty:
            return Walk(min(offset, limit), min(offset, limit)), 0
        return found

    def _of_two(self, offset: int, beside: int) -> tuple[Walk, int] | None:
        """The directory at the stated offset or the one as long as stated in front of the end records.

        Where both are directories, the second counts if its entries point at local headers with its base added (bytes
        stand in front of the archive), or if it alone has as many entries as stated.
        """
        first = self._walk_if_entry(offset)
        second = self._walk_if_entry(beside) if beside != offset else None
        if second is None:
            return (first, 0) if first is not None else None
        base = self._base(second)
        if first is None:
            return second, base
        if base:
            better = _hits(self.source, second.entries, base) >= _hits(self.source, first.entries, 0)
        else:
            better = len(second.entries) == self.count != len(first.entries)
        return (second, base) if better else (first, 0)

    def _without_signature(self, start: int) -> tuple[Walk, int] | None:
        """As many entries as stated from ``start`` on, although the first has a damaged signature."""
        walk = self.walk(start) if 0 <= start < self.limit else None
        if walk is None or not walk.entries or len(walk.entries) != self.count or walk.entries[0].span.offset != start:
            return None
        return walk, self._base(walk)

    def _walk_if_entry(self, start: int) -> Walk | None:
        if not 0 <= start < self.limit or self.source.read_at(start, 4) != CENTRAL_HEADER_SIGNATURE:
            return None
        walk = self.walk(start)
        return walk if walk.entries else None

    def _base(self, walk: Walk) -> int:
        """What offsets count from: 0, or the distance of the directory from its stated offset; the first record decides."""
        shift = walk.start - self.offset
        if self.offset < 0 or shift == 0:
            return 0
        lowest = [min(walk.entries, key=lambda entry: entry.header_offset)]
        plain, shifted = _hits(self.source, lowest, 0), _hits(self.source, lowest, shift)
        if plain == shifted:
            plain, shifted = _hits(self.source, walk.entries, 0), _hits(self.source, walk.entries, shift)
        return shift if shifted and shifted >= plain else 0

    def _searched(self) -> tuple[Walk, int] | None:
        """The last run of entries, lest the directory of an archive inside a record counts: in front of the end records,
        or else with half of its entries pointing at local headers of their names."""
        start = _last_run(self.source, self.limit, self.bounds.most)
        walk = self.walk(start) if start is not None else None
        if walk is None or not walk.entries:
            return None
        base = self._base(walk)
        if walk.end == self.limit and not self.bounds.cut:
            return walk, base
        hits = _hits(self.source, walk.entries, base)
        return (walk, base) if 2 * hits >= len(_sample(walk.entries)) else None


def _sample(entries: list[CentralEntry]) -> list[CentralEntry]:
    return entries[:: max(1, len(entries) // _SAMPLE)]


def _hits(source: ByteSource, entries: list[CentralEntry], base: int) -> int:
    """How many of some entries, taken from all over the directory, have a local header of their name at their offset."""
    hits = 0
    for entry in _sample(entries):
        raw = source.read_at(entry.header_offset + base, LOCAL_HEADER.size + len(entry.name))
        hits += raw[:4] == LOCAL_HEADER_SIGNATURE and raw[LOCAL_HEADER.size :] == entry.name
    return hits


def _last_run(source: ByteSource, limit: int, most: int) -> int | None:
    """Where the last run of directory entries before ``limit`` begins."""
    found: list[tuple[int, int]] = []  # (offset, where its lengths lead), descending
    for start, data, fresh in chunks_backward(source, limit, CENTRAL_HEADER.size - 1):
        at = data.rfind(CENTRAL_HEADER_SIGNATURE, 0, fresh + 3)
        while at >= 0:
            if at + CENTRAL_HEADER.size <= len(data):
                found.append((start + at, next_entry(data[at : at + CENTRAL_HEADER.size], start + at)))
            at = data.rfind(CENTRAL_HEADER_SIGNATURE, 0, at + 3)
        searched = found[-1][0] - start > LONGEST_ENTRY if found else limit - start > _SEARCHED
        if searched or len(found) > most:
            break
    if not found:
        return None
    head = found[0][0]
    for position, behind in found[1:]:
        if head - position > LONGEST_ENTRY:
            break
        if behind == head or _leads_to(source, behind, head):
            head = position
    return head


def _leads_to(source: ByteSource, behind: int, head: int) -> bool:
    """Whether an entry that should be followed at ``behind`` belongs to the run that goes on at ``head``.

    It does if an entry without its signature lies between, or if one of its lengths has a single bit wrong.
    """
    distance = abs(head - behind)
    if behind < head:
        raw = source.read_at(behind, CENTRAL_HEADER.size)
        if len(raw) == CENTRAL_HEADER.size and next_entry(raw, behind) == head:
            return True
    return distance < CENTRAL_HEADER.size or distance & (distance - 1) == 0


def _alternatives(source: ByteSource, ends: Ends, start: int) -> list[int]:
    places = {record.directory_offset for record in (ends.end, ends.zip64_end) if record is not None} - {start}
    return sorted(place for place in places if source.read_at(place, 4) == CENTRAL_HEADER_SIGNATURE)
