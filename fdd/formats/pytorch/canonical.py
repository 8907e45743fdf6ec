# SPDX-License-Identifier: Apache-2.0
"""Rebuild and compare: are the bytes around the payloads those that torch's writer gives to these records (format.md 1.13)?

The writer itself is in :mod:`fdd.formats.pytorch.canonical_layout` and is handed on from here. A comparison reads only
what lies outside the payloads. It names each field that differs; where whole structures stand at other places than they
should, it reports the first shift only, and from there on looks at what can still be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    DESCRIPTOR_SIGNATURE,
    END_SIGNATURE,
    EXTRA_PADDING,
    LOCAL_HEADER,
    ZIP64_END_SIGNATURE,
    ZipFacts,
)
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.formats.pytorch.canonical_differences import (
    DESCRIPTOR,
    DESCRIPTOR64_FIELDS,
    DESCRIPTOR_FIELDS,
    END,
    END_FIELDS,
    ENTRY,
    LAYOUT,
    LOCAL,
    LOCAL_FIELDS,
    LOCATOR,
    LOCATOR_FIELDS,
    ZIP64_END,
    ZIP64_END_FIELDS,
    CanonicalComparison,
    Difference,
    EnoughError,
    Fields,
    Reporter,
    Structure,
    central_fields,
    local_fields,
)
from fdd.formats.pytorch.canonical_evidence import (
    Placed,
    Resolved,
    Witness,
    common_time,
    find_alignment,
    place,
    values_of_entry,
)
from fdd.formats.pytorch.canonical_layout import (
    DEFAULT_ALIGNMENT,
    DESCRIPTOR64,
    EXTRA_HEAD,
    MAX_ALIGNMENT,
    CanonicalRecord,
    Piece,
    assemble,
    central_header,
    descriptor,
    end_record,
    layout,
    local_header,
    local_header_length,
    local_zip64,
    write_archive,
    zip64_end,
    zip64_locator,
)

__all__ = [
    "DEFAULT_ALIGNMENT",
    "MAX_ALIGNMENT",
    "CanonicalComparison",
    "CanonicalRecord",
    "Difference",
    "Piece",
    "assemble",
    "compare",
    "layout",
    "write_archive",
]

DIFFERENCE_LIMIT = 1000
"""A comparison ends when it has found so many differences: the file is then of another writer."""
_WINDOW = 1 << 18
"""Bytes of the directory that are read at once."""


def compare(source: ByteSource, facts: ZipFacts, limit: int = DIFFERENCE_LIMIT) -> CanonicalComparison:
    """Hold every byte outside the payloads against the canonical layout of the same records.

    ``facts`` must have the local headers read. Linear in the number of records. Raises SourceError.
    """
    alignment, liar = find_alignment(source, facts)
    result = CanonicalComparison(alignment=alignment)
    placed = place(source, facts, alignment)
    if not placed:
        result.undecided = "no record was found"
        return result
    if facts.directory is not None and any(fault.code == "entry-limit" for fault in facts.directory.faults):
        result.undecided = "the directory was not read to its end"
        return result
    run = _Comparison(source, facts, placed, result, limit)
    if liar is not None:
        run.report_alignment(liar)
    try:
        run.records()
        if facts.directory is None or facts.salvaged:
            raw = source.read_at(run.position, 4)
            if raw not in (CENTRAL_HEADER_SIGNATURE, ZIP64_END_SIGNATURE):
                result.undecided = "the directory is lost"
                return result
        run.directory()
        run.ends()
    except EnoughError:
        result.complete = False
    result.canonical = not result.differences
    return result


@dataclass(slots=True)
class _Spot:
    """A record that was compared: its values, and where its local header is and should be."""

    item: Placed
    values: CanonicalRecord
    offsets: tuple[int, int]
    """Canonical and actual."""
    disputed: frozenset[str]


class _Comparison:
    """One run through a file. ``position`` is where the next structure is expected, ``canonical`` where it would be in the
    rebuilt file; they part at the first shift."""

    def __init__(
        self, source: ByteSource, facts: ZipFacts, placed: list[Placed], result: CanonicalComparison, limit: int
    ) -> None:
        self._source = source
        self._facts = facts
        self._placed = placed
        self._result = result
        self._alignment = result.alignment
        self._time, self._date = common_time(placed)
        self._report = Reporter(result, limit, source.size)
        self._spots: list[_Spot] = []
        self._window = (0, b"")
        self.position = 0
        self.canonical = 0
        self._directory_start = (0, 0)

    def report_alignment(self, index: int) -> None:
        """Report that the text of `.storage_alignment` is not the alignment of the file."""
        payload = self._facts.records[index].payload
        item = Placed(self._facts.records[index], index, 0)
        if payload is not None:
            found = self._source.read_at(payload.offset, min(payload.length, 8))
            self._report.add(payload, "payload", "alignment", item, expected=b"%d" % self._alignment, found=found)

    # Records

    def records(self) -> None:
        """Compare all local headers and descriptors, in physical order."""
        for number, item in enumerate(self._placed):
            self._result.local_headers += 1
            if self._as_expected(item):
                continue
            self._slowly(item, self._following(number))

    def _following(self, number: int) -> int | None:
        if number + 1 < len(self._placed):
            return self._placed[number + 1].offset
        directory = self._facts.directory
        return directory.span.offset if directory is not None and directory.entries else None

    def _as_expected(self, item: Placed) -> bool:
        """Compare the bytes around one payload with what the directory entry gives: true for every record of a good file."""
        entry = item.record.entry
        if entry is None or item.offset != self.position:
            return False
        values = values_of_entry(entry, self._time, self._date)
        if values.stored_size != values.uncompressed_size and not (values.method and values.uncompressed_size):
            return False
        behind = descriptor(values, self.canonical)
        # After a shift the padding may suit the old place or the new one.
        for offset in {self.canonical, item.offset}:
            header = local_header(values, offset, self._alignment)
            end = item.offset + len(header) + values.stored_size
            if self._source.read_at(item.offset, len(header)) == header and self._is_at(end, behind):
                self._result.padded += 1
                header_length = local_header_length(values, self.canonical, self._alignment)
                length = header_length + values.stored_size + len(behind)
                self._advance(item, values, end + len(behind), length, frozenset())
                return True
        return False

    def _is_at(self, offset: int, expected: bytes) -> bool:
        return not expected or self._source.read_at(offset, len(expected)) == expected

    def _advance(self, item: Placed, values: CanonicalRecord, end: int, length: int, disputed: frozenset[str]) -> None:
        self._spots.append(_Spot(item, values, (self.canonical, item.offset), disputed))
        self.position = end
        self.canonical += length

    def _slowly(self, item: Placed, following: int | None) -> None:
        self._gap(item)
        resolved = Witness(self._source, item, self.canonical, self._alignment, following).resolve(self._time, self._date)
        values = resolved.values
        header = self._header(item, resolved)
        end = resolved.start + values.stored_size
        behind = descriptor(values, self.canonical)
        end += self._descriptor(item, resolved, behind, end, following)
        self._advance(item, values, end, len(header) + values.stored_size + len(behind), resolved.disputed)

    def _gap(self, item: Placed) -> None:
        distance = item.offset - self.position
        if distance > 0:
            what = "bytes between records" if self.position else "bytes in front of the first record"
            self._report.shift(Span(self.position, distance), LAYOUT, what, item)
        elif distance < 0:
            self._report.shift(Span(item.offset, -distance), LAYOUT, "overlaps the record before it", item)

    def _header(self, item: Placed, resolved: Resolved) -> bytes:
        """Compare a local header; return what it should be in the rebuilt file."""
        values, start = resolved.values, resolved.start
        canonical = local_header(values, self.canonical, self._alignment)
        length = start - item.offset
        expected = canonical
        if self._report.moved:
            # After a shift the padding may suit the old place or the new one, and header offsets may be either.
            own = local_header(values, item.offset, self._alignment)
            if self._source.read_at(item.offset, len(own)) == own and len(own) == length:
                expected = own
        if len(expected) != length:
            self._other_length(item, values, expected, length)
            padding = length - (len(expected) - _padding(values, self.canonical, self._alignment))
            if padding < 0:
                return canonical
            expected = local_header(values, self.canonical, self._alignment, padding)
        found = self._source.read_at(item.offset, length)
        zip64 = len(local_zip64(values, self.canonical))
        self._report.compare(Structure(LOCAL, item.offset, local_fields(values, zip64)), expected, found, item)
        extra = LOCAL_HEADER.size + len(values.name) + zip64
        has_field = found[extra : extra + 2] == EXTRA_PADDING.to_bytes(2, "little")
        self._result.padded += has_field
        return canonical

    def _other_length(self, item: Placed, values: CanonicalRecord, expected: bytes, length: int) -> None:
        """A header of another length than it should have: its padding is different, or it is not torch's at all."""
        behind_name = LOCAL_HEADER.size + len(values.name)
        zip64 = len(local_zip64(values, self.canonical))
        start = behind_name + zip64 + 2
        found = self._source.read_at(item.offset, max(length, behind_name))
        if length >= behind_name + zip64 + EXTRA_HEAD.size:
            self._report.shift(Span(item.offset + start, 2), LOCAL, "padding length", item)
            return
        fields = [*LOCAL_FIELDS[:-1], (LOCAL_HEADER.size, len(values.name), "name")]
        self._report.compare(Structure(LOCAL, item.offset, fields), expected, found, item)
        self._report.shift(Span(item.offset + behind_name, max(length - behind_name, 0)), LOCAL, "extra field", item)

    def _descriptor(self, item: Placed, resolved: Resolved, expected: bytes, offset: int, following: int | None) -> int:
        """Compare a data descriptor; return how many bytes it takes in the file."""
        if not expected:
            return 0
        found = self._source.read_at(offset, DESCRIPTOR64.size)
        if found[:4] != DESCRIPTOR_SIGNATURE and offset == following:
            self._report.add(Span(offset, 0), DESCRIPTOR, "missing", item, expected=expected)
            self._report.moved = True
            return 0
        fields = DESCRIPTOR64_FIELDS if len(expected) == DESCRIPTOR64.size else DESCRIPTOR_FIELDS
        self._report.compare(Structure(DESCRIPTOR, offset, fields), expected, found[: len(expected)], item)
        return len(expected)

    # Directory

    def directory(self) -> None:
        """Compare all directory entries."""
        spots = self._in_directory_order()
        start = self._spots_start(spots)
        if start != self.position:
            span = Span(min(start, self.position), abs(start - self.position))
            self._report.shift(span, LAYOUT, "bytes in front of the directory", None)
        self._directory_start = (self.canonical, start)
        self.position = start
        for spot in spots:
            expected = central_header(spot.values, spot.offsets[0])
            if not spot.disputed and not self._report.moved and self._read(self.position, len(expected)) == expected:
                self.position += len(expected)
            else:
                self._entry(spot, expected)
            self.canonical += len(expected)

    def _in_directory_order(self) -> list[_Spot]:
        """Records in the order of their entries; report an order that is not that of the records themselves."""
        listed = [(spot.item.record.entry.span, spot) for spot in self._spots if spot.item.record.entry is not None]
        for (before, _), (span, spot) in pairwise(listed):
            if span.offset < before.offset:
                self._report.shift(span, "directory", "order", spot.item)
                rest = [spot for spot in self._spots if spot.item.record.entry is None]
                return [spot for _, spot in sorted(listed, key=lambda row: row[0])] + rest
        return self._spots

    def _spots_start(self, spots: list[_Spot]) -> int:
        """Where the directory begins: behind the last record if an entry is there, else where its first one was read."""
        expected = central_header(spots[0].values, spots[0].offsets[0])
        entry = spots[0].item.record.entry
        if entry is None or _resembles(self._read(self.position, len(expected)), spots[0].values.name):
            return self.position
        return entry.span.offset

    def _entry(self, spot: _Spot, expected: bytes) -> None:
        entry = spot.item.record.entry
        variants = [expected]
        # Where bytes are missing in front, the actual place of a header may lie before the file.
        if self._report.moved and spot.offsets[1] >= 0:
            variants.append(central_header(spot.values, spot.offsets[1]))
        expected = next((v for v in variants if self._read(self.position, len(v)) == v), expected)
        found = self._read(self.position, len(expected))
        if not _resembles(found, spot.values.name):
            if entry is None or entry.span.offset == self.position:
                self._report.add(Span(self.position, 0), ENTRY, "missing", spot.item, expected=expected)
                self._report.moved = True
                return
            span = Span(min(self.position, entry.span.offset), abs(entry.span.offset - self.position))
            self._report.shift(span, LAYOUT, "bytes between directory entries", spot.item)
            self.position = entry.span.offset
            found = self._read(self.position, len(expected))
        length = len(expected)
        if not _entry_or_end(self._read(self.position + length, 4)) and entry is not None and entry.span.length != length:
            behind = self.position + entry.span.length
            length = entry.span.length if _entry_or_end(self._read(behind, 4)) else length
        row = Structure(ENTRY, self.position, central_fields(spot.values, expected), spot.disputed)
        self._report.compare(row, expected, found, spot.item)
        if length != len(expected):
            start = CENTRAL_HEADER.size + len(spot.values.name)
            self._report.shift(Span(self.position + start, max(length - start, 0)), ENTRY, "extra field or comment", spot.item)
        self.position += length

    def _read(self, offset: int, length: int) -> bytes:
        """Read from the directory through a window: its entries lie side by side."""
        start, data = self._window
        if offset < start or offset + length > start + len(data):
            start, data = offset, self._source.read_at(offset, max(_WINDOW, length))
            self._window = (start, data)
        return data[offset - start : offset - start + length]

    # End records

    def ends(self) -> None:
        """Compare the three end records, and see that the file ends there."""
        ends, number = self._facts.ends, len(self._spots)
        canonical, actual = self._directory_start
        spans = [Span(canonical, self.canonical - canonical)]
        if self._report.moved:
            # Entries may have been found in front of where the directory should begin.
            length = max(self.position - actual, 0)
            spans += [Span(actual, length), Span(canonical, length)]
        offsets = [self.canonical, self.position] if self._report.moved else [self.canonical]
        found_zip64 = ends.zip64_end.span.offset if ends.zip64_end is not None else None
        found_locator = ends.locator.span.offset if ends.locator is not None else None
        found_end = ends.end.span.offset if ends.end is not None else None
        self._end([zip64_end(number, s) for s in spans], ZIP64_END_FIELDS, ZIP64_END, found_zip64)
        self._end([zip64_locator(offset) for offset in offsets], LOCATOR_FIELDS, LOCATOR, found_locator)
        self._end([end_record(number, s) for s in spans], END_FIELDS, END, found_end)
        rest = self._source.size - self.position
        if rest > 0:
            self._report.add(Span(self.position, rest), LAYOUT, "bytes behind the end record", None)
        elif rest < 0:
            self._report.add(Span(self._source.size, 0), LAYOUT, "file ends early", None)

    def _end(self, variants: list[bytes], fields: Fields, structure: str, found_at: int | None) -> None:
        """Compare one end record, where it should be or else where it was found, with the nearest of its variants."""
        length = len(variants[0])
        place = self.position
        if max(_likeness(self._read(place, length), variant) for variant in variants) < length * 3 // 4:
            if found_at is None or found_at == place:
                self._report.add(Span(min(place, self._source.size), 0), structure, "missing", None, expected=variants[0])
                self._report.moved = True
                return
            span = Span(min(place, found_at), abs(found_at - place))
            self._report.shift(span, LAYOUT, f"bytes in front of the {structure}", None)
            place = found_at
        found = self._read(place, length)
        expected = max(variants, key=lambda variant: _likeness(found, variant))
        self._report.compare(Structure(structure, place, fields), expected, found, None)
        self.position = place + length
        self.canonical += length


def _padding(values: CanonicalRecord, offset: int, alignment: int) -> int:
    """Bytes of padding in the canonical header."""
    return len(local_header(values, offset, alignment)) - len(local_header(values, offset, alignment, 0))


def _entry_or_end(signature: bytes) -> bool:
    return signature in (CENTRAL_HEADER_SIGNATURE, ZIP64_END_SIGNATURE, END_SIGNATURE)


def _resembles(found: bytes, name: bytes) -> bool:
    """Whether these bytes are this directory entry, be it with some fields changed."""
    return found[:4] == CENTRAL_HEADER_SIGNATURE or found[CENTRAL_HEADER.size :][: len(name)] == name


def _likeness(found: bytes, expected: bytes) -> int:
    return sum(one == other for one, other in zip(found, expected, strict=False))
