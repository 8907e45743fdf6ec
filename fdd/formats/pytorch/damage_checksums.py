# SPDX-License-Identifier: Apache-2.0
"""Records without their recorded checksum: which tensors that touches, and whether one bit or a hole of zeros explains it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from fdd.container.zip.structs import ZipRecord
from fdd.core.model import Record
from fdd.core.span import Span
from fdd.formats.pytorch.damage_bits import flipped_bit
from fdd.formats.pytorch.damage_facts import SECTOR, AlteredRecord, DamageFacts, FlippedBit, ZeroHole
from fdd.formats.pytorch.damage_losses import Losses
from fdd.formats.pytorch.damage_scan import ByteScan
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import every_tensor

MOST_SOLVED = 64 << 20
"""Bytes of the largest payload for which a single bit is looked for: beyond it, chance finds one too often."""
MOST_RECORDS = 256
"""Records for which it is looked for in one file."""
_NEAR = 8
"""Bytes that a hole may seem longer than it is, because numbers beside it end or begin with zeros."""


def altered_records(document: TorchDocument) -> list[int]:
    """Records whose payload was read and has another checksum than every recorded one. 0 counts as not recorded.

    Left out are those of which it is not sure where they end: the directory is wrong then, not the contents.
    """
    assert document.zip is not None
    shared = {number for one, other, _ in document.zip.overlaps for number in (one, other)}
    found: list[int] = []
    for index, zip_record in document.zip_records():
        record = document.records[index]
        if record.computed_crc32 is None or not record.crc32 or record.computed_crc32 == record.crc32:
            continue
        sure = index not in shared and _ends_are_sure(zip_record) and record.inflate_fault is None
        if sure and record.computed_crc32 not in _copies(zip_record):
            found.append(index)
    return found


def _ends_are_sure(record: ZipRecord) -> bool:
    """Whether all that is stated of the size agrees, and so many bytes are there."""
    entry, descriptor, fault = record.entry, record.descriptor, record.descriptor_fault
    if not record.payload_complete or (fault is not None and fault.code == "descriptor-displaced"):
        return False
    damaged = descriptor is None or fault is not None  # then it is no witness
    return entry is None or damaged or (descriptor is not None and descriptor.compressed_size == entry.compressed_size)


def whole_records(document: TorchDocument) -> int:
    """Number of records that have the recorded checksum."""
    return sum(record.crc32 is not None and record.computed_crc32 == record.crc32 for record in document.records)


def _copies(record: ZipRecord) -> list[int]:
    local = record.local.crc32 if record.local is not None and record.descriptor is None else None
    descriptor = record.descriptor.crc32 if record.descriptor is not None else None
    return [copy for copy in (local, descriptor) if copy is not None]


def describe_altered(document: TorchDocument, indexes: Iterable[int], losses: Losses) -> list[AlteredRecord]:
    """The facts of each altered record, with the flipped bit where one explains the checksum."""
    rows: list[AlteredRecord] = []
    for index in indexes:
        record = document.records[index]
        assert record.span is not None
        row = AlteredRecord(record.name, record.role, record.span, record.size, losses.tensors([record.name]))
        row.flipped = _flipped(document, record) if len(rows) < MOST_RECORDS else None
        rows.append(row)
    return rows


def _flipped(document: TorchDocument, record: Record) -> FlippedBit | None:
    span, recorded, computed = record.span, record.crc32, record.computed_crc32
    if span is None or recorded is None or computed is None or record.method != "stored" or span.length > MOST_SOLVED:
        return None
    place = flipped_bit(recorded, computed, span.length)
    if place is None or span.end > document.size:
        return None
    offset, bit = span.offset + place[0], place[1]
    found = document.source.read_at(offset, 1)
    if not found:
        return None
    element, tensors = _element(document, record.name, place[0], offset)
    return FlippedBit(offset, bit, found[0], element, tensors, 8 * span.length / (1 << 32))


def _element(document: TorchDocument, record: str, within: int, offset: int) -> tuple[int | None, list[str]]:
    """Which element of a storage a byte belongs to, and the tensors that reach over it."""
    storage = next((item for item in document.storages if item.record == record), None)
    if storage is None or storage.dtype is None:
        return None, []
    tensors: dict[str, None] = {}
    for name, tensor in every_tensor(document):
        if name is not None and tensor.storage is storage and tensor.span is not None and tensor.span.holds(offset):
            tensors[name] = None
    return within // storage.dtype.size, list(tensors)


def find_holes(document: TorchDocument, seen: ByteScan, altered: list[AlteredRecord], losses: Losses) -> list[ZeroHole]:
    """Runs of zeros over altered payloads or over lost structures. Marks the records that they explain.

    In a payload zeros may be values, so a run there must begin and end on sector boundaries or with the payload.
    """
    facts = document.zip
    assert facts is not None
    headers = _lost_places(document)
    torn = facts.directory.faults if facts.directory is not None else []
    holes: list[ZeroHole] = []
    for run in seen.zero_runs:
        lost = [name for name, place in headers if place.overlaps(run)]
        structures = [f"the local header of {name}" for name in lost]
        if any(Span(fault.offset, max(1, fault.length)).overlaps(run) for fault in torn):
            structures.append("the directory")
        inside = [row for row in altered if _lies_over(run, row, sure=bool(structures))]
        if inside or structures:
            names = [row.record for row in inside]
            holes.append(ZeroHole(run, names, structures, losses.tensors([*names, *lost])))
        for row in inside:
            row.explained = True
    return holes


def _lost_places(document: TorchDocument) -> list[tuple[str, Span]]:
    """Records without a local header, and where it should be."""
    rows: list[tuple[str, Span]] = []
    for index, record in document.zip_records():
        if record.entry is not None and record.local is None and record.local_fault is not None:
            rows.append((document.records[index].name, Span(record.entry.header_offset, 4)))
    return rows


def _lies_over(run: Span, row: AlteredRecord, *, sure: bool) -> bool:
    """Whether zeros took the place of a part of this payload: not those that explain nothing, as a flipped bit does.

    ``sure``: they cover structures too, so that they are no values.
    """
    start, end = max(run.offset, row.span.offset), min(run.end, row.span.end)
    if row.flipped is not None or start >= end:
        return False
    if sure or end - start < SECTOR:
        return sure
    whole_start = start == row.span.offset or -start % SECTOR <= _NEAR
    whole_end = end == row.span.end or end % SECTOR <= _NEAR
    on_sector = -start % SECTOR <= _NEAR or end % SECTOR <= _NEAR
    return whole_start and whole_end and (on_sector or (start, end) == (row.span.offset, row.span.end))


def payload_fits(document: TorchDocument, payload: Span, crc32: int) -> bool:
    """Whether bytes that no local header introduces have a recorded checksum; reads them once."""
    computed = 0
    for piece in document.source.stream(payload):
        computed = zlib.crc32(piece, computed)
    return computed == crc32


def mark_explained(document: TorchDocument, damage: DamageFacts) -> None:
    """Records that other accidents account for need no finding of their own."""
    moved = {place.before for place in damage.displacements}
    if moved:  # where the header of one record should be, that of another can stand
        strangers = (row for row in document.zip_records() if row[1].local is not None and row[1].local.name != row[1].name)
        moved.update(document.records[index].name for index, _ in strangers)
    converted = damage.conversion is not None or bool(damage.mangled)
    for row in damage.altered:
        if converted or row.record in moved:
            row.explained = True


def suspicious_spans(altered: Iterable[AlteredRecord]) -> list[Span]:
    """What has to be scanned to explain altered records: ascending and disjoint."""
    spans: list[Span] = []
    position = 0
    for row in sorted(altered, key=lambda row: row.span):
        if row.span.end > position and row.flipped is None:
            start = max(position, row.span.offset)
            spans.append(Span(start, row.span.end - start))
            position = row.span.end
    return spans
