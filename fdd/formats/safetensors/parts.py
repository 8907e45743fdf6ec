# SPDX-License-Identifier: Apache-2.0
"""The parts of a safetensors file for fixity: header, padding, and the data of each tensor."""

from __future__ import annotations

from fdd.core.span import Span
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.formats.segments import Segment, partition


def segments_of(document: SafetensorsDocument) -> list[Segment]:
    """A partition of the file, ascending. Bytes without an owner are `other`."""
    header = document.header
    end = header.text.object_end
    owned = [Segment("header", Span(0, end if end is not None else header.data_start or document.size))]
    behind = header.behind_object
    if behind is not None:
        owned.append(Segment("padding", behind))
    owned += [Segment("data", record.span, record.name) for _, record in document.tensor_records if record.span is not None]
    return partition(owned, document.size)


def is_orderly(document: SafetensorsDocument) -> bool:
    """Whether the header was read to its end and leads to every byte of the data."""
    header, layout = document.header, document.layout
    return (
        header.text.closed
        and header.length == header.stated
        and layout is not None
        and document.evidence["layout"].state == "complete"
        and not (layout.holes or layout.overlaps or layout.misplaced or layout.cut or layout.trailing.length)
    )


def has_all_tensors(document: SafetensorsDocument) -> bool:
    """Whether the header was read to its end, names no tensor twice, and describes each of them."""
    text = document.header.text
    described = all(entry.word is not None and entry.shape is not None and entry.begin is not None for entry in text.entries)
    return text.closed and described and not text.duplicates
