# SPDX-License-Identifier: Apache-2.0
"""Rules on the end of the archive: end record, ZIP64 end record, locator, and what lies around the archive."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.container.zip.fields import CENTRAL_FIELDS, END_FIELDS, LOCATOR_FIELDS, ZIP64_END_FIELDS, field_span
from fdd.container.zip.structs import LOCAL_HEADER_SIGNATURE, U16_ESCAPE, U32_ESCAPE
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule


@rule(
    "PT-ZIP-001",
    "first-header-missing",
    axis="well-formed",
    level="error",
    clause="zip.local-header",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The file begins with a local file header.",
    message="the file begins with {found} instead of the signature of a local header (50 4b 03 04)",
    remedy="Get the file again from its source; torch tells a ZIP by these four bytes alone.",
)
def first_header_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.load looks at the first four bytes to choose its reader, ZIP tools look at the end. A file
    that begins with anything else is read by some and refused by others.

    References: APPNOTE 4.3.7; format.md 1.1, 3.1.
    """
    head = document.source.read_at(0, 4)
    if head != LOCAL_HEADER_SIGNATURE:
        yield at(Span(0, len(head)), found=head.hex(" ") or "nothing")


@rule(
    "PT-ZIP-002",
    "end-record-missing",
    axis="well-formed",
    level="error",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The end of central directory record is there, whole, where the archive ends.",
    message="{what}",
    remedy="The file is cut off or overwritten at its end. Get it again from its source; records in front of the cut are intact.",
)
def end_record_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every ZIP reader finds its way from this record. Without it the file opens nowhere, although all
    weights may still be there.

    References: APPNOTE 4.3.16; format.md 1.9, 1.16.
    """
    assert document.zip is not None
    for fault in document.zip.ends.faults:
        if fault.code == "end-record-missing":
            yield at(Span(fault.offset, fault.length), what="the ZIP directory at the end is missing")
        elif fault.code == "end-record-signature":
            yield at(Span(fault.offset, fault.length), what="the signature of the end record is damaged")
        elif fault.code == "end-record-cut":
            yield at(Span(fault.offset, fault.length), what="the file ends inside the end record")


@rule(
    "PT-ZIP-003",
    "bytes-after-archive",
    axis="valid",
    level="error",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="Nothing follows the archive.",
    message="{length} bytes follow the end of the archive",
    remedy="Keep the file as it is and find out where the bytes come from; a copy cut to {end} bytes is the archive alone.",
)
def bytes_after_archive(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch searches its end record in the last 64 KiB only, and what was appended is not covered by any
    checksum.

    References: APPNOTE 4.3.16; format.md 1.9, 1.16.
    """
    assert document.zip is not None
    trailing = document.zip.ends.trailing
    if trailing.length:
        yield at(trailing, length=trailing.length, end=trailing.offset)


@rule(
    "PT-ZIP-004",
    "bytes-before-archive",
    axis="well-formed",
    level="error",
    clause="zip.local-header",
    kinds=ARCHIVES,
    needs=("ends",),
    title="Nothing stands in front of the first local header.",
    message="{length} bytes stand in front of the archive",
    remedy="Get the file again from its source; readers that start at the front do not see the archive behind these bytes.",
)
def bytes_before_archive(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that look at the front (torch) and at the end (ZIP tools) see different files.

    References: format.md 1.16, 3.1.
    """
    assert document.zip is not None
    prefix = next((region.span for region in document.zip.regions if region.what == "prefix" and region.span.length), None)
    directory = document.zip.directory
    if prefix is None and directory is not None and directory.base > 0 and not document.zip.regions:
        prefix = Span(0, directory.base)
    if prefix is not None:
        yield at(prefix, length=prefix.length)


@rule(
    "PT-ZIP-005",
    "zip64-end-missing",
    axis="valid",
    level="warning",
    clause="zip.zip64-end",
    kinds=NATIVE,
    needs=("ends",),
    title="ZIP64 end record and locator are there.",
    message="no ZIP64 end record: the archive was written again by a tool other than torch",
    remedy="Nothing is lost. Prefer the file as torch wrote it, if it can still be had.",
)
def zip64_end_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch's writer always adds these records. Their absence tells that another tool made the archive.

    References: APPNOTE 4.3.14, 4.3.15; format.md 1.9.
    """
    assert document.zip is not None
    ends = document.zip.ends
    damaged = any(fault.code.startswith(("locator", "zip64", "end-record")) for fault in ends.faults)
    if not python_made(document) and ends.end is not None and ends.locator is None and ends.zip64_end is None and not damaged:
        yield at(ends.end.span)


@rule(
    "PT-ZIP-006",
    "zip64-locator-wrong",
    axis="well-formed",
    level="error",
    clause="zip.zip64-end",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The locator points at the ZIP64 end record, and that record ends at the locator.",
    message="{what}",
    remedy="Get the file again from its source: readers disagree on which directory counts.",
)
def zip64_locator_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a reader that trusts the locator and one that falls back to the plain end record may read different
    directories.

    References: APPNOTE 4.3.14.1, 4.3.15; format.md 1.9.
    """
    assert document.zip is not None
    ends = document.zip.ends
    words = {
        "locator-signature": "the signature of the ZIP64 locator is damaged",
        "locator-target": "the ZIP64 locator names another place than that of the ZIP64 end record",
        "zip64-end-signature": "the signature of the ZIP64 end record is damaged",
        "zip64-end-missing": "the ZIP64 locator names a place where no ZIP64 end record is",
    }
    for fault in ends.faults:
        if fault.code in words:
            yield at(Span(fault.offset, fault.length), what=words[fault.code])
    record, locator = ends.zip64_end, ends.locator
    if record is not None and locator is not None and record.span.offset + 12 + record.record_size != locator.span.offset:
        place = field_span(record.span, ZIP64_END_FIELDS, "record_size")
        yield at(place, what=f"the ZIP64 end record states a size of {record.record_size}, which does not end at its locator")
    told = bool(ends.other_zip64_ends) or any(fault.code in ("locator-target", "zip64-end-missing") for fault in ends.faults)
    directory = document.zip.directory
    if record is not None and locator is not None and directory is not None and not told:
        # Where bytes stand in front of the archive, all offsets are too low by their number: this one must be, too.
        stated = locator.end_record_offset + directory.base
        if stated != record.span.offset:
            what = f"the ZIP64 locator names offset {stated}, and the ZIP64 end record is at {record.span.offset}"
            yield at(field_span(locator.span, LOCATOR_FIELDS, "end_record_offset"), what=what)
    for offset in ends.other_zip64_ends:
        yield at(Span(offset, 56), what="a second ZIP64 end record")


@rule(
    "PT-ZIP-007",
    "end-records-differ",
    axis="well-formed",
    level="error",
    clause="zip.zip64-end",
    kinds=ARCHIVES,
    needs=("ends",),
    per="place",
    title="Both end records state the same directory, or the short one refers to the long one.",
    message="the end record says {plain} for {field}, the ZIP64 end record {long}",
    remedy="Get the file again from its source: readers that look at one record or the other see different files.",
)
def end_records_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: which record wins depends on the reader; a second directory can hide behind the difference.

    References: APPNOTE 4.3.16, 4.4.1.4; format.md 1.9.
    """
    assert document.zip is not None
    ends, directory = document.zip.ends, document.zip.directory
    plain, long = ends.end, ends.zip64_end
    if plain is None or long is None:
        return
    true = {}
    if directory is not None:
        true = {
            "disk_entries": len(directory.entries),
            "entries": len(directory.entries),
            "directory_size": directory.span.length,
            "directory_offset": directory.span.offset - directory.base,
        }
    for name, escape in (
        ("disk_entries", U16_ESCAPE),
        ("entries", U16_ESCAPE),
        ("directory_size", U32_ESCAPE),
        ("directory_offset", U32_ESCAPE),
    ):
        short_value, long_value = getattr(plain, name), getattr(long, name)
        if short_value in (long_value, escape):
            continue
        # The record that agrees with the directory as it was walked is taken for the good one.
        wrong_is_long = short_value == true.get(name)
        place = field_span(long.span, ZIP64_END_FIELDS, name) if wrong_is_long else field_span(plain.span, END_FIELDS, name)
        yield at(place, field=name.replace("_", " "), plain=short_value, long=long_value)


@rule(
    "PT-ZIP-009",
    "several-disks",
    axis="valid",
    level="error",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The archive is on one disk.",
    message="{field} is {value}: the archive claims to be split over several disks",
    remedy="Get the file again from its source; torch refuses archives on several disks.",
)
def several_disks(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch and most readers refuse archives on several disks.

    References: APPNOTE 4.4.19 to 4.4.21; format.md 1.9, 1.16.
    """
    assert document.zip is not None
    ends = document.zip.ends
    for record, fields, names in (
        (ends.end, END_FIELDS, ("disk_number", "directory_disk")),
        (ends.zip64_end, ZIP64_END_FIELDS, ("disk_number", "directory_disk")),
        (ends.locator, LOCATOR_FIELDS, ("directory_disk",)),
    ):
        for name in names if record is not None else ():
            value = getattr(record, name)
            if value not in (0, U16_ESCAPE if fields is END_FIELDS and ends.zip64_end is not None else 0):
                assert record is not None
                yield at(field_span(record.span, fields, name), field=name.replace("_", " "), value=value)
    if ends.locator is not None and ends.locator.disks != 1:
        yield at(field_span(ends.locator.span, LOCATOR_FIELDS, "disks"), field="number of disks", value=ends.locator.disks)
    for index, record_facts in document.zip_records():
        entry = record_facts.entry
        if entry is not None and entry.disk_start not in (0, U16_ESCAPE):
            place = field_span(entry.span, CENTRAL_FIELDS, "disk_start")
            yield at(place, record=document.records[index].name, field="disk start", value=entry.disk_start)


@rule(
    "PT-ZIP-010",
    "archive-comment",
    axis="valid",
    level="warning",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The archive has no comment.",
    message="the archive has a comment of {length} bytes",
    remedy="Look at the comment: torch never writes one.",
)
def archive_comment(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes no comment; other content may hide there, outside every checksum.

    References: APPNOTE 4.4.12; format.md 1.9.
    """
    assert document.zip is not None
    end = document.zip.ends.end
    if end is not None and end.comment:
        yield at(Span(end.span.offset + 20, 2 + len(end.comment)), length=end.comment_length)


@rule(
    "PT-ZIP-040",
    "archive-comment-cut",
    axis="well-formed",
    level="error",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="The comment ends with the file.",
    message="the end record states a comment of {length} bytes, the file holds {present}",
    remedy="Get the file again from its source.",
)
def archive_comment_cut(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that check the comment length do not find this end record at all.

    References: APPNOTE 4.4.11.
    """
    assert document.zip is not None
    end = document.zip.ends.end
    if end is not None and any(fault.code == "comment-cut" for fault in document.zip.ends.faults):
        yield at(field_span(end.span, END_FIELDS, "comment_length"), length=end.comment_length, present=len(end.comment))


@rule(
    "PT-ZIP-041",
    "second-end-record",
    axis="well-formed",
    level="error",
    clause="zip.end-record",
    kinds=ARCHIVES,
    needs=("ends",),
    title="Only one end record stands at the end of the file.",
    message="another end record stands at offset {offset}, {where}",
    remedy="Find out how the file was made: readers that search from different sides open different archives.",
)
def second_end_record(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: some readers take the first end record they meet, others the last; a whole second archive can hide in
    a comment or behind the first.

    References: APPNOTE 4.3.16; format.md 1.16.
    """
    assert document.zip is not None
    end = document.zip.ends.end
    for offset in document.zip.ends.other_ends:
        if end is not None and offset > end.span.offset:
            yield at(Span(offset, 4), offset=offset, where="behind the one that ends the archive")
    for span in document.zip.ends.strays:
        yield at(span, offset=span.offset, where="between the directory and the records that end the archive")
