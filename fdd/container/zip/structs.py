# SPDX-License-Identifier: Apache-2.0
"""The fields of a ZIP file as they stand in the bytes (.ZIP File Format Specification, "APPNOTE", 6.3.10).

Pure facts: a structure says what was read and where. ``raw`` numbers are kept beside resolved ones, both copies of
every twice-written field are kept, and nothing here says whether a value is good. All offsets are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from fdd.core.span import Span

LOCAL_HEADER_SIGNATURE = b"PK\x03\x04"
CENTRAL_HEADER_SIGNATURE = b"PK\x01\x02"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
END_SIGNATURE = b"PK\x05\x06"
ZIP64_END_SIGNATURE = b"PK\x06\x06"
ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"
DIGITAL_SIGNATURE = b"PK\x05\x05"

LOCAL_HEADER = Struct("<4sHHHHHIIIHH")
"""APPNOTE 4.3.7, 30 bytes."""
CENTRAL_HEADER = Struct("<4sHHHHHHIIIHHHHHII")
"""APPNOTE 4.3.12, 46 bytes."""
END_RECORD = Struct("<4sHHHHIIH")
"""APPNOTE 4.3.16, 22 bytes."""
ZIP64_END_RECORD = Struct("<4sQHHIIQQQQ")
"""APPNOTE 4.3.14, 56 bytes."""
ZIP64_LOCATOR = Struct("<4sIQI")
"""APPNOTE 4.3.15, 20 bytes."""

U16_ESCAPE = 0xFFFF
U32_ESCAPE = 0xFFFFFFFF

FLAG_ENCRYPTED = 1 << 0
FLAG_DESCRIPTOR = 1 << 3
FLAG_PATCHED = 1 << 5
FLAG_STRONG_ENCRYPTION = 1 << 6
FLAG_UTF8 = 1 << 11
FLAG_MASKED = 1 << 13

METHOD_STORED = 0
METHOD_DEFLATED = 8

EXTRA_ZIP64 = 0x0001
EXTRA_PADDING = 0x4246
"""torch's padding field, the letters FB."""
EXTRA_UNICODE_PATH = 0x7075


@dataclass(slots=True)
class Fault:
    """Why a structure could not be read on: ``code`` is a fixed word, ``expected`` says what should have stood there."""

    code: str
    offset: int
    length: int
    expected: str = ""


@dataclass(slots=True)
class ExtraField:
    """One extensible data field (APPNOTE 4.5): header id, span with its 4-byte head, and the data."""

    identifier: int
    span: Span
    data: bytes


@dataclass(slots=True)
class Zip64Extra:
    """A ZIP64 extended information field (APPNOTE 4.5.3) read by the order of the escaped fields.

    ``values`` are the 8-byte numbers in the field, in order, whatever they stand for. ``disk_start`` is the 4-byte rest.
    """

    span: Span
    values: tuple[int, ...]
    disk_start: int | None
    rest: bytes


@dataclass(slots=True)
class LocalHeader:
    """A local file header (APPNOTE 4.3.7)."""

    span: Span
    """The fixed part, name and extra: payload begins at ``span.end``."""
    version_needed: int
    flags: int
    method: int
    time: int
    date: int
    crc32: int
    raw_compressed_size: int
    raw_uncompressed_size: int
    name: bytes
    extra_span: Span
    extra: tuple[ExtraField, ...] = ()
    extra_fault: Fault | None = None
    zip64: Zip64Extra | None = None
    compressed_size: int = 0
    """Resolved through ZIP64, in torch's dialect too (format.md 1.10); 0 where the header leaves it to a descriptor."""
    uncompressed_size: int = 0
    zip64_offset: int | None = None
    """The header offset that torch writes into a local ZIP64 field; None where there is none."""


@dataclass(slots=True)
class CentralEntry:
    """A central directory header (APPNOTE 4.3.12). Sizes and offset are resolved through ZIP64; ``raw_*`` as stored."""

    span: Span
    version_made_by: int
    version_needed: int
    flags: int
    method: int
    time: int
    date: int
    crc32: int
    raw_compressed_size: int
    raw_uncompressed_size: int
    disk_start: int
    internal_attributes: int
    external_attributes: int
    raw_header_offset: int
    name: bytes
    comment: bytes
    extra_span: Span
    extra: tuple[ExtraField, ...] = ()
    extra_fault: Fault | None = None
    zip64: Zip64Extra | None = None
    compressed_size: int = 0
    uncompressed_size: int = 0
    header_offset: int = 0
    """Where the local header should be: absolute, ``base`` of the archive already added."""


@dataclass(slots=True)
class DataDescriptor:
    """What follows a payload when bit 3 is set (APPNOTE 4.3.9), in the width that fits the bytes best.

    ``width`` is 4 or 8, the size of the two size fields; ``has_signature`` tells whether four signature bytes stand in
    front (`PK 07 08`, or damaged ones: then there is a fault ``descriptor-signature``).
    """

    span: Span
    has_signature: bool
    crc32: int
    compressed_size: int
    uncompressed_size: int
    width: int


@dataclass(slots=True)
class EndRecord:
    """End of central directory record (APPNOTE 4.3.16). ``span`` includes as much of the comment as is in the file.

    Of a record that the end of the file cuts (fault ``end-record-cut``; ``span.length`` < 22) missing bytes read as 0.
    """

    span: Span
    disk_number: int
    directory_disk: int
    disk_entries: int
    entries: int
    directory_size: int
    directory_offset: int
    comment_length: int
    comment: bytes


@dataclass(slots=True)
class Zip64EndRecord:
    """ZIP64 end of central directory record (APPNOTE 4.3.14). ``record_size`` counts the bytes behind its first 12."""

    span: Span
    """The 56 fixed bytes."""
    record_size: int
    version_made_by: int
    version_needed: int
    disk_number: int
    directory_disk: int
    disk_entries: int
    entries: int
    directory_size: int
    directory_offset: int
    extensible: Span = Span(0, 0)
    """The extensible data sector: bytes that ``record_size`` counts behind the fixed 56, where the locator ends them."""


@dataclass(slots=True)
class Zip64Locator:
    """ZIP64 end of central directory locator (APPNOTE 4.3.15)."""

    span: Span
    directory_disk: int
    end_record_offset: int
    """As stored, without ``base``."""
    disks: int


@dataclass(slots=True)
class Ends:
    """Everything found at the end of the archive, and what is missing there.

    ``zip64_end`` may have been found although the locator is bad or absent (it is then looked for where it belongs).
    """

    end: EndRecord | None = None
    locator: Zip64Locator | None = None
    zip64_end: Zip64EndRecord | None = None
    faults: list[Fault] = field(default_factory=list)
    """codes: end-record-missing, end-record-signature, end-record-cut, comment-cut, locator-signature,
    locator-target (the locator names another place than that of the record found; also where the record is missing),
    zip64-end-signature, zip64-end-missing (a good locator, and no record that it could mean)"""
    governing: str = ""
    """Which record counts for the directory: ``zip64-end`` (locator and record good, or the other one says nothing),
    ``end``, or empty where neither was found."""
    other_ends: list[int] = field(default_factory=list)
    """Offsets of further end record signatures, in the comment or elsewhere in the tail, ascending."""
    other_zip64_ends: list[int] = field(default_factory=list)
    """Offset of a second ZIP64 end record: the locator names one, and one stands in front of the locator."""
    strays: list[Span] = field(default_factory=list)
    """End record, locator and ZIP64 end record signatures between the directory and the chain of end records."""
    trailing: Span = Span(0, 0)
    """Bytes behind the end record and its comment."""

    @property
    def start(self) -> int | None:
        """Where the uninterrupted chain of end records begins: the directory should end there."""
        position = self.end.span.offset if self.end is not None else None
        if self.locator is not None and position in (None, self.locator.span.end):
            position = self.locator.span.offset
        if self.zip64_end is not None:
            behind = max(self.zip64_end.span.end, self.zip64_end.extensible.end)
            if position in (None, behind):
                position = self.zip64_end.span.offset
        return position


@dataclass(slots=True)
class Directory:
    """The central directory as it was walked."""

    span: Span
    """From the first to behind the last entry that was read. A digital signature behind it and an entry that the end of
    the file cuts are counted in."""
    entries: list[CentralEntry]
    stated_offset: int
    """Where the governing end record says it begins, without ``base``; this and the next two are -1 without end records."""
    stated_size: int
    stated_entries: int
    base: int = 0
    """What has to be added to every stated offset (bytes in front of the archive), 0 normally."""
    faults: list[Fault] = field(default_factory=list)
    """codes: entry-signature (of an entry that was read nevertheless, or of bytes that were passed over), entry-cut,
    entry-lengths (its lengths do not lead to the next entry; it was read up to there), digital-signature, entry-limit,
    entry-behind-end (size and count agree on the end, and another entry follows), directory-offset (nothing at the
    stated place; it was found elsewhere)"""
    alternatives: list[int] = field(default_factory=list)
    """Other places that an end record names and where a central header signature stands, ascending."""


@dataclass(slots=True)
class ZipRecord:
    """One record: its directory entry, its local header, its payload and its descriptor, as far as each was found.

    ``index`` is the place in the central directory; -1 for a record that only its local header tells of.
    """

    index: int
    entry: CentralEntry | None
    local: LocalHeader | None = None
    local_fault: Fault | None = None
    """codes: local-header-missing (nothing like one there), local-header-outside, local-header-cut; and, with ``local``
    read nevertheless, local-header-signature (damaged), local-header-lengths (name or extra length damaged: the name is
    that of the entry, and the payload begins where the descriptor or the next record show)"""
    payload: Span | None = None
    """The stored (perhaps deflated) bytes; None where the start is unknown."""
    payload_complete: bool = True
    """Whether the whole payload lies inside the file. For a record walked from the front: its end is known."""
    descriptor: DataDescriptor | None = None
    descriptor_fault: Fault | None = None
    """codes: descriptor-signature, descriptor-cut, descriptor-missing (bit 3 is set and nothing like one follows),
    descriptor-displaced (found in front of the next structure, not behind as many bytes as the directory says)"""

    @property
    def name(self) -> bytes:
        """The name in the directory, else in the local header."""
        if self.entry is not None:
            return self.entry.name
        return self.local.name if self.local is not None else b""

    @property
    def extent(self) -> Span | None:
        """From the local header to behind the descriptor, or what is known of it."""
        if self.local is None or self.payload is None:
            return self.local.span if self.local is not None else None
        end = max(self.payload.end, self.descriptor.span.end if self.descriptor is not None else 0)
        return Span(self.local.span.offset, end - self.local.span.offset)


@dataclass(slots=True)
class Region:
    """A part of the file and its owner.

    ``what``: local-header, payload, descriptor, directory, zip64-end, zip64-locator, end, comment, prefix, gap, trailing.
    ``record`` is the index into :attr:`ZipFacts.records` where one owns it.
    """

    span: Span
    what: str
    record: int | None = None


@dataclass(slots=True)
class ZipFacts:
    """A ZIP file taken apart. ``records`` are those of the directory, in its order; where the directory is lost, those
    that a walk from the front found (``salvaged`` is then true)."""

    size: int
    ends: Ends
    directory: Directory | None
    records: list[ZipRecord]
    unlisted: list[ZipRecord] = field(default_factory=list)
    """Records with a local header in bytes that no listed record owns, by offset; and, in owned bytes too, those that lost
    or inserted bytes moved away from where the directory places them."""
    salvaged: bool = False
    local_headers_read: bool = False
    regions: list[Region] = field(default_factory=list)
    """A partition of the file, ascending, without overlap: where listed records overlap, the first owns the bytes."""
    overlaps: list[tuple[int, int, Span]] = field(default_factory=list)
    """Pairs of positions in ``records`` (or -1 for directory and end records) whose extents share bytes, and the shared
    span. Each record is paired with the one of those before it that reaches farthest, so their number stays linear."""

    @property
    def entries_lost(self) -> bool:
        """Whether unlisted records may be listed in a part of the directory that could not be read."""
        directory = self.directory
        if directory is None or self.salvaged:
            return True
        return bool(directory.faults) or directory.stated_entries != len(directory.entries)
