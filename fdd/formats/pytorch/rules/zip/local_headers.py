# SPDX-License-Identifier: Apache-2.0
"""Rules on local headers and data descriptors: that they are there, and say what the directory says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fdd.container.zip.fields import DESCRIPTOR64_FIELDS, DESCRIPTOR_FIELDS, field_span
from fdd.container.zip.structs import FLAG_DESCRIPTOR, FLAG_ENCRYPTED, METHOD_STORED, CentralEntry, DataDescriptor, Fault
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, rule
from fdd.formats.pytorch.rules.zip.copies import Pair, Votes, field_place, name_place, pairs, true_size

REPEATED = ("crc32", "compressed_size", "uncompressed_size")
"""What directory, local header and descriptor all have room for."""
FRESH_COPY = "Get the file again from its source: the copy is damaged, or was changed on purpose."


@rule(
    "PT-ZIP-011",
    "local-header-missing",
    axis="well-formed",
    level="error",
    clause="zip.local-header",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Every record of the directory has a whole local header where the directory says.",
    message="{what}",
    remedy="Get the file again from its source; records whose headers are whole can still be read.",
)
def local_header_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the payload begins behind its local header. Without one the record cannot be found; headers that
    all stand at other places by one distance tell that bytes were lost or inserted.

    References: APPNOTE 4.3.7; format.md 1.5.
    """
    assert document.zip is not None
    strays = {item.local.name: item.local.span.offset for item in document.zip.unlisted if item.local is not None}
    lost: list[tuple[str, Fault, CentralEntry, int | None]] = []
    for index, record in document.zip_records():
        fault, name = record.local_fault, document.records[index].name
        if fault is None or record.entry is None:
            continue
        if record.local is None:
            lost.append((name, fault, record.entry, strays.get(record.name)))
        elif fault.code == "local-header-signature" and fault.offset > 0:
            yield at(Span(fault.offset, 4), record=name, what="the signature of the local header is damaged")
        elif fault.code == "local-header-lengths":
            what = f"the local header states wrong lengths of its name and extra field: they are {fault.expected}"
            yield at(Span(fault.offset, 4), record=name, what=what)
    yield from _lost_headers(lost)


def _lost_headers(lost: list[tuple[str, Fault, CentralEntry, int | None]]) -> Iterator[Violation]:
    """Headers that stand elsewhere by one common distance are one cause; a single one is a wrong offset."""
    shifts = Counter(found - entry.header_offset for _, _, entry, found in lost if found is not None)
    told: set[int] = set()
    for name, fault, entry, found in sorted(lost, key=lambda row: row[2].header_offset):
        shift = found - entry.header_offset if found is not None else 0
        if found is not None and shifts[shift] > 1:
            if shift not in told:
                how = f"{abs(shift)} bytes {'earlier' if shift < 0 else 'later'} than the directory says"
                cause = "bytes were lost" if shift < 0 else "bytes were inserted"
                what = f"{shifts[shift]} local headers stand {how}: {cause} in front of them"
                yield at(Span(fault.offset, max(fault.length, 4)), record=name, what=what)
            told.add(shift)
        elif found is not None:
            what = f"the directory says that the local header is at offset {entry.header_offset}; it is at {found}"
            yield at(field_place(entry, "header_offset"), record=name, what=what)
        elif fault.code == "local-header-outside":
            what = f"the directory places the local header at offset {entry.header_offset}, outside the file"
            yield at(field_place(entry, "header_offset"), record=name, what=what)
        else:
            cut = fault.code == "local-header-cut"
            what = "the file ends inside the local header" if cut else f"there is no local header at offset {fault.offset}"
            yield at(Span(fault.offset, fault.length), record=name, what=what)


@rule(
    "PT-ZIP-012",
    "names-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Local header and directory give a record the same name.",
    message="the directory calls the record {listed}, its local header {local}",
    remedy=FRESH_COPY,
)
def names_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch looks records up by the directory, readers that stream and rescue tools by the local headers:
    they see different records.

    References: APPNOTE 4.4.17; format.md 1.5, 1.16.
    """
    assert document.zip is not None
    strays = {item.local.name for item in document.zip.unlisted if item.local is not None}
    owners = Counter(pair.local.span.offset for pair in pairs(document))
    votes = Votes(document)
    for pair in pairs(document):
        if pair.entry.name == pair.local.name:
            continue
        # The header of another record, or its own one somewhere else: then the offset is wrong, and both names are right.
        if pair.entry.name in strays or owners[pair.local.span.offset] > 1:
            place = field_place(pair.entry, "header_offset")
        else:
            place = name_place(pair.entry if votes.entry_name_is_wrong(pair) else pair.local)
        yield at(place, record=pair.name, listed=decode_name(pair.entry.name), local=decode_name(pair.local.name))


def _differing(document: TorchDocument, *fields: str) -> Iterator[tuple[Pair, str, Span]]:
    """Records whose headers differ in a field, and the place of the wrong one."""
    votes = Votes(document)
    for pair in pairs(document):
        for field in fields:
            if getattr(pair.entry, field) != getattr(pair.local, field):
                wrong = pair.entry if votes.entry_is_wrong(pair, field) else pair.local
                yield pair, field, field_place(wrong, field)


@rule(
    "PT-ZIP-013",
    "methods-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Local header and directory name the same compression method.",
    message="the directory says method {listed}, the local header {local}",
    remedy=FRESH_COPY,
)
def methods_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one reader inflates what the other takes as it is; torch returned uninitialised memory for such a
    record, without an error.

    References: APPNOTE 4.4.5; format.md 1.16.
    """
    for pair, _, place in _differing(document, "method"):
        yield at(place, record=pair.name, listed=pair.entry.method, local=pair.local.method)


@rule(
    "PT-ZIP-014",
    "flags-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Local header and directory have the same flags.",
    message="the directory has the flags {listed}, the local header {local}",
    remedy=FRESH_COPY,
)
def flags_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the flags say whether a record is encrypted, what a name is encoded in, and whether a descriptor
    follows. torch looks at the directory only, others at both.

    References: APPNOTE 4.4.4; format.md 1.5, 1.16.
    """
    for pair, _, place in _differing(document, "flags"):
        yield at(place, record=pair.name, listed=f"{pair.entry.flags:#06x}", local=f"{pair.local.flags:#06x}")


@rule(
    "PT-ZIP-042",
    "version-or-time-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Local header and directory state the same version needed, time and date.",
    message="the directory says {listed} for {field}, the local header {local}",
    remedy=FRESH_COPY,
)
def version_or_time_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: both headers are written from the same values. Where they differ, one was changed afterwards.

    References: APPNOTE 4.4.3, 4.4.6; format.md 1.5, 1.8.
    """
    for pair, field, place in _differing(document, "version_needed", "time", "date"):
        listed, local = getattr(pair.entry, field), getattr(pair.local, field)
        yield at(place, record=pair.name, field=field.replace("_", " "), listed=listed, local=local)


@rule(
    "PT-ZIP-015",
    "local-sizes-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="Sizes and checksum in a local header are those of the directory, or 0 where a descriptor follows.",
    message="the local header says {local} for {field}, the directory {listed}; 0 is allowed where a descriptor follows",
    remedy=FRESH_COPY,
)
def local_sizes_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that go from the front, and rescue tools, take the sizes from here.

    References: APPNOTE 4.4.4 bit 3, 4.4.7 to 4.4.9; format.md 1.5, 1.10.
    """
    for pair in pairs(document):
        # Behind a descriptor all three are 0; a single bit among zeros is a turned one, even where it makes the true value.
        bits = sum(getattr(pair.local, field).bit_count() for field in REPEATED)
        blank = pair.described and bits == 1 and pair.local.zip64 is None
        for field in REPEATED:
            local, listed = getattr(pair.local, field), getattr(pair.entry, field)
            if (local == listed and not (blank and local)) or (pair.described and local == 0):
                continue
            wrong = pair.entry if not pair.described and _local_is_right(document, pair, field) else pair.local
            shown = (f"{local:08x}", f"{listed:08x}") if field == "crc32" else (local, listed)
            yield at(field_place(wrong, field), record=pair.name, field=_words(field), local=shown[0], listed=shown[1])


def _local_is_right(document: TorchDocument, pair: Pair, field: str) -> bool:
    record = document.records[pair.number]
    if field == "crc32":
        return record.computed_crc32 == pair.local.crc32
    if field == "uncompressed_size" and record.inflated is not None:
        return record.inflated == pair.local.uncompressed_size
    return bool(true_size(pair) == getattr(pair.local, field))


def _words(field: str) -> str:
    return "CRC-32" if field == "crc32" else field.replace("_", " ")


@rule(
    "PT-ZIP-016",
    "descriptor-differs",
    axis="well-formed",
    level="error",
    clause="zip.descriptor",
    kinds=ARCHIVES,
    needs=("local-headers",),
    per="place",
    title="A data descriptor follows exactly where flag bit 3 says so, and states what the directory states.",
    message="{what}",
    remedy=FRESH_COPY,
)
def descriptor_differs(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes checksum and sizes twice, behind the payload and in the directory. A difference shows
    damage that torch.load does not see, and makes readers disagree.

    References: APPNOTE 4.3.9; format.md 1.7, 1.16.
    """
    words = {
        "descriptor-signature": "the signature of the data descriptor is damaged",
        "descriptor-cut": "the file ends inside the data descriptor",
        "descriptor-missing": "no data descriptor follows the payload, although flag bit 3 announces one",
    }
    for pair in pairs(document):
        fault, descriptor = pair.record.descriptor_fault, pair.record.descriptor
        announced = bool(pair.entry.flags & pair.local.flags & FLAG_DESCRIPTOR)
        if fault is not None and fault.code == "descriptor-signature" and _is_none(descriptor, pair.entry):
            yield at(descriptor.span if descriptor else None, record=pair.name, what=words["descriptor-missing"])
            continue
        if fault is not None and fault.code in words and (announced or fault.code == "descriptor-signature"):
            yield at(Span(fault.offset, fault.length), record=pair.name, what=words[fault.code])
        if descriptor is None:
            continue
        if not pair.described:
            yield at(descriptor.span, record=pair.name, what="a data descriptor follows, although flag bit 3 is not set")
        if (descriptor.width == 8) != (pair.local.zip64 is not None):
            what = f"the sizes in the data descriptor take {descriptor.width} bytes: not what the local header asks for"
            yield at(descriptor.span, record=pair.name, what=what)
        yield from _descriptor_values(document, pair, descriptor)


def _is_none(descriptor: DataDescriptor | None, entry: CentralEntry) -> bool:
    """Whether these bytes are no descriptor at all: no field is as it should be."""
    return descriptor is None or not any(getattr(descriptor, field) == getattr(entry, field) for field in REPEATED)


def _descriptor_values(document: TorchDocument, pair: Pair, descriptor: DataDescriptor) -> Iterator[Violation]:
    for field in REPEATED:
        told, listed = getattr(descriptor, field), getattr(pair.entry, field)
        if told == listed:
            continue
        if _descriptor_is_right(document, pair, descriptor, field):
            place = field_place(pair.entry, field)
        else:
            place = _descriptor_place(descriptor, field)
        shown = (f"{told:08x}", f"{listed:08x}") if field == "crc32" else (told, listed)
        what = f"the data descriptor says {shown[0]} for {_words(field)}, the directory {shown[1]}"
        yield at(place, record=pair.name, what=what)


def _descriptor_is_right(document: TorchDocument, pair: Pair, descriptor: DataDescriptor, field: str) -> bool:
    record = document.records[pair.number]
    if field == "crc32":
        return record.computed_crc32 == descriptor.crc32
    if field == "uncompressed_size" and record.inflated is not None:
        return record.inflated == descriptor.uncompressed_size
    displaced = pair.record.descriptor_fault is not None and pair.record.descriptor_fault.code == "descriptor-displaced"
    if field == "compressed_size" and displaced:
        return True
    return bool(true_size(pair) == getattr(descriptor, field))


def _descriptor_place(descriptor: DataDescriptor, field: str) -> Span:
    fields = DESCRIPTOR64_FIELDS if descriptor.width == 8 else DESCRIPTOR_FIELDS
    place = field_span(descriptor.span, fields, field)
    return place if descriptor.has_signature else Span(place.offset - 4, place.length)


@rule(
    "PT-ZIP-043",
    "stored-sizes-differ",
    axis="well-formed",
    level="error",
    clause="zip.one-statement",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="A stored record has equal compressed and uncompressed sizes.",
    message="the record is stored, but its compressed size is {compressed} and its uncompressed size {uncompressed}",
    remedy=FRESH_COPY,
)
def stored_sizes_differ(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one reader takes as many bytes as the first number says, another as the second.

    References: APPNOTE 4.4.8, 4.4.9; format.md 1.5.
    """
    for index, record in document.zip_records():
        entry, local = record.entry, record.local
        if entry is None or entry.method != METHOD_STORED or entry.compressed_size == entry.uncompressed_size:
            continue
        # Encryption puts its own header in front of the data.
        if entry.flags & FLAG_ENCRYPTED or entry.extra_fault is not None or (local is not None and local.method != entry.method):
            continue
        name = document.records[index].name
        size = true_size(Pair(index, name, entry, local, record)) if local is not None else None
        field = "compressed_size" if size == entry.uncompressed_size else "uncompressed_size"
        place = field_place(entry, field)
        yield at(place, record=name, compressed=entry.compressed_size, uncompressed=entry.uncompressed_size)
