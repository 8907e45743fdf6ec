# SPDX-License-Identifier: Apache-2.0
"""Rules on the central directory: that it is whole, in order, and holds nothing but what torch writes."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from itertools import pairwise

from fdd.container.zip.fields import CENTRAL_FIELDS, END_FIELDS, ZIP64_END_FIELDS, field_span
from fdd.container.zip.structs import CENTRAL_HEADER, CentralEntry, EndRecord, Zip64EndRecord, ZipFacts
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule

UNIX_MODE_SHIFT = 16
"""The upper half of the external attributes is a Unix mode where a Unix-like host made the entry (APPNOTE 4.4.15)."""
HOSTS = {0: "DOS or Windows", 3: "Unix", 7: "Macintosh", 10: "NTFS", 11: "MVS", 14: "VFAT", 19: "macOS"}
"""APPNOTE 4.4.2."""
UNIX_HOSTS = (3, 19)


def _governing(facts: ZipFacts) -> EndRecord | Zip64EndRecord | None:
    return facts.ends.zip64_end if facts.ends.governing == "zip64-end" else facts.ends.end


def _end_field(record: EndRecord | Zip64EndRecord, name: str) -> Span:
    return field_span(record.span, ZIP64_END_FIELDS if isinstance(record, Zip64EndRecord) else END_FIELDS, name)


@rule(
    "PT-ZIP-008",
    "directory-faulty",
    axis="well-formed",
    level="error",
    clause="zip.directory",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="The directory is as long as stated, holds as many entries as stated, and every entry is whole.",
    message="{what}",
    remedy="Get the file again from its source: readers see different records, or none.",
)
def directory_faulty(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers count entries or bytes; where the two disagree they stop at different records.

    References: APPNOTE 4.3.12, 4.4.22 to 4.4.24; format.md 1.8, 1.9.
    """
    facts = document.zip
    assert facts is not None
    directory, record = facts.directory, _governing(facts)
    if directory is None:
        if facts.ends.end is not None or facts.ends.zip64_end is not None:
            found = [end for end in (facts.ends.zip64_end, facts.ends.end) if end is not None]
            yield at(_end_field(found[0], "directory_offset"), what="no directory was found anywhere in the file")
        return
    broken = False
    for fault in directory.faults:
        place, what = Span(fault.offset, fault.length), ""
        if fault.code == "entry-signature":
            whole = any(entry.span.offset == fault.offset for entry in directory.entries)
            what = "the signature of a directory entry is damaged" if whole else f"{fault.length} bytes stand between entries"
        elif fault.code == "entry-cut":
            what = "the file ends inside a directory entry"
        elif fault.code == "entry-lengths":
            # Three 2-byte lengths stand side by side.
            place = Span(field_span(place, CENTRAL_FIELDS, "name_length").offset, 6)
            what = f"a directory entry states lengths that do not lead to the next one; it takes {fault.expected}"
        elif fault.code == "entry-behind-end":
            what = "another entry stands behind the stated end of the directory"
        elif fault.code == "directory-offset" and record is not None:
            place = _end_field(record, "directory_offset")
            what = f"the directory is at offset {directory.span.offset}, stated is {directory.stated_offset + directory.base}"
        broken = broken or bool(what)
        if what:
            yield at(place, what=what)
    if not broken and record is not None and not any(fault.code == "entry-limit" for fault in directory.faults):
        yield from _counts(facts, record)


def _counts(facts: ZipFacts, record: EndRecord | Zip64EndRecord) -> Iterator[Violation]:
    directory = facts.directory
    assert directory is not None
    for name, stated, found in (
        ("entries", directory.stated_entries, len(directory.entries)),
        ("disk_entries", record.disk_entries, len(directory.entries)),
        ("directory_size", directory.stated_size, directory.span.length),
    ):
        other = facts.ends.end if isinstance(record, Zip64EndRecord) else facts.ends.zip64_end
        # Where the other end record has it right, the two differ, and that has a rule of its own.
        if stated != found and (other is None or getattr(other, name) != found):
            unit = "bytes" if name == "directory_size" else "entries"
            what = f"the directory holds {found} {unit}, stated are {stated}"
            yield at(_end_field(record, name), what=what)


@rule(
    "PT-ZIP-036",
    "directory-order",
    axis="valid",
    level="warning",
    clause="zip.directory",
    kinds=NATIVE,
    needs=("directory",),
    title="The directory lists the records in the order in which they stand in the file.",
    message="the record is listed behind one that stands further back in the file",
    remedy="Nothing is lost where all other rules pass; another tool wrote or changed the directory.",
)
def directory_order(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes the directory in the order of the records. Another order tells of another hand.

    References: format.md 1.4.
    """
    # An offset that leads to no local header is a fault of its own; equal offsets are an overlap.
    found = ((index, row.entry) for index, row in document.zip_records() if row.local is not None or row.local_fault is None)
    rows = [(index, entry) for index, entry in found if entry is not None and entry.header_offset < document.size]
    for (_, before), (index, entry) in pairwise(rows):
        if entry.header_offset < before.header_offset:
            place = field_span(entry.span, CENTRAL_FIELDS, "header_offset")
            yield at(place, record=document.records[index].name)


@rule(
    "PT-ZIP-049",
    "directory-other-structure",
    axis="valid",
    level="error",
    clause="zip.directory",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="The directory holds entries only, and the ZIP64 end record its fields only.",
    message="{what} of {length} bytes stands {where}",
    remedy="Look at the bytes: torch never writes them, and no checksum covers them.",
)
def directory_other_structure(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the format has no use for a signature or further data there; readers pass over them unseen.

    References: APPNOTE 4.3.13, 4.3.14.2.
    """
    assert document.zip is not None
    directory, zip64_end = document.zip.directory, document.zip.ends.zip64_end
    for fault in directory.faults if directory is not None else ():
        if fault.code == "digital-signature":
            place = Span(fault.offset, fault.length)
            yield at(place, what="a digital signature", where="behind the directory entries", length=fault.length)
    if zip64_end is not None and zip64_end.extensible.length:
        place = zip64_end.extensible
        yield at(place, what="an extensible data sector", where="behind the ZIP64 end record", length=place.length)


@rule(
    "PT-ZIP-050",
    "entry-comment",
    axis="valid",
    level="warning",
    clause="zip.directory",
    kinds=ARCHIVES,
    needs=("directory",),
    title="Entries have no comments.",
    message="the directory entry has a comment of {length} bytes",
    remedy="Look at the comment: torch never writes one.",
)
def entry_comment(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes no comments; other content may hide there, outside every checksum.

    References: APPNOTE 4.4.18; format.md 1.8.
    """
    for index, record in document.zip_records():
        entry = record.entry
        if entry is not None and entry.comment:
            place = Span(entry.span.end - len(entry.comment), len(entry.comment))
            yield at(place, record=document.records[index].name, length=len(entry.comment))


@rule(
    "PT-ZIP-051",
    "special-file",
    axis="valid",
    level="error",
    clause="zip.directory",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Records are plain files.",
    message="the external attributes make the record {what}",
    remedy="Do not unpack the file with tools that follow links; ask the source how it was made.",
)
def special_file(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: an unpacking tool may follow the link and write, or read, somewhere else.

    References: APPNOTE 4.4.15; POSIX sys/stat.h.
    """
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFBLK: "a block device",
        stat.S_IFCHR: "a character device",
    }
    for index, record in document.zip_records():
        entry = record.entry
        mode = stat.S_IFMT(entry.external_attributes >> UNIX_MODE_SHIFT) if entry is not None else 0
        if entry is not None and mode in kinds:
            place = field_span(entry.span, CENTRAL_FIELDS, "external_attributes")
            yield at(place, record=document.records[index].name, what=kinds[mode])


@rule(
    "PT-ZIP-034",
    "traces-of-another-tool",
    axis="advice",
    level="info",
    clause="zip.canonical",
    kinds=NATIVE,
    needs=("canonical",),
    title="Attributes, dates and maker are those of torch's writer.",
    message="the entry was made on {host}, with attributes {attributes} and the date {date}: the archive was packed again",
    remedy="Nothing is lost where all other rules pass. Prefer the file as torch wrote it, if it can still be had.",
)
def traces_of_another_tool(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes zeros there. Other values tell by what kind of tool, and when, the file was packed again.

    References: APPNOTE 4.4.2, 4.4.6, 4.4.15; format.md 1.8.
    """
    if document.canonical is None or document.canonical.mostly_padded:
        return
    for index, record in document.zip_records():
        entry = record.entry
        traces = entry and (entry.version_made_by or entry.internal_attributes or entry.external_attributes)
        if entry is None or not (traces or entry.time or entry.date):
            continue
        host = HOSTS.get(entry.version_made_by >> 8, f"host {entry.version_made_by >> 8}")
        attributes = f"{entry.external_attributes:#010x}"
        place = Span(entry.span.offset, CENTRAL_HEADER.size)
        yield at(place, record=document.records[index].name, host=host, attributes=attributes, date=_date(entry))


def _date(entry: CentralEntry) -> str:
    """An MS-DOS date and time (APPNOTE 4.4.6) as text."""
    date, time = entry.date, entry.time
    day = f"{1980 + (date >> 9):04d}-{date >> 5 & 15:02d}-{date & 31:02d}"
    return f"{day} {time >> 11:02d}:{time >> 5 & 63:02d}:{2 * (time & 31):02d}"
