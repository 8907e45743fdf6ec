# SPDX-License-Identifier: Apache-2.0
"""Rules on where things stand: overlaps, gaps, alignment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from fdd.container.zip.fields import CENTRAL_FIELDS, field_span
from fdd.container.zip.structs import LOCAL_HEADER, U16_ESCAPE, ZipFacts, ZipRecord
from fdd.core.rule import Violation, at
from fdd.core.span import Span, gaps
from fdd.core.text import decode_name
from fdd.formats.pytorch.canonical import DEFAULT_ALIGNMENT, MAX_ALIGNMENT
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule

ALIGNMENT = ".storage_alignment"
LONGEST_DESCRIPTOR = 24
LONGEST_ZIP64 = 28


@rule(
    "PT-ZIP-017",
    "records-overlap",
    axis="well-formed",
    level="error",
    clause="zip.layout",
    kinds=ARCHIVES,
    needs=("local-headers",),
    title="No two structures share bytes.",
    message="the record shares {length} bytes with {other}",
    remedy="Find out how the file was made; do not load it before.",
)
def records_overlap(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: bytes that belong to two records let a small file expand without end, or hide one record in another.

    References: format.md 1.4.
    """
    assert document.zip is not None
    for one, other, span in document.zip.overlaps:
        owner, second = (one, -1) if other < 0 else (other, one)
        name = f"record {document.records[second].name}" if second >= 0 else "the directory or an end record"
        yield at(span, record=document.records[owner].name, length=span.length, other=name)


def _stray_spans(facts: ZipFacts) -> list[Span]:
    """What records outside the directory, and displaced descriptors, explain of the bytes without an owner."""
    spans = [record.extent for record in facts.unlisted if record.extent is not None]
    for record in facts.records:
        fault = record.descriptor_fault
        if fault is not None and fault.code == "descriptor-displaced" and record.payload is not None:
            start = min(record.payload.end, fault.offset)
            spans.append(Span(start, max(record.payload.end, fault.offset) - start))
    return spans + list(_lost_spans(facts))


def _lost_spans(facts: ZipFacts) -> Iterator[Span]:
    """Where records stand whose local header is destroyed: from there to the next structure."""
    places = sorted(row.entry.header_offset for row in facts.records if row.entry is not None and row.local is None)
    for region in facts.regions:
        nearest = bisect_left(places, region.span.offset)
        if region.what == "gap" and nearest < len(places) and region.span.holds(places[nearest]):
            yield Span(places[nearest], region.span.end - places[nearest])


@rule(
    "PT-ZIP-018",
    "bytes-without-owner",
    axis="valid",
    level="error",
    clause="zip.layout",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Every byte belongs to a record, the directory or an end record.",
    message="{length} bytes between the structures of the archive belong to nothing",
    remedy="Look at the bytes: torch leaves no gaps, and no checksum covers them.",
)
def bytes_without_owner(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no reader shows these bytes, and data can hide there.

    References: format.md 1.4.
    """
    assert document.zip is not None
    owned = [region.span for region in document.zip.regions if region.what != "gap"]
    for span in gaps(owned + _stray_spans(document.zip), Span(0, document.size)):
        yield at(span, length=span.length)


@rule(
    "PT-ZIP-055",
    "record-not-listed",
    axis="well-formed",
    level="error",
    clause="zip.layout",
    kinds=ARCHIVES,
    needs=("local-headers", "inventory"),
    per="place",
    title="The directory lists every record.",
    message="a record {name} stands in the file that the directory does not list",
    remedy="Find out how the file was made: readers that start at the front see this record, torch does not.",
)
def record_not_listed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that stream, and rescue tools, see a record that others do not know.

    References: format.md 1.4; contract, section 6.
    """
    facts = document.zip
    assert facts is not None
    # The header of a listed record whose offset is wrong has a rule of its own.
    astray = {row.name for row in facts.records if row.local is None or row.local.name != row.name}
    begin = facts.directory.base if facts.directory is not None else 0
    end = facts.ends.end.span.offset if facts.ends.end is not None else facts.size
    for record in facts.unlisted:
        extent = record.extent
        if extent is not None and begin <= extent.offset < end and record.name not in astray:
            yield at(extent, name=decode_name(record.name))


def _first(record: ZipRecord) -> int:
    return record.entry.header_offset if record.entry is not None else 0


def _rooms(document: TorchDocument) -> Iterator[tuple[int, ZipRecord, int]]:
    """At depth `directory`: the bytes between each record's name and its successor that its payload does not fill.

    They hold extra fields and a descriptor, whose lengths the directory does not tell.
    """
    facts = document.zip
    if facts is None or facts.local_headers_read or facts.directory is None:
        return
    rows = sorted(((index, record) for index, record in document.zip_records()), key=lambda row: _first(row[1]))
    starts = [_first(record) for _, record in rows] + [facts.directory.span.offset]
    for (index, record), (start, following) in zip(rows, pairwise(starts), strict=True):
        entry = record.entry
        if entry is not None:
            yield index, record, following - start - LOCAL_HEADER.size - len(entry.name) - entry.compressed_size


@rule(
    "PT-ZIP-056",
    "no-room-for-record",
    axis="well-formed",
    level="error",
    clause="zip.layout",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Between one header offset and the next there is room for the record.",
    message="{missing} bytes are missing between the offset of the record and what follows it",
    remedy="Validate the file at depth structure or full: records overlap, or the directory is wrong.",
)
def no_room_for_record(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: where only the directory is read, this shows records that overlap.

    References: contract, section 1, depth; format.md 1.4.
    """
    for index, record, room in _rooms(document):
        if room < 0 and record.entry is not None:
            place = field_span(record.entry.span, CENTRAL_FIELDS, "header_offset")
            yield at(place, record=document.records[index].name, missing=-room)


@rule(
    "PT-ZIP-057",
    "too-much-room",
    axis="valid",
    level="warning",
    clause="zip.layout",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Between one record and the next there is no more room than padding and descriptor take.",
    message="{room} bytes around the payload are not accounted for by the directory",
    remedy="Validate the file at depth structure or full, which looks at these bytes.",
)
def too_much_room(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: where only the directory is read, this shows bytes that may belong to nothing.

    References: contract, section 1, depth; format.md 1.6, 1.7.
    """
    fixed = document.find(ALIGNMENT) is None and not python_made(document)
    padding = DEFAULT_ALIGNMENT + LONGEST_ZIP64 if fixed else U16_ESCAPE
    for index, record, room in _rooms(document):
        if room > padding + LONGEST_DESCRIPTOR and record.entry is not None:
            place = field_span(record.entry.span, CENTRAL_FIELDS, "header_offset")
            yield at(place, record=document.records[index].name, room=room)


def _unaligned(document: TorchDocument, alignment: int) -> Iterator[tuple[int, Span]]:
    """Storages whose payload does not begin at a multiple of ``alignment``, counted from the begin of the archive."""
    directory = document.zip.directory if document.zip is not None else None
    base = directory.base if directory is not None else 0
    for index, record in document.zip_records():
        payload, local = record.payload, record.local
        if document.records[index].role != "storage" or payload is None or local is None or not payload.length:
            continue
        if (payload.offset - base) % alignment:
            yield index, Span(payload.offset, payload.length)


def _stated_alignment(document: TorchDocument) -> int | None:
    text = document.texts.get(ALIGNMENT)
    usable = text is not None and text.isdigit() and len(text) <= len(str(MAX_ALIGNMENT))
    value = int(text) if text is not None and usable else 0
    return value if 1 <= value <= MAX_ALIGNMENT else None


@rule(
    "PT-ZIP-030",
    "storage-unaligned",
    axis="valid",
    level="warning",
    clause="zip.padding",
    kinds=NATIVE,
    needs=("local-headers",),
    title="Storages begin at a multiple of 64 bytes.",
    message="the storage begins at offset {offset}, no multiple of 64: the archive was packed again by another tool",
    remedy="Nothing is lost. Prefer the file as torch wrote it, if it can still be had.",
)
def storage_unaligned(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that map the file into memory get values at addresses that processors read slowly or not.

    References: format.md 1.6, 1.17.
    """
    if python_made(document) or document.find(ALIGNMENT) is not None:
        return
    for index, span in _unaligned(document, DEFAULT_ALIGNMENT):
        yield at(span, record=document.records[index].name, offset=span.offset)


@rule(
    "PT-ZIP-058",
    "storage-unaligned-against-record",
    axis="valid",
    level="error",
    clause="zip.padding",
    kinds=NATIVE,
    needs=("local-headers", "texts"),
    title="Storages begin where `.storage_alignment` says.",
    message="the storage begins at offset {offset}, no multiple of the {alignment} bytes that .storage_alignment states",
    remedy="Prefer the file as torch wrote it; readers that compute offsets from this record read wrong values.",
)
def storage_unaligned_against_record(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch can compute where storages lie from this record instead of looking; it then reads wrong bytes.

    References: format.md 1.6, 1.17.
    """
    alignment = _stated_alignment(document)
    if alignment is None or python_made(document):
        return
    for index, span in _unaligned(document, alignment):
        yield at(span, record=document.records[index].name, offset=span.offset, alignment=alignment)
