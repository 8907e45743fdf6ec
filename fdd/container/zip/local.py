# SPDX-License-Identifier: Apache-2.0
"""Local file headers (APPNOTE 4.3.7) of the records in the directory, their payloads and their data descriptors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container

from fdd.container.zip.descriptor import LONGEST_DESCRIPTOR, Expectation, find_displaced, read_descriptor
from fdd.container.zip.extra import parse_extra, resolve_local, zip64_of
from fdd.container.zip.structs import (
    DESCRIPTOR_SIGNATURE,
    FLAG_DESCRIPTOR,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    U16_ESCAPE,
    CentralEntry,
    Fault,
    LocalHeader,
    ZipFacts,
    ZipRecord,
)
from fdd.container.zip.window import Window
from fdd.core.source import ByteSource
from fdd.core.span import Span

_DENSE = 4
_AHEAD_DENSE = 256 << 10
"""Where so many records lie within so many bytes they are read together, payloads and all."""
_AHEAD_SPARSE = 1 << 10
"""Between larger payloads: a descriptor and the local header behind it."""
_FIXED = LOCAL_HEADER.size


def read_local(window: Window, position: int, lengths: tuple[int, int], ahead: int = 0) -> LocalHeader:
    """Read the header at ``position``, whatever its signature, with these lengths of name and extra area."""
    raw = window.read(position, _FIXED + sum(lengths), ahead)
    _, needed, flags, method, time, date, crc32, compressed, uncompressed, _, _ = LOCAL_HEADER.unpack_from(raw)
    name_end = _FIXED + lengths[0]
    extra_at = position + name_end
    header = LocalHeader(
        Span(position, len(raw)), needed, flags, method, time, date, crc32, compressed, uncompressed,
        raw[_FIXED:name_end], Span(extra_at, max(0, len(raw) - name_end)), (), None, None, compressed, uncompressed,
    )  # fmt: skip
    if lengths[1]:
        header.extra, header.extra_fault = parse_extra(raw[name_end:], extra_at)
        header.zip64 = zip64_of(header.extra)
        if header.zip64 is not None:
            resolved = resolve_local(uncompressed, compressed, header.zip64)
            header.uncompressed_size, header.compressed_size, header.zip64_offset, fault = resolved
            header.extra_fault = header.extra_fault or fault
    return header


def stated_lengths(raw: bytes) -> tuple[int, int]:
    """Name and extra length in the 30 fixed bytes of a header."""
    lengths: tuple[int, int] = LOCAL_HEADER.unpack_from(raw)[9:11]
    return lengths


def read_listed(source: ByteSource, facts: ZipFacts, wanted: Container[int] | None = None) -> None:
    """Complete the records of the directory: local header, payload, descriptor, or why they cannot be read.

    ``wanted`` are indexes of records, where not all are to be read.
    """
    listed = [(record.entry.header_offset, record.entry, record) for record in facts.records if record.entry is not None]
    listed.sort(key=lambda item: item[0])
    reader = _Reader(source, _boundaries(facts, [item[0] for item in listed]))
    if wanted is not None:
        listed = [item for item in listed if item[2].index in wanted]
    source.will_read(Span(max(0, offset - LONGEST_DESCRIPTOR), _AHEAD_SPARSE) for offset, _, _ in listed)
    for _, entry, record in listed:
        reader.complete(record, entry)


def _boundaries(facts: ZipFacts, offsets: list[int]) -> list[int]:
    """Where structures begin, ascending: what a payload and its descriptor have to keep clear of."""
    found = {offset for offset in offsets if 0 <= offset < facts.size}
    if facts.directory is not None:
        found.add(facts.directory.span.offset)
    if facts.ends.start is not None:
        found.add(facts.ends.start)
    return [*sorted(found), facts.size]


class _Reader:
    """Completes records that come in the order of their offsets."""

    def __init__(self, source: ByteSource, boundaries: list[int]) -> None:
        self.window = Window(source)
        self.size = source.size
        self.boundaries = boundaries
        self.at = 0
        self.ahead = _AHEAD_SPARSE

    def behind(self, offset: int) -> int:
        """The first boundary at or behind ``offset``."""
        boundaries, at = self.boundaries, self.at
        if at + 1 < len(boundaries) and boundaries[at] < offset <= boundaries[at + 1]:
            return boundaries[at + 1]
        return boundaries[min(bisect_left(boundaries, offset), len(boundaries) - 1)]

    def _move_to(self, offset: int) -> None:
        """Note which boundary the record begins at, and how much to read at once there."""
        boundaries = self.boundaries
        while self.at + 1 < len(boundaries) and boundaries[self.at + 1] <= offset:
            self.at += 1
        near = boundaries[min(self.at + _DENSE, len(boundaries) - 1)]
        self.ahead = _AHEAD_DENSE if near - offset < _AHEAD_DENSE else _AHEAD_SPARSE

    def complete(self, record: ZipRecord, entry: CentralEntry) -> None:
        self._move_to(entry.header_offset)
        record.local, record.local_fault = self._header(entry)
        if record.local is None:
            return
        agrees = self._payload(record, record.local, entry)
        if not agrees and record.local_fault is None:
            position, stated = record.local.span.offset, record.local.span.length - _FIXED
            repaired = self._repaired_lengths(entry, position, stated)
            if repaired is not None and record.local.name[: repaired[0]] == entry.name:
                record.local, record.local_fault = self._repaired(position, repaired)
                self._payload(record, record.local, entry)

    def _payload(self, record: ZipRecord, local: LocalHeader, entry: CentralEntry) -> bool:
        """Fill payload and descriptor; tell whether they end where the directory and the next structure let expect."""
        payload = Span(local.span.end, entry.compressed_size)
        end = payload.end
        record.payload = payload
        record.payload_complete = end <= self.size
        expected = Expectation(
            bool((entry.flags | local.flags) & FLAG_DESCRIPTOR),
            local.zip64 is not None,
            self.behind(end) - end,
            entry.crc32,
            entry.compressed_size,
            entry.uncompressed_size,
        )
        found, fault = read_descriptor(self.window, end, expected, self.ahead)
        if not expected.required:
            agrees = found is not None or expected.room == 0
        else:
            agrees = found is not None and found.compressed_size == entry.compressed_size
            if found is not None and not found.has_signature and end - 4 >= payload.offset:
                # Where a signature ends the payload, it is the descriptor's, and the payload begins 4 bytes too late.
                agrees = agrees and self.window.read(end - 4, 4) != DESCRIPTOR_SIGNATURE
        if expected.required and not agrees:
            displaced = find_displaced(self.window, payload.offset, self.behind(payload.offset + 1))
            if displaced is not None:
                found = displaced
                if displaced.span.offset != end:
                    fault = Fault("descriptor-displaced", displaced.span.offset, displaced.span.length, f"at {end}")
        record.descriptor, record.descriptor_fault = found, fault
        return agrees

    def _is_extra(self, position: int, length: int) -> bool:
        return parse_extra(self.window.read(position, length), position)[1] is None

    def _repaired(self, position: int, lengths: tuple[int, int]) -> tuple[LocalHeader, Fault]:
        wrong = Fault("local-header-lengths", position + 26, 4, f"{lengths[0]} and {lengths[1]} bytes")
        return read_local(self.window, position, lengths), wrong

    def _header(self, entry: CentralEntry) -> tuple[LocalHeader | None, Fault | None]:
        position = entry.header_offset
        if not 0 <= position < self.size:
            return None, Fault("local-header-outside", entry.span.offset + 42, 4, f"an offset below {self.size}")
        ahead = self.ahead
        raw = self.window.read(position, _FIXED, ahead)
        signed = raw[:4] == LOCAL_HEADER_SIGNATURE
        if len(raw) < _FIXED:
            code = "local-header-cut" if signed else "local-header-missing"
            return None, Fault(code, position, len(raw), "50 4B 03 04")
        lengths = stated_lengths(raw)
        named = self.window.read(position + _FIXED, len(entry.name), ahead) == entry.name
        if not signed and not (named and entry.name and lengths[0] == len(entry.name)):
            return None, Fault("local-header-missing", position, 4, "50 4B 03 04")
        fault = None if signed else Fault("local-header-signature", position, 4, "50 4B 03 04")
        if position + _FIXED + sum(lengths) > self.size:
            header = None
        else:
            header = read_local(self.window, position, lengths, ahead)
            if (header.name == entry.name and header.extra_fault is None) or not named:
                return header, fault
        repaired = self._repaired_lengths(entry, position, sum(lengths))
        if repaired is not None:
            return self._repaired(position, repaired)
        if header is None:
            return None, Fault("local-header-cut", position, self.size - position, f"{_FIXED + sum(lengths)} bytes")
        return header, fault

    def _repaired_lengths(self, entry: CentralEntry, position: int, stated: int) -> tuple[int, int] | None:
        """The lengths that name and extra area must have had, where what follows proves the stated ones wrong.

        The name is known from the directory. The payload is followed by a descriptor that counts it, or by the next
        structure; None where the stated lengths lead there, or nothing does.
        """
        behind = self.behind(position + 1)
        payload = position + _FIXED + stated
        end = payload + entry.compressed_size
        counted = find_displaced(self.window, payload, behind)
        described = bool(entry.flags & FLAG_DESCRIPTOR)
        if (counted is not None and counted.span.offset == end) or (end == behind and not described):
            return None
        for length in (16, 24) if described else (0,):
            start = behind - length - entry.compressed_size
            if start == payload:
                return None
            extra = start - position - _FIXED - len(entry.name)
            if not 0 <= extra <= U16_ESCAPE:
                continue
            if find_displaced(self.window, start, behind) is not None if described else self._is_extra(start - extra, extra):
                return len(entry.name), extra
        return None
