# SPDX-License-Identifier: Apache-2.0
"""The parts of a PyTorch file for fixity, by its container."""

from __future__ import annotations

from fdd.core.model import Record
from fdd.core.text import decode_name
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import record_role
from fdd.formats.segments import Segment, partition, segments_of_records

KIND_OF_REGION = {
    "local-header": "header",
    "payload": "data",
    "descriptor": "descriptor",
    "directory": "directory",
    "zip64-end": "end",
    "zip64-locator": "end",
    "end": "end",
    "comment": "end",
}
"""What the regions of a ZIP are called in a manifest; others are `other`."""


def segments_of(document: TorchDocument) -> list[Segment]:
    """A partition of the file, ascending."""
    facts = document.zip
    if facts is None or not facts.regions:
        return segments_of_records(document)
    owned = []
    for region in facts.regions:
        owner = document.records[region.record] if region.record is not None and region.record < len(document.records) else None
        kind = KIND_OF_REGION.get(region.what, "other")
        deflated = kind == "data" and owner is not None and owner.method == "deflated"
        owned.append(Segment(kind, region.span, owner.name if owner is not None else None, deflated))
    empty = [
        Segment("data", record.payload, decode_name(record.name))
        for record in facts.records
        if record.payload is not None and record.payload.length == 0
    ]
    return partition(owned + empty, document.size)


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
        whole = facts.directory is not None and not facts.salvaged and not facts.unlisted
        return whole and all(record.local is not None and record.local_fault is None for record in facts.records)
    return document.legacy is None or document.legacy.stopped is None
