# SPDX-License-Identifier: Apache-2.0
"""The facts of one safetensors file, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fdd.container.tar import looks_like_tar
from fdd.container.zip import looks_like_zip
from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, NOT_REQUESTED, Document, Evidence, Identification, Record
from fdd.core.payload import Part, read_payload
from fdd.core.source import EDGE
from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.safetensors.canonical import first_difference
from fdd.formats.safetensors.header import HeaderFacts, TensorEntry
from fdd.formats.safetensors.identify import header_of
from fdd.formats.safetensors.layout import Layout, lay_out
from fdd.pickles import looks_like_pickle
from fdd.tensors.bools import BoolTap
from fdd.tensors.model import Storage, StorageUse, Tensor, contiguous_stride
from fdd.tensors.names import escape_key

HEADER_RECORD = "header"
_MOST_DIMENSIONS = 1_000
"""Longer shapes, which no library can hold, get no strides: their numbers would grow without bound."""
_CLOSING_RULES = ("ST-HDR-001", "ST-HDR-002", "ST-HDR-003", "ST-HDR-005")
"""The rules one of which fails where the object of the header does not come to its end."""
_OFFSET_RULES = ("ST-TEN-001", "ST-TEN-002", "ST-TEN-006")
"""The rules one of which fails where a tensor has no offsets."""


class OddBools(NamedTuple):
    """A bool tensor with other bytes than 0 and 1: how many, and where the first one is."""

    entry: TensorEntry
    span: Span
    odd: int


class OtherReading(NamedTuple):
    """Something else that a reader of another format would take the file, or its tail, for."""

    what: str
    span: Span


@dataclass(slots=True)
class SafetensorsDocument(Document):
    """Everything known of a safetensors file. ``tensors`` and ``records`` are in the order of the header."""

    header: HeaderFacts = field(kw_only=True)
    layout: Layout | None = None
    """None where it is not known where the data begin."""
    tensors: list[Tensor] = field(default_factory=list)
    rewritten: Span | None = None
    """From where on the header is not what the library would have written."""
    other_readings: list[OtherReading] = field(default_factory=list)
    odd_bools: list[OddBools] = field(default_factory=list)
    tensor_records: list[tuple[TensorEntry, Record]] = field(default_factory=list)


def open_document(probe: Probe, identification: Identification) -> SafetensorsDocument:
    """Read the structure: header, places of the tensors, other readings. Raises SourceError where reading fails."""
    header = header_of(probe)
    document = SafetensorsDocument(probe.source, probe.name, identification, header=header)
    text, start = header.text, header.data_start
    if start is not None:
        document.layout = lay_out(text.entries, start, document.size)
    header_end = start if start is not None else text.object_end or document.size
    length = min(header_end, document.size)
    document.records.append(Record(HEADER_RECORD, "header", Span(0, length), length))
    for entry in text.entries:
        record = _record(entry, start, document.size)
        document.records.append(record)
        document.tensor_records.append((entry, record))
        document.tensors.append(_tensor(entry, record))
    _state_evidence(document)
    if document.evidence["canonical"] is COMPLETE and document.layout is not None:
        document.rewritten = first_difference(header, document.layout.order)
    _find_other_readings(document, probe)
    return document


def _record(entry: TensorEntry, start: int | None, size: int) -> Record:
    length = entry.byte_count
    span = None
    if start is not None and entry.begin is not None and length is not None and start + entry.begin <= size:
        span = Span(start + entry.begin, min(length, size - start - entry.begin))
    return Record(entry.key, "tensor", span, length or 0)


def _tensor(entry: TensorEntry, record: Record) -> Tensor:
    """A tensor and its storage, which is its own part of the data.

    Type and shape are those under which torch knows the values: of F4 the header counts values, torch pairs of them.
    """
    kind, shape, count = entry.element_type, entry.shape, entry.value_count
    dtype = kind.dtype if kind is not None else None
    if kind is not None and kind.per_element > 1:
        if shape and shape[-1] % kind.per_element == 0:
            shape = (*shape[:-1], shape[-1] // kind.per_element)
            count = count // kind.per_element if count is not None else None
        else:
            dtype = None
    word = entry.word if entry.word is not None else "unknown"
    storage = Storage(entry.key, dtype, word, None, count, record=record.name, span=record.span)
    storage.uses = [StorageUse(word, dtype, None, count, entry.span)]
    storage.stored_size = record.span.length if record.span is not None else None
    stride = contiguous_stride(shape) if shape is not None and count is not None and len(shape) <= _MOST_DIMENSIONS else None
    return Tensor(escape_key(entry.key), dtype, shape, stride, storage=storage, offset=entry.key_span.offset)


def _state_evidence(document: SafetensorsDocument) -> None:
    """Inputs: `entries` (tensors as far as they were read), `inventory` (all of them), `extent` (where the header ends),
    `layout` (all offsets), `canonical` (everything that the writer puts into a header), `payload`."""
    header, evidence = document.header, document.evidence
    text = header.text
    if text.closed:
        evidence["entries"] = evidence["inventory"] = COMPLETE
    elif text.fault is not None and text.fault[0] == "limit":
        evidence["entries"] = Evidence("partial", Reason.LIMIT, detail="pickle_nodes")
        evidence["inventory"] = evidence["entries"]._replace(state="withheld")
    else:
        evidence["entries"] = _blocked("partial", _CLOSING_RULES)
        evidence["inventory"] = _blocked("withheld", _CLOSING_RULES)
    inventory = evidence["inventory"]
    known = header.length is not None
    if not text.closed:
        evidence["extent"] = inventory
    else:
        evidence["extent"] = COMPLETE if known else _blocked("withheld", _CLOSING_RULES)
    if evidence["extent"] is not COMPLETE:
        evidence["layout"] = evidence["extent"]
    elif any(entry.begin is None for entry in text.entries):
        evidence["layout"] = _blocked("withheld", _OFFSET_RULES)
    else:
        evidence["layout"] = COMPLETE
    evidence["canonical"] = COMPLETE if evidence["layout"] is COMPLETE and _comparable(header) else Evidence("absent")
    evidence["payload"] = NOT_REQUESTED


def _blocked(state: str, by: tuple[str, ...]) -> Evidence:
    return Evidence(state, Reason.BLOCKED, by)


def _comparable(header: HeaderFacts) -> bool:
    """Whether the header holds nothing that the writer of the library cannot put there."""
    text = header.text
    whole = all(entry.word is not None and entry.shape is not None and not entry.unknown for entry in text.entries)
    return whole and not (text.duplicates or text.surrogates or text.not_text or text.no_object or text.not_utf8)


def _find_other_readings(document: SafetensorsDocument, probe: Probe) -> None:
    """State what else the bytes are. Where they are something else, that may hold code nobody looked at."""
    size = document.size
    if probe.zip is not None and probe.zip.directory is not None and probe.zip.directory.entries:
        document.other_readings.append(OtherReading("a ZIP archive", probe.zip.directory.span))
    if probe.tar is not None and probe.tar.members and probe.tar.members[0].header.checksum_matches:
        document.other_readings.append(OtherReading("a tar archive", probe.tar.members[0].header.span))
    trailing = document.layout.trailing if document.layout is not None else Span(size, 0)
    if trailing.length:
        data = document.source.read_at(trailing.offset, min(trailing.length, EDGE))
        what = _reading_of(data, document.source.read_at(max(trailing.offset, size - EDGE), EDGE))
        if what is not None:
            document.other_readings.append(OtherReading(what, trailing))
    if document.other_readings:
        document.has_code = True
        document.followed = False


def _reading_of(head: bytes, tail: bytes) -> str | None:
    if looks_like_zip(head, tail):
        return "a ZIP archive"
    if looks_like_tar(head):
        return "a tar archive"
    return "a pickle" if looks_like_pickle(head) else None


def read_payloads(document: SafetensorsDocument, algorithms: tuple[str, ...], watched: Iterable[Part] = ()) -> None:
    """Digests of the file and of every record in one read; bool tensors are looked through on the way. ``watched`` are
    parts of others that are filled in the same read."""
    parts = [(record, Part(record.span, algorithms=algorithms)) for record in document.records if record.span is not None]
    by_record = {id(record): part for record, part in parts}
    taps: list[tuple[TensorEntry, Span, BoolTap]] = []
    for entry, record in document.tensor_records:
        if entry.word == "BOOL" and record.span is not None:
            tap = BoolTap()
            by_record[id(record)].taps = (tap,)
            taps.append((entry, record.span, tap))
    document.digests = read_payload(document.source, [*(part for _, part in parts), *watched], algorithms)
    for record, part in parts:
        record.computed_crc32 = part.crc32
        record.digests = part.digests
    document.odd_bools = [OddBools(entry, Span(span.offset + tap.first, 1), tap.count) for entry, span, tap in taps if tap.count]
    document.evidence["payload"] = COMPLETE if document.layout is not None else document.evidence["layout"]
