# SPDX-License-Identifier: Apache-2.0
"""Rules on extra fields: torch's padding, ZIP64, Unicode paths, and unknown ones."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from fdd.container.zip.structs import (
    EXTRA_PADDING,
    EXTRA_UNICODE_PATH,
    EXTRA_ZIP64,
    U16_ESCAPE,
    U32_ESCAPE,
    CentralEntry,
    LocalHeader,
)
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule
from fdd.formats.pytorch.rules.zip.copies import pairs

FILLER = b"Z"
UNICODE_PATH_VERSION = 1


def _headers(document: TorchDocument) -> Iterator[tuple[str, CentralEntry | LocalHeader]]:
    """Both headers of each record, with its name."""
    for index, record in document.zip_records():
        for copy in (record.entry, record.local):
            if copy is not None:
                yield document.records[index].name, copy


def _where(copy: CentralEntry | LocalHeader) -> str:
    return "directory entry" if isinstance(copy, CentralEntry) else "local header"


@rule(
    "PT-ZIP-033",
    "extra-field-broken",
    axis="well-formed",
    level="error",
    clause="zip.extra-field",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="Extra fields fill their area exactly.",
    message="the extra field area of the {where} does not hold whole fields: {why}",
    remedy="Get the file again from its source: the copy is damaged, or was changed on purpose.",
)
def extra_field_broken(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that check the lengths refuse the record; others may place its payload elsewhere.

    References: APPNOTE 4.5.1; format.md 1.6.
    """
    for name, copy in _headers(document):
        fault = copy.extra_fault
        if fault is None or fault.code == "zip64-cut":
            continue
        last = copy.extra[-1].span if copy.extra else None
        # What is left over may be the end of a field whose own length is too short.
        start = last.offset if last is not None and last.end == fault.offset else fault.offset
        left = f"{fault.length} bytes are left over"
        why = left if fault.code == "extra-rest" else f"{fault.expected} are announced, and {left}"
        yield at(Span(start, fault.offset + fault.length - start), record=name, where=_where(copy), why=why)


@rule(
    "PT-ZIP-031",
    "padding-not-filler",
    axis="valid",
    level="warning",
    clause="zip.padding",
    kinds=NATIVE,
    needs=("local-headers",),
    per="place",
    title="Padding holds the letter Z only.",
    message="the padding in front of the payload holds {count} bytes other than Z",
    remedy="Look at these bytes: torch writes only the letter Z there, and no checksum covers them.",
)
def padding_not_filler(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: padding is outside every checksum; data can hide there, and a changed byte shows damage.

    References: format.md 1.6.
    """
    for pair in pairs(document):
        for item in pair.local.extra:
            if item.identifier == EXTRA_PADDING and item.data.strip(FILLER):
                first = len(item.data) - len(item.data.lstrip(FILLER))
                inner = item.data.strip(FILLER)
                count = len(inner) - inner.count(FILLER)
                yield at(Span(item.span.offset + 4 + first, len(inner)), record=pair.name, count=count)


@rule(
    "PT-ZIP-032",
    "extra-field-unknown",
    axis="valid",
    level="warning",
    clause="zip.extra-field",
    kinds=NATIVE,
    needs=("directory",),
    title="Only padding and ZIP64 fields stand beside a record.",
    message="the {where} has an extra field {identifier} of {length} bytes",
    remedy="Look at the field: another tool wrote the archive again, or something was added.",
)
def extra_field_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes a padding field, and ZIP64 where a record needs it. Anything else comes from another
    tool, and can carry data that no reader of models looks at.

    References: APPNOTE 4.5; format.md 1.6, 1.8.
    """
    if python_made(document):
        return
    for name, copy in _headers(document):
        known = {EXTRA_ZIP64} if isinstance(copy, CentralEntry) else {EXTRA_ZIP64, EXTRA_PADDING}
        for item in copy.extra:
            if item.identifier not in known:
                identifier = f"{item.identifier:#06x}"
                yield at(item.span, record=name, where=_where(copy), identifier=identifier, length=len(item.data))
            known.discard(item.identifier)


@rule(
    "PT-ZIP-044",
    "zip64-field-wrong",
    axis="well-formed",
    level="error",
    clause="zip.zip64-field",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="A ZIP64 field holds just the values that the header refers to it.",
    message="the ZIP64 field of the {where} holds {what}",
    remedy="Get the file again from its source: readers disagree on where the record is and how long.",
)
def zip64_field_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one reader takes sizes and offset from the ZIP64 field whenever it is there, another only where the
    header says so: they see different bytes.

    References: APPNOTE 4.5.3; format.md 1.8, 1.10.
    """
    assert document.zip is not None
    base = document.zip.directory.base if document.zip.directory is not None else 0
    for index, record in document.zip_records():
        name, entry, local = document.records[index].name, record.entry, record.local
        for copy in (entry, local):
            if copy is not None:
                yield from _further_zip64(name, copy)
        if entry is not None and entry.zip64 is not None:
            called = (entry.raw_uncompressed_size, entry.raw_compressed_size, entry.raw_header_offset).count(U32_ESCAPE)
            what = _zip64_fault(entry, called, entry.disk_start == U16_ESCAPE)
            if what is not None:
                yield at(entry.zip64.span, record=name, where=_where(entry), what=what)
        if local is not None and local.zip64 is not None:
            what = _local_zip64_fault(local, entry, base)
            if what is not None:
                yield at(local.zip64.span, record=name, where=_where(local), what=what)


def _further_zip64(name: str, copy: CentralEntry | LocalHeader) -> Iterator[Violation]:
    """A second ZIP64 field: readers differ in which of the two they take."""
    for item in [item for item in copy.extra if item.identifier == EXTRA_ZIP64][1:]:
        yield at(item.span, record=name, where=_where(copy), what="a second set of numbers")


def _zip64_fault(copy: CentralEntry | LocalHeader, called: int, disk: bool) -> str | None:
    zip64 = copy.zip64
    assert zip64 is not None
    count = len(zip64.values)
    if not called and not disk:
        return f"{count} numbers, and the header calls for none"
    if count != called:
        return f"{count} numbers where the header calls for {called}"
    if zip64.rest or (zip64.disk_start is not None) != disk:
        return "bytes that the header does not call for"
    return None


def _local_zip64_fault(local: LocalHeader, entry: CentralEntry | None, base: int) -> str | None:
    """Judge by the specification where the header refers to the field, else by torch's dialect (format.md 1.10)."""
    zip64 = local.zip64
    assert zip64 is not None
    raw = (local.raw_uncompressed_size, local.raw_compressed_size)
    if U32_ESCAPE in raw:
        return _zip64_fault(local, raw.count(U32_ESCAPE), False)
    if any(raw) or zip64.rest or zip64.disk_start is not None or not zip64.values:
        return "values that the header does not call for"
    if entry is None:
        return None
    offset = entry.header_offset - base
    size = entry.uncompressed_size
    expected: tuple[int, ...] = (size, 0) if size >= U32_ESCAPE else ()
    expected += (offset,) if offset >= U32_ESCAPE else ()
    return None if zip64.values == expected else "values that the header does not call for"


@rule(
    "PT-ZIP-045",
    "unicode-path-contradicts",
    axis="well-formed",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="A Unicode path field repeats the name in the header.",
    message="the header calls the record {header}, its Unicode path field {field}",
    remedy="Find out how the file was made: readers that know this field see another record.",
)
def unicode_path_contradicts(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: some readers take the name from this field, torch does not: they see different records.

    References: APPNOTE 4.6.9.
    """
    for name, copy in _headers(document):
        for item in copy.extra:
            if item.identifier != EXTRA_UNICODE_PATH:
                continue
            stale = item.data[1:5] != zlib.crc32(copy.name).to_bytes(4, "little")
            if item.data[:1] != bytes([UNICODE_PATH_VERSION]) or stale or item.data[5:] != copy.name:
                yield at(item.span, record=name, header=decode_name(copy.name), field=decode_name(item.data[5:]))
