# SPDX-License-Identifier: Apache-2.0
"""Bytes lost or inserted in the middle of an archive: everything behind them stands elsewhere than the directory says."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from fdd.container.zip.structs import DESCRIPTOR_SIGNATURE, METHOD_STORED, CentralEntry, ZipFacts, ZipRecord
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.damage_facts import Displacement
from fdd.formats.pytorch.damage_losses import Losses
from fdd.formats.pytorch.document import TorchDocument

MOST_SEARCHED = 16 << 20
"""Bytes of the largest region in which a repeated block is looked for."""
MOST_PLACES = 64
_LEAST_REPEATED = 16
"""Bytes of a block that stands there twice and not by chance."""
DIRECTORY = "the directory"


@dataclass(slots=True)
class _Structure:
    """A structure with a stated place, and where it is; ``found`` None where it is not."""

    name: str
    stated: int
    found: int | None
    record: ZipRecord | None

    @property
    def shift(self) -> int | None:
        return self.found - self.stated if self.found is not None else None


def find_displacements(document: TorchDocument, losses: Losses) -> list[Displacement]:
    """Every place behind which structures stand at another distance from their stated places than those before."""
    facts = document.zip
    if facts is None or facts.directory is None or facts.directory.stated_offset < 0:
        return []
    found: list[Displacement] = []
    for before, behind, lost in _breaks(_structures(facts)):
        place = _displacement(document, facts, before, behind, lost, losses)
        if place is not None and len(found) < MOST_PLACES:
            found.append(place)
    return found


def _structures(facts: ZipFacts) -> list[_Structure]:
    """Listed records in the order of their stated places, and the directory."""
    assert facts.directory is not None
    # Among records of one size a shifted header can stand exactly where that of another record should be.
    stray: dict[bytes, list[int]] = {}
    for record in (*facts.records, *facts.unlisted):
        if record.local is not None and (record.entry is None or record.local.name != record.name):
            stray.setdefault(record.local.name, []).append(record.local.span.offset)
    listed = {record.name for record in facts.records}
    rows: list[_Structure] = []
    for record in facts.records:
        if record.entry is None:
            continue
        stated, local = record.entry.header_offset, record.local
        places = stray.get(record.name, [])
        if local is not None and (local.name == record.name or (not places and local.name not in listed)):
            places = [local.span.offset]
        nearest = min(places, key=lambda place: abs(place - stated), default=None)
        rows.append(_Structure(decode_name(record.name), stated, nearest, record))
    rows.sort(key=lambda row: row.stated)
    stated = facts.directory.stated_offset + facts.directory.base
    return [*rows, _Structure(DIRECTORY, stated, facts.directory.span.offset, None)]


def _breaks(rows: list[_Structure]) -> Iterator[tuple[_Structure, _Structure, list[_Structure]]]:
    """Neighbours that are found and whose shifts differ, with the lost structures between them.

    One structure alone at another distance than both its neighbours has a wrong offset in the directory; no bytes moved.
    """
    found = [row for row in rows if row.shift is not None]
    astray = {
        id(row)
        for row, before, behind in zip(found[1:], found, found[2:], strict=False)
        if before.shift == behind.shift != row.shift
    }
    previous: _Structure | None = None
    lost: list[_Structure] = []
    for row in rows:
        if row.shift is None:
            lost.append(row)
        elif id(row) not in astray:
            if previous is not None and previous.shift != row.shift:
                yield previous, row, lost
            previous, lost = row, []


def _displacement(
    document: TorchDocument, facts: ZipFacts, before: _Structure, behind: _Structure, lost: list[_Structure], losses: Losses
) -> Displacement | None:
    assert before.shift is not None and behind.shift is not None and behind.found is not None
    count = behind.shift - before.shift
    record = _as_found(facts, before)
    if record is None or record.payload is None:
        return None
    entry = before.record.entry if before.record is not None else None
    start = record.payload.offset
    descriptor = record.descriptor
    if descriptor is not None and record.descriptor_fault is None and entry is not None and descriptor.crc32 == entry.crc32:
        start = descriptor.span.end if not lost and descriptor.span.end <= behind.found else start
    region = Span(start, max(0, behind.found - start))
    stands_behind = start > record.payload.offset
    if stands_behind and behind.record is None and (count < 0 or region.length < count):
        return None  # the directory follows the last record directly: only its stated offset is wrong
    inside = not stands_behind and not lost and _descriptor_ends(document, behind.found, entry.crc32 if entry else 0)
    broken = [] if stands_behind else [before.name]
    names = [row.name for row in lost]
    place = Displacement(count, region, before.name, behind.name, inside, names, losses.tensors([*broken, *names]))
    if count > 0 and entry is not None and region.length <= MOST_SEARCHED:
        _look_for_repeat(document, place, entry if inside else None)
    return place


def _as_found(facts: ZipFacts, row: _Structure) -> ZipRecord | None:
    """The record as it was read at the place where it is."""
    if row.record is not None and row.record.local is not None and row.record.local.span.offset == row.found:
        return row.record
    candidates = (*facts.unlisted, *facts.records)
    return next((item for item in candidates if item.local is not None and item.local.span.offset == row.found), None)


def _descriptor_ends(document: TorchDocument, position: int, crc32: int) -> bool:
    """Whether directly in front of ``position`` stands a descriptor with that checksum."""
    for length in (16, 24):
        data = document.source.read_at(position - length, length)
        if data[:4] == DESCRIPTOR_SIGNATURE and int.from_bytes(data[4:8], "little") == crc32:
            return True
    return False


def _look_for_repeat(document: TorchDocument, place: Displacement, entry: CentralEntry | None) -> None:
    """Find the inserted bytes if they are a copy of those in front of them, and test whether taking them out mends the record.

    The exclusive-or of the region with itself, moved by the length of the block, is zero where the block is repeated.
    """
    count, region = place.count, place.span
    data = document.source.read_at(region.offset, region.length)
    if not 0 < 2 * count <= len(data):
        return
    moved = int.from_bytes(data[:-count], "little") ^ int.from_bytes(data[count:], "little")
    at = moved.to_bytes(len(data) - count, "little").find(bytes(count))
    if at < 0:
        return
    if entry is not None and entry.method == METHOD_STORED:
        mended = data[:at] + data[at + count :]
        place.restores = zlib.crc32(mended[: entry.compressed_size]) == entry.crc32
    if place.restores or count >= _LEAST_REPEATED:
        place.repeated = Span(region.offset + at + count, count)
