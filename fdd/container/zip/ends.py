# SPDX-License-Identifier: Apache-2.0
"""What stands at the end of an archive: end record, ZIP64 locator, ZIP64 end record (APPNOTE 4.3.14 to 4.3.16).

Readers find the end record by its signature alone. Here a damaged signature does not hide it: a record is also taken
where the structures around it say that it must be. Every such step leaves a fault.
"""

from __future__ import annotations

import re
from struct import unpack_from

from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    U16_ESCAPE,
    U32_ESCAPE,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
    ZIP64_LOCATOR,
    ZIP64_LOCATOR_SIGNATURE,
    EndRecord,
    Ends,
    Fault,
    Zip64EndRecord,
    Zip64Locator,
)
from fdd.container.zip.window import chunks_backward, content_end
from fdd.core.source import EDGE, ByteSource
from fdd.core.span import Span

_LONGEST_END = END_RECORD.size + U16_ESCAPE
_ALL_ENDS = ZIP64_END_RECORD.size + ZIP64_LOCATOR.size + END_RECORD.size
_USUAL_RECORD_SIZE = 44
"""What a ZIP64 end record without extensible data counts: the bytes behind its size field."""
_NESTED_TESTS = 256
"""How many end records that turn out to lie in a payload are passed over; a bound for hostile files only."""
_SEARCHED = 1 << 20
"""Bytes behind the directory that are searched for other end records."""
_END_SIGNATURE = re.compile(rb"PK(?:\x05\x06|\x06[\x06\x07])")
_THREE_OF_FOUR = re.compile(rb"(?=(?:.K\x05\x06|P.\x05\x06|PK.\x06|PK\x05.))", re.DOTALL)
"""An end record signature with one byte wrong."""


class _Tail:
    """The last bytes of the file, and the offset of the first of them."""

    def __init__(self, source: ByteSource, end: int) -> None:
        self.source = source
        self.end = end
        self.start = max(0, end - EDGE)
        self.data = source.read_at(self.start, end - self.start)

    def widen(self) -> bool:
        """Go back as far as an end record with the longest comment can begin. False when that changes nothing."""
        start = max(0, self.end - _LONGEST_END)
        if start >= self.start:
            return False
        self.data = self.source.read_at(start, self.start - start) + self.data
        self.start = start
        return True

    def positions(self, signature: bytes, room: int) -> list[int]:
        """Offsets of ``signature`` with ``room`` bytes up to the end, ascending."""
        found: list[int] = []
        at = self.data.find(signature)
        while at >= 0 and at + room <= len(self.data):
            found.append(self.start + at)
            at = self.data.find(signature, at + 1)
        return found

    def bytes_at(self, offset: int, length: int) -> bytes:
        if offset >= self.start and offset + length <= self.end:
            return self.data[offset - self.start : offset - self.start + length]
        return self.source.read_at(offset, length)


def find_ends(source: ByteSource) -> Ends:
    """Find and read the end records of an archive; what is missing or damaged is in ``faults``."""
    ends = Ends(trailing=Span(source.size, 0))
    tail = _Tail(source, source.size)
    position = _end_position(source, tail, ends)
    if position is not None:
        _read_end(source, position, ends)
        _read_zip64(source, tail, position, ends)
    elif not any(fault.code == "end-record-missing" for fault in ends.faults):
        ends.faults.append(Fault("end-record-missing", source.size, 0, "an end of central directory record"))
    _note_others(tail, ends)
    ends.governing = _governing(ends)
    return ends


def _end_position(source: ByteSource, tail: _Tail, ends: Ends) -> int | None:
    """Where the end record stands, by signature or by the structures around it.

    Only where the last bytes hold nothing is the file searched backwards, and only then is a file that was cut inside
    its end records, or whose end was overwritten with zeros, looked at again without these zeros.
    """
    position = _exact(tail)
    if position is None and tail.widen():
        position = _exact(tail)
    if position is None:
        position = _damaged(source, tail)
    if position is None:
        position = _inexact(source, tail)
    if position is None:
        position = _cut(source, tail, ends)
    if position is None and tail.start > 0 and ends.zip64_end is None:
        position = _search_back(source, tail.start)
    if position is None and ends.zip64_end is None:
        behind = content_end(source)
        if behind < source.size:
            position = _cut(source, _Tail(source, behind), ends)
    return position


def _exact(tail: _Tail) -> int | None:
    """The last signature whose comment reaches exactly to the end of the file."""
    for position in reversed(tail.positions(END_SIGNATURE, END_RECORD.size)):
        (length,) = unpack_from("<H", tail.data, position - tail.start + 20)
        if position + END_RECORD.size + length == tail.end:
            return position
    return None


def _inexact(source: ByteSource, tail: _Tail) -> int | None:
    """The last signature behind a directory or ZIP64 records, else the last one, whatever its comment length says."""
    candidates = tail.positions(END_SIGNATURE, END_RECORD.size)[: -_NESTED_TESTS - 1 : -1]
    candidates = [position for position in candidates if not _nested(source, position)]
    for position in candidates:
        if _fits(source, tail, position, tail.bytes_at(position, END_RECORD.size)):
            return position
    return candidates[0] if candidates else None


def _damaged(source: ByteSource, tail: _Tail) -> int | None:
    """An end record without its signature: its comment reaches to the end of the file, and what is in front fits it."""
    candidates = [tail.end - END_RECORD.size]
    candidates += [position + ZIP64_LOCATOR.size for position in tail.positions(ZIP64_LOCATOR_SIGNATURE, 42)[::-1]]
    candidates += [tail.start + match.start() for match in _THREE_OF_FOUR.finditer(tail.data)][::-1]
    for position in candidates[: 4 * _NESTED_TESTS]:
        raw = tail.bytes_at(position, END_RECORD.size)
        if len(raw) < END_RECORD.size or raw[:4] == END_SIGNATURE:
            continue
        comment_length = END_RECORD.unpack(raw)[7]
        if position + END_RECORD.size + comment_length == tail.end and _fits(source, tail, position, raw):
            return position
    return None


def _fits(source: ByteSource, tail: _Tail, position: int, raw: bytes) -> bool:
    """Whether ZIP64 records stand in front of an end record, or a directory of the size in its otherwise sound fields."""
    if tail.bytes_at(position - 20, 4) == ZIP64_LOCATOR_SIGNATURE or tail.bytes_at(position - 76, 4) == ZIP64_END_SIGNATURE:
        return True
    _, disk, start_disk, disk_entries, entries, size, _, _ = END_RECORD.unpack(raw)
    if disk or start_disk or disk_entries != entries or not CENTRAL_HEADER.size * max(1, entries) <= size <= position:
        return False
    return any(source.read_at(behind - size, 4) == CENTRAL_HEADER_SIGNATURE for behind in (position, position - 76))


def _nested(source: ByteSource, position: int) -> bool:
    """Whether the archive of the end record at ``position`` is the payload of a record."""
    raw = source.read_at(position, END_RECORD.size)
    size, offset = unpack_from("<II", raw.ljust(END_RECORD.size, b"\0"), 12)
    behind = position
    if source.read_at(position - ZIP64_LOCATOR.size, 4) == ZIP64_LOCATOR_SIGNATURE:
        behind -= ZIP64_LOCATOR.size + ZIP64_END_RECORD.size
        if U32_ESCAPE in (size, offset) or len(raw) < END_RECORD.size:
            return _nested_zip64(source, behind)
    return len(raw) >= 20 and _is_payload(source, behind - size - offset)


def _nested_zip64(source: ByteSource, position: int) -> bool:
    """The same for the archive of the ZIP64 end record at ``position``."""
    raw = source.read_at(position, ZIP64_END_RECORD.size) if position >= 0 else b""
    if raw[:4] != ZIP64_END_SIGNATURE or len(raw) < ZIP64_END_RECORD.size:
        return False
    size, offset = ZIP64_END_RECORD.unpack(raw)[8:10]
    return _is_payload(source, position - size - offset)


def _is_payload(source: ByteSource, begin: int) -> bool:
    """Whether a local header ends at ``begin``."""
    if begin <= 0:
        return False
    start = max(0, begin - LOCAL_HEADER.size - 2 * U16_ESCAPE)
    before = source.read_at(start, begin - start)
    at = before.rfind(LOCAL_HEADER_SIGNATURE)
    while at >= 0:
        if at + LOCAL_HEADER.size <= len(before):
            name_length, extra_length = unpack_from("<HH", before, at + 26)
            if at + LOCAL_HEADER.size + name_length + extra_length == len(before):
                return True
        at = before.rfind(LOCAL_HEADER_SIGNATURE, 0, at)
    return False


def _search_back(source: ByteSource, end: int) -> int | None:
    """The last end record signature before ``end`` that is not in a payload."""
    tests = _NESTED_TESTS
    for start, data, fresh in chunks_backward(source, end, END_RECORD.size - 1):
        at = data.rfind(END_SIGNATURE, 0, fresh + 3)
        while at >= 0:
            if at + END_RECORD.size <= len(data):
                tests -= 1
                if tests < 0:
                    return None
                if not _nested(source, start + at):
                    return start + at
            at = data.rfind(END_SIGNATURE, 0, at + 3)
    return None


def _cut(source: ByteSource, tail: _Tail, ends: Ends) -> int | None:
    """End records that the end of the file cuts: a part of the end record, or only ZIP64 records.

    Fills ``ends`` and returns None where no byte of the end record is left; else returns its position.
    """
    for locator in reversed(tail.positions(ZIP64_LOCATOR_SIGNATURE, ZIP64_LOCATOR.size)):
        behind = locator + ZIP64_LOCATOR.size
        if tail.end - behind >= END_RECORD.size:
            break
        if _nested_zip64(source, locator - ZIP64_END_RECORD.size):
            return None
        if tail.end > behind and tail.bytes_at(behind, tail.end - behind)[:4] == END_SIGNATURE[: tail.end - behind]:
            return behind
        ends.faults.append(Fault("end-record-missing", behind, 0, "an end of central directory record"))
        _read_zip64(source, tail, behind, ends)
        return None
    at = tail.data.rfind(END_SIGNATURE, max(0, len(tail.data) - END_RECORD.size + 1))
    if at >= 0 and not _nested(source, tail.start + at):
        return tail.start + at
    for position in reversed(tail.positions(ZIP64_END_SIGNATURE, ZIP64_END_RECORD.size)):
        if tail.end - position < _ALL_ENDS and not _nested_zip64(source, position):
            ends.faults.append(Fault("end-record-missing", tail.end, 0, "an end of central directory record"))
            ends.zip64_end = _zip64_end(source, position, position + ZIP64_END_RECORD.size)
        break
    return None


def _read_end(source: ByteSource, position: int, ends: Ends) -> None:
    raw = source.read_at(position, _LONGEST_END)
    if raw[:4] != END_SIGNATURE[: len(raw)]:
        ends.faults.append(Fault("end-record-signature", position, min(4, len(raw)), "50 4B 05 06"))
    if len(raw) < END_RECORD.size:
        ends.faults.append(Fault("end-record-cut", position, len(raw), f"{END_RECORD.size} bytes"))
    _, disk, start_disk, disk_entries, entries, size, offset, length = END_RECORD.unpack(
        raw[: END_RECORD.size].ljust(END_RECORD.size, b"\0")
    )
    comment = raw[END_RECORD.size : END_RECORD.size + length]
    if len(raw) >= END_RECORD.size and len(comment) < length:
        ends.faults.append(Fault("comment-cut", position + END_RECORD.size, len(comment), f"{length} bytes of comment"))
    span = Span(position, min(len(raw), END_RECORD.size) + len(comment))
    ends.end = EndRecord(span, disk, start_disk, disk_entries, entries, size, offset, length, comment)
    ends.trailing = Span(span.end, source.size - span.end)


def _read_zip64(source: ByteSource, tail: _Tail, end: int, ends: Ends) -> None:
    """Read locator and ZIP64 end record in front of the end record at ``end``."""
    position = end - ZIP64_LOCATOR.size
    raw = tail.bytes_at(position, ZIP64_LOCATOR.size) if position >= 0 else b""
    if len(raw) < ZIP64_LOCATOR.size:
        return
    signature, disk, target, disks = ZIP64_LOCATOR.unpack(raw)
    beside = position - ZIP64_END_RECORD.size
    if signature != ZIP64_LOCATOR_SIGNATURE:
        good_end = beside >= 0 and tail.bytes_at(beside, 4) == ZIP64_END_SIGNATURE
        # Two damaged signatures: the locator still names the place in front of it, or the fields leave 76 bytes free.
        if not good_end and not (target == beside and disks <= 1) and not _leaves_room(source, ends, beside):
            return
        ends.faults.append(Fault("locator-signature", position, 4, "50 4B 06 07"))
    ends.locator = Zip64Locator(Span(position, ZIP64_LOCATOR.size), disk, target, disks)
    _choose_zip64_end(source, ends, target, position)


def _leaves_room(source: ByteSource, ends: Ends, beside: int) -> bool:
    """Whether the directory of the end record ends 76 bytes in front of it, where ZIP64 records belong."""
    end = ends.end
    if end is None or not end.directory_size or end.directory_offset + end.directory_size != beside:
        return False
    return source.read_at(end.directory_offset, 4) == CENTRAL_HEADER_SIGNATURE


def _choose_zip64_end(source: ByteSource, ends: Ends, target: int, locator: int) -> None:
    """The record that the locator names, else the one in front of the locator.

    Where both places hold one, that in front counts only if all its offsets are too low by the same number: then
    bytes stand in front of the archive, and the other record belongs to an archive inside them.
    """
    beside = _record_in_front(source, locator)
    named = target if source.read_at(target, 4) == ZIP64_END_SIGNATURE and target + ZIP64_END_RECORD.size <= locator else None
    record = _zip64_end(source, beside, locator) if beside is not None else None
    if record is not None and beside != target:
        shifted = record.directory_offset + record.directory_size == target
        if named is not None and not shifted:
            ends.other_zip64_ends.append(record.span.offset)
            record = _zip64_end(source, named, locator)
        elif named is not None:
            ends.other_zip64_ends.append(named)
        elif not shifted:
            ends.faults.append(Fault("locator-target", locator + 8, 8, f"offset {beside}"))
    elif record is None and named is not None:
        record = _zip64_end(source, named, locator)
    ends.zip64_end = record if record is not None else _zip64_end_without_signature(source, ends, target, locator)


def _record_in_front(source: ByteSource, locator: int) -> int | None:
    """Offset of the ZIP64 end record that ends at the locator: 56 bytes in front of it, or more with extensible data."""
    beside = locator - ZIP64_END_RECORD.size
    if beside >= 0 and source.read_at(beside, 4) == ZIP64_END_SIGNATURE:
        return beside
    start = max(0, locator - EDGE)
    data = source.read_at(start, locator - start)
    at = data.rfind(ZIP64_END_SIGNATURE)
    while at >= 0:
        if at + 12 <= len(data) and at + 12 + unpack_from("<Q", data, at + 4)[0] == len(data):
            return start + at
        at = data.rfind(ZIP64_END_SIGNATURE, 0, at + 3)
    return None


def _zip64_end_without_signature(source: ByteSource, ends: Ends, target: int, locator: int) -> Zip64EndRecord | None:
    beside = locator - ZIP64_END_RECORD.size
    record = _zip64_end(source, beside, locator) if beside >= 0 else None
    if record is not None and (record.record_size == _USUAL_RECORD_SIZE or _leaves_room(source, ends, beside)):
        ends.faults.append(Fault("zip64-end-signature", beside, 4, "50 4B 06 06"))
        return record
    if target != beside:
        ends.faults.append(Fault("locator-target", locator + 8, 8, "the offset of a ZIP64 end record"))
    ends.faults.append(Fault("zip64-end-missing", max(0, beside), 0, "a ZIP64 end record"))
    return None


def _zip64_end(source: ByteSource, position: int, locator: int) -> Zip64EndRecord | None:
    """Read the record at ``position``; its extensible data counts where it reaches exactly to the locator."""
    raw = source.read_at(position, ZIP64_END_RECORD.size)
    if len(raw) < ZIP64_END_RECORD.size:
        return None
    record = Zip64EndRecord(Span(position, ZIP64_END_RECORD.size), *ZIP64_END_RECORD.unpack(raw)[1:])
    behind = position + 12 + record.record_size
    if record.span.end < behind == locator:
        record.extensible = Span(record.span.end, behind - record.span.end)
    return record


def _note_others(tail: _Tail, ends: Ends) -> None:
    chosen = ends.end.span.offset if ends.end is not None else None
    ends.other_ends = [position for position in tail.positions(END_SIGNATURE, 4) if position != chosen]


def note_strays(source: ByteSource, ends: Ends, directory_end: int) -> None:
    """Look for end records behind the directory that are not among those that end the archive; fills ``strays``."""
    start = ends.start
    if start is None or start <= directory_end:
        return
    data = source.read_at(directory_end, min(start - directory_end, _SEARCHED))
    found = [directory_end + match.start() for match in _END_SIGNATURE.finditer(data)]
    chosen = {record.span.offset for record in (ends.locator, ends.zip64_end) if record is not None}
    ends.strays = [Span(offset, 4) for offset in found if offset not in chosen and offset not in ends.other_zip64_ends]


def _governing(ends: Ends) -> str:
    """As miniz and CPython do: ZIP64 when the locator is there and good; and whatever the other one cannot tell."""
    if ends.zip64_end is None:
        return "end" if ends.end is not None else ""
    bad = {"locator-signature", "locator-target", "zip64-end-signature"}
    codes = {fault.code for fault in ends.faults}
    end = ends.end
    silent = (
        end is None
        or "end-record-cut" in codes
        or ("end-record-signature" in codes and end.entries == end.directory_size == 0)
        or U16_ESCAPE in (end.entries, end.disk_entries)
        or U32_ESCAPE in (end.directory_size, end.directory_offset)
    )
    return "zip64-end" if silent or not codes & bad else "end"
