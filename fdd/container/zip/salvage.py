# SPDX-License-Identifier: Apache-2.0
"""Records found without a directory, by a walk from front to back over bytes that no listed record owns.

torch's local headers hold no sizes, so the end of a payload is told by its descriptor: the one that counts exactly the
bytes from the payload's start up to itself. A descriptor of an archive *inside* the payload counts fewer, and one of a
later record counts from another start. All signatures are collected in one pass, so the walk costs one read of the
bytes however many descriptors are missing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fdd.container.zip.descriptor import LENGTHS, LONGEST_DESCRIPTOR, NARROW, WIDE, decode
from fdd.container.zip.local import read_local, stated_lengths
from fdd.container.zip.structs import (
    DESCRIPTOR_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    FLAG_DESCRIPTOR,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    METHOD_STORED,
    CentralEntry,
    DataDescriptor,
    Fault,
    LocalHeader,
    ZipFacts,
    ZipRecord,
)
from fdd.container.zip.window import Window
from fdd.core.source import ByteSource
from fdd.core.span import Span

_SIGNATURE = re.compile(rb"PK(?:\x03\x04|\x07\x08|\x01\x02|\x06\x06|\x05\x06)")
_AHEAD = 4 << 10
_MOST_SHIFTS = 8
_HIGHEST_VERSION = 100
"""No "version needed" is higher (APPNOTE 4.4.3.2 ends at 6.3); random bytes after a signature mostly are."""


@dataclass(slots=True)
class _Marks:
    """Where signatures stand in a span, ascending: local headers, end records, and all that may follow a payload.

    ``descriptors`` maps the start of a payload to the descriptors that count from there, as ``(offset, length)``.
    """

    local_headers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    descriptors: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


def find_records(source: ByteSource, spans: Iterable[Span], lost: Mapping[bytes, CentralEntry], most: int) -> list[ZipRecord]:
    """Walk over each span and return the records whose local headers lie wholly inside it, ``index`` -1.

    ``lost`` are directory entries without a local header, by name: they tell sizes. At most ``most`` signatures of each
    kind are used.
    """
    window = Window(source)
    records: list[ZipRecord] = []
    for span in spans:
        if span.length >= LOCAL_HEADER.size:
            walk = _SpanWalk(window, span, _collect(source, span, most), lost)
            records.extend(walk.records())
    return records


def find_shifted(source: ByteSource, facts: ZipFacts) -> list[ZipRecord]:
    """Records whose local header stands as far from its stated place as others do, in bytes that a listed record claims.

    Bytes lost or inserted in the middle move everything behind by one distance. The first header behind the fault then
    may stand in what the directory gives to the record before it, where :func:`find_records` does not look.
    """
    lost = {record.name: record.entry for record in facts.records if record.entry is not None and record.local is None}
    shifts: set[int] = set()
    if facts.directory is not None and facts.directory.stated_offset >= 0:
        shifts.add(facts.directory.span.offset - facts.directory.stated_offset - facts.directory.base)
    for record in facts.unlisted:
        entry = lost.pop(record.name, None)
        if entry is not None and record.local is not None and len(shifts) < _MOST_SHIFTS:
            shifts.add(record.local.span.offset - entry.header_offset)
    window = Window(source)
    walk = _SpanWalk(window, Span(0, facts.size), _Marks(), lost)
    found: list[ZipRecord] = []
    for entry in lost.values():
        for position in sorted(entry.header_offset + shift for shift in shifts - {0}):
            raw = window.read(position, LOCAL_HEADER.size + len(entry.name), _AHEAD)
            if raw[:4] == LOCAL_HEADER_SIGNATURE and raw[LOCAL_HEADER.size :] == entry.name:
                found.extend(walk.record_at(position))
    return found


def _collect(source: ByteSource, span: Span, most: int) -> _Marks:
    marks = _Marks()
    carry, position = b"", span.offset
    for piece in source.stream(span):
        data = carry + piece
        start = position - len(carry)
        position += len(piece)
        # What begins in the last bytes is looked at again with the next piece, when it is whole.
        fresh = len(data) if position >= span.end else len(data) - LONGEST_DESCRIPTOR + 1
        for match in _SIGNATURE.finditer(data):
            at = match.start()
            if at < fresh:
                _note(marks, data, at, start, most)
        carry = data[max(0, fresh) :]
    return marks


def _note(marks: _Marks, data: bytes, at: int, start: int, most: int) -> None:
    signature = data[at : at + 4]
    if signature == DESCRIPTOR_SIGNATURE:
        for layout, length in ((NARROW, 16), (WIDE, 24)):
            if at + length <= len(data) and len(marks.descriptors) < most:
                payload = start + at - layout.unpack_from(data, at + 4)[1]
                marks.descriptors.setdefault(payload, []).append((start + at, length))
    elif len(marks.stops) < most:
        marks.stops.append(start + at)
        if signature == LOCAL_HEADER_SIGNATURE:
            marks.local_headers.append(start + at)
        elif signature == END_SIGNATURE:
            marks.ends.append(start + at)


class _SpanWalk:
    def __init__(self, window: Window, span: Span, marks: _Marks, lost: Mapping[bytes, CentralEntry]) -> None:
        self.window = window
        self.span = span
        self.marks = marks
        self.lost = lost

    def records(self) -> Iterable[ZipRecord]:
        """Yield the records one behind the other; a header inside the payload of another does not count."""
        position = self.span.offset
        for start in self.marks.local_headers:
            if start < position:
                continue
            local = self._header(start)
            if local is None:
                continue
            record = self._record(local)
            extent = record.extent
            position = extent.end if extent is not None else local.span.end
            yield record

    def record_at(self, start: int) -> list[ZipRecord]:
        """The record whose local header begins at ``start``, in a list; empty where none can be read."""
        local = self._header(start)
        return [self._record(local)] if local is not None else []

    def _header(self, start: int) -> LocalHeader | None:
        raw = self.window.read(start, LOCAL_HEADER.size, _AHEAD)
        if len(raw) < LOCAL_HEADER.size:
            return None
        lengths = stated_lengths(raw)
        behind = start + LOCAL_HEADER.size + sum(lengths)
        if behind > self.span.end or lengths[0] == 0 or raw[4] > _HIGHEST_VERSION:
            return None
        return read_local(self.window, start, lengths, _AHEAD)

    def _record(self, local: LocalHeader) -> ZipRecord:
        """Give a header its payload and descriptor, by the strongest evidence there is."""
        payload = local.span.end
        follows = local.flags & FLAG_DESCRIPTOR
        for size in self._told_sizes(local):
            behind = payload + size
            descriptor = self._descriptor_at(behind, size)
            if descriptor is not None or (behind <= self.span.end and (not follows or self._structure_at(behind))):
                return self._made(local, behind, descriptor)
        if not follows and local.compressed_size:
            return self._made(local, self.span.end, None, complete=False)
        for position, length in self.marks.descriptors.get(payload, ()):
            descriptor = decode(self.window.read(position, length, _AHEAD), length, position)
            if local.method != METHOD_STORED or descriptor.uncompressed_size == descriptor.compressed_size:
                return self._made(local, position, descriptor)
        return self._up_to_next(local)

    def _told_sizes(self, local: LocalHeader) -> list[int]:
        """Sizes that the header, or a directory entry of the same name without a header, tell."""
        sizes: list[int] = []
        if local.compressed_size or not local.flags & FLAG_DESCRIPTOR:
            sizes.append(local.compressed_size)
        elif local.uncompressed_size and local.method == METHOD_STORED:
            sizes.append(local.uncompressed_size)  # torch's ZIP64 field has only this one (format.md 1.10)
        entry = self.lost.get(local.name)
        if entry is not None:
            sizes.append(entry.compressed_size)
        return sizes

    def _descriptor_at(self, position: int, size: int) -> DataDescriptor | None:
        raw = self.window.read(position, LONGEST_DESCRIPTOR, _AHEAD)
        if raw[:4] != DESCRIPTOR_SIGNATURE:
            return None
        fitting = (decode(raw, length, position) for length in (16, 24) if length <= len(raw))
        return next((item for item in fitting if item.compressed_size == size), None)

    def _structure_at(self, position: int) -> bool:
        return position == self.span.end or _SIGNATURE.match(self.window.read(position, 4, _AHEAD)) is not None

    def _up_to_next(self, local: LocalHeader) -> ZipRecord:
        """The payload ends where the next structure begins, or with the span; a damaged descriptor may be in between."""
        payload = local.span.end
        behind = self._first(self.marks.stops, payload)
        if behind == payload:
            return self._made(local, self._behind_inner(payload), None, complete=False)
        for length in LENGTHS:
            position = behind - length
            if position >= payload:
                descriptor = decode(self.window.read(position, length, _AHEAD), length, position)
                if descriptor.compressed_size == position - payload and descriptor.compressed_size:
                    record = self._made(local, position, descriptor)
                    if descriptor.has_signature:
                        record.descriptor_fault = Fault("descriptor-signature", position, 4, "50 4B 07 08")
                    return record
        return self._made(local, behind, None, complete=False)

    def _first(self, marks: list[int], position: int) -> int:
        """The first of ascending marks at or behind ``position``, else the end of the span."""
        at = bisect_left(marks, position)
        return marks[at] if at < len(marks) else self.span.end

    def _behind_inner(self, payload: int) -> int:
        """Where a payload ends that is an archive itself: behind its end records, if a structure follows there.

        Else the span cuts it: what looks like further records are records of that archive.
        """
        end = self._first(self.marks.ends, payload)
        behind = self._first(self.marks.stops, end + END_RECORD.size)
        return end + END_RECORD.size if behind - end - END_RECORD.size in (0, *LENGTHS) else self.span.end

    def _made(self, local: LocalHeader, end: int, descriptor: DataDescriptor | None, complete: bool = True) -> ZipRecord:
        payload = Span(local.span.end, end - local.span.end)
        return ZipRecord(-1, None, local, None, payload, complete, descriptor)
