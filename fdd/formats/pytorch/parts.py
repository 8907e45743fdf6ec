# SPDX-License-Identifier: Apache-2.0
"""The parts of a PyTorch file for fixity, by its container."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.container.tar import TarFacts
from fdd.container.zip.structs import ZipFacts
from fdd.core.model import Record
from fdd.core.span import Span, gaps
from fdd.core.text import decode_name
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import record_role
from fdd.formats.pytorch.older_facts import TAR_PARTS, LegacyFacts
from fdd.formats.segments import Segment, partition, segments_of_records

KIND_OF_REGION = {
    "local-header": "header",
    "header": "header",
    "extension": "header",
    "payload": "data",
    "padding": "padding",
    "descriptor": "descriptor",
    "directory": "directory",
    "zip64-end": "end",
    "zip64-locator": "end",
    "end": "end",
    "comment": "end",
}
"""What the regions of a ZIP or tar are called in a manifest; others are `other`."""


def segments_of(document: TorchDocument) -> list[Segment]:
    """A partition of the file, ascending."""
    if document.zip is not None and document.zip.regions:
        return partition(_zip_segments(document, document.zip), document.size)
    if document.tar is not None and document.tar.regions:
        return partition(_tar_segments(document, document.tar), document.size)
    if not document.records and document.nested_storages:
        return partition(_archive_segments(document), document.size, rest="header")
    return segments_of_records(document, _count_segments(document, document.legacy) if document.legacy is not None else ())


def _archive_segments(document: TorchDocument) -> Iterator[Segment]:
    """The storages of a file of several archives; all around them is `header`."""
    for storage in document.nested_storages:
        if storage.span is not None:
            yield Segment("data", storage.span, f"{storage.source}/{storage.record}")


def _zip_segments(document: TorchDocument, facts: ZipFacts) -> Iterator[Segment]:
    for region in facts.regions:
        owner = document.records[region.record] if region.record is not None and region.record < len(document.records) else None
        kind = KIND_OF_REGION.get(region.what, "other")
        deflated = kind == "data" and owner is not None and owner.method == "deflated"
        yield Segment(kind, region.span, owner.name if owner is not None else None, deflated)
    for record in facts.records:
        if record.payload is not None and record.payload.length == 0:
            yield Segment("data", record.payload, decode_name(record.name))


def _tar_segments(document: TorchDocument, facts: TarFacts) -> Iterator[Segment]:
    """Members; storages inside a member are parts of their own, what lies around them is `header`."""
    storages = (record for record in document.records if record.role == "storage")
    inner = [Segment("data", record.span, record.name) for record in storages if record.span is not None]
    for region in facts.regions:
        name = decode_name(facts.members[region.record].name) if region.record is not None else None
        kind = KIND_OF_REGION.get(region.what, "other")
        held = [segment for segment in inner if _inside(segment.span, region.span)] if kind == "data" else []
        if not held:
            yield Segment(kind, region.span, name)
            continue
        yield from held
        for span in gaps((segment.span for segment in held), region.span):
            yield Segment("header", span, name)


def _inside(span: Span, outer: Span) -> bool:
    return outer.offset <= span.offset and span.end <= outer.end


def _count_segments(document: TorchDocument, facts: LegacyFacts) -> Iterator[Segment]:
    """The number of elements in front of each storage of a stream."""
    names = {record.span: record.name for record in document.records}
    for storage in facts.storages:
        yield Segment("header", storage.count_span, names.get(storage.payload))
    for further in facts.further:
        yield from _count_segments(document, further)


def stored_parts_of(document: TorchDocument) -> list[Record]:
    """The records of the document, and those that only their local headers tell of."""
    facts = document.zip
    found = list(document.records)
    for record in facts.unlisted if facts is not None else ():
        if record.payload is not None:
            name = decode_name(record.name)
            found.append(
                Record(name, record_role(document.kind, document.local_name(name)), record.payload, record.payload.length)
            )
    return found


def is_orderly(document: TorchDocument) -> bool:
    """Whether directory and local headers agree on where every record lies; of other containers, that nothing stopped."""
    facts = document.zip
    if facts is not None:
        read = facts.directory is not None and not facts.directory.faults and not facts.ends.faults
        whole = read and not facts.salvaged and not facts.unlisted
        return whole and all(record.local is not None and record.local_fault is None for record in facts.records)
    if document.tar is not None:
        model = document.tar_model
        return not document.tar.faults and model is not None and not model.faults and TAR_PARTS.keys() <= model.members.keys()
    return document.legacy is None or document.legacy.stopped is None
