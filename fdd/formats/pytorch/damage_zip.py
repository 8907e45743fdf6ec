# SPDX-License-Identifier: Apache-2.0
"""ZIP archives that break off, begin too late, or lack the header of a record: what is there and what is not."""

from __future__ import annotations

from fdd.container.zip.descriptor import decode
from fdd.container.zip.structs import (
    DESCRIPTOR_SIGNATURE,
    FLAG_DESCRIPTOR,
    LOCAL_HEADER_SIGNATURE,
    METHOD_STORED,
    ZIP64_END_RECORD,
    ZIP64_LOCATOR,
    CentralEntry,
    ZipFacts,
    ZipRecord,
)
from fdd.container.zip.window import content_end
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.damage_facts import SECTOR, CutOff, DamageFacts, LostHeader
from fdd.formats.pytorch.damage_losses import Losses, expected_bytes, nothing_missing, whole_size
from fdd.formats.pytorch.document import TorchDocument

SHORTEST_DESCRIPTOR = 16
_SOME_ZEROS = 64
"""Fewer zeros at the end of a file are the upper bytes of its last numbers."""
_NUMBER_ZEROS = 8
"""Zero bytes that the last fields of a whole descriptor can end with."""
_END_RECORDS = ZIP64_END_RECORD.size + ZIP64_LOCATOR.size + 22


def find_cut(document: TorchDocument, losses: Losses) -> CutOff | None:
    """Where the content of an archive without end record breaks off; None where it has one or other bytes follow."""
    facts = document.zip
    assert facts is not None
    if not any(fault.code in ("end-record-missing", "end-record-cut") for fault in facts.ends.faults):
        return None
    records = _in_file_order(facts)
    content = content_end(document.source)
    last = next((record for record in reversed(records) if not _is_whole(record, facts.size)), None)
    zeros = facts.size - content
    wanted = expected_bytes(losses, decode_name(last.name)) if last is not None else None
    tail = _zero_tail(facts, last, wanted, zeros)
    end = content if tail else facts.size
    whole = [record for record in records if _is_whole(record, end + _NUMBER_ZEROS)]
    broken = next((record for record in records if record not in whole), None) if tail else last
    if _other_bytes_follow(facts, broken, wanted if broken is last else None, tail):
        return None
    wanted = expected_bytes(losses, decode_name(broken.name)) if broken is not None else None
    inside, place = _break(document, facts, broken, wanted, end, whole)
    names = [decode_name(record.name) for record in whole]
    cut = [decode_name(broken.name)] if broken is not None else []
    all_written = nothing_missing(document, {record.name for record in whole}, losses)
    all_there = broken is not None and broken.payload is not None and wanted is not None and end - broken.payload.offset >= wanted
    return CutOff(
        place=Span(content, zeros) if tail else place,
        content=end,
        inside=inside,
        complete=names,
        directory=broken is None and (facts.directory is not None or all_written),
        zeros=zeros if tail else 0,
        whole_size=whole_size(document, whole, broken, losses) if not tail else None,
        tally=losses.tally({*names, *(cut if all_there else ())}, cut),
    )


def _in_file_order(facts: ZipFacts) -> list[ZipRecord]:
    rows = [record for record in (*facts.records, *facts.unlisted) if record.local is not None]
    return sorted(rows, key=lambda record: record.local.span if record.local is not None else Span(0, 0))


def _is_whole(record: ZipRecord, end: int) -> bool:
    """Whether header, payload and descriptor lie in front of ``end``."""
    if record.local is None or record.payload is None or not record.payload_complete:
        return False
    described = record.descriptor is not None or not record.local.flags & FLAG_DESCRIPTOR or not record.payload.length
    extent = record.extent
    return described and extent is not None and extent.end <= end


def _zero_tail(facts: ZipFacts, last: ZipRecord | None, wanted: int | None, zeros: int) -> bool:
    """Whether the zeros at the end stand for lost content. Inside the payload that breaks off they may be its values."""
    if last is None or last.payload is None:
        return zeros >= SECTOR
    if wanted is None:
        return zeros >= SECTOR
    behind = last.payload.offset + wanted
    return (
        zeros >= _SOME_ZEROS and behind + SHORTEST_DESCRIPTOR <= facts.size and facts.size - zeros < behind + SHORTEST_DESCRIPTOR
    )


def _other_bytes_follow(facts: ZipFacts, broken: ZipRecord | None, wanted: int | None, zeros: bool) -> bool:
    """Whether behind the last whole structure stand bytes that no cut explains."""
    if zeros:
        return False
    if broken is not None and broken.payload is not None:
        return wanted is not None and broken.payload.length > wanted + 2 * SHORTEST_DESCRIPTOR
    return facts.directory is not None and facts.size - facts.directory.span.end >= _END_RECORDS


def _break(
    document: TorchDocument, facts: ZipFacts, broken: ZipRecord | None, wanted: int | None, end: int, whole: list[ZipRecord]
) -> tuple[str, Span]:
    """In words where the archive breaks off, and the rest that stands there."""
    if broken is not None and broken.payload is not None:
        name, present = decode_name(broken.name), max(0, end - broken.payload.offset)
        place = Span(broken.payload.offset, max(0, facts.size - broken.payload.offset))
        if wanted is None:
            return f"inside record {name}, of which {present} bytes are there", place
        if present >= wanted:
            return f"inside the data descriptor of record {name}, whose contents are all there", place
        return f"inside record {name}, of which {present} of {wanted} bytes are there", place
    if facts.directory is not None:
        torn = next((fault for fault in facts.directory.faults if fault.code == "entry-cut"), None)
        where = "inside the directory" if torn is not None or facts.directory.span.end < end else "directly behind the directory"
        if torn is None and facts.directory.span.end < end:
            where = "inside the end records"
        start = torn.offset if torn is not None else facts.directory.span.end
        return where, Span(start, max(0, facts.size - start))
    behind = max((record.extent.end for record in whole if record.extent is not None), default=0)
    rest = Span(behind, max(0, facts.size - behind))
    last = decode_name(whole[-1].name) if whole else ""
    begun = document.source.read_at(behind, 4)
    if begun and LOCAL_HEADER_SIGNATURE.startswith(begun):
        return "inside the local header of the next record", rest
    return "behind the last record, in front of the directory" if rest.length else f"directly behind record {last}", rest


def find_directory_damage(document: TorchDocument, losses: Losses) -> CutOff | None:
    """The records behind a directory that lost entries, while the end records are there."""
    facts = document.zip
    assert facts is not None
    if facts.ends.end is None:
        return None
    directory = facts.directory
    torn = directory is None or any(fault.code in ("entry-signature", "entry-cut", "entry-lengths") for fault in directory.faults)
    fewer = directory is not None and len(directory.entries) < directory.stated_entries
    if not (torn and facts.salvaged) and not fewer:
        return None
    whole = [record for record in _in_file_order(facts) if _is_whole(record, facts.size)]
    names = [decode_name(record.local.name) for record in whole if record.local is not None]
    place = Span(facts.ends.end.span.offset, 0)
    if directory is not None:
        fault = next((fault for fault in directory.faults if fault.code.startswith("entry")), None)
        place = Span(fault.offset, fault.length) if fault is not None else directory.span
    return CutOff(place, facts.size, "", list(dict.fromkeys(names)), tally=losses.tally(set(names), ()))


def find_missing_head(document: TorchDocument, damage: DamageFacts) -> None:
    """Bytes that the archive's offsets count and that are not there, because the file lost its beginning."""
    facts = document.zip
    if facts is None or facts.directory is None or facts.directory.base >= 0:
        return
    damage.head_missing = -facts.directory.base
    gone = [record for record in facts.records if record.entry is not None and record.local is None]
    damage.head_records = [decode_name(record.name) for record in gone if record.entry and record.entry.header_offset < 0]


def find_lost_headers(document: TorchDocument, losses: Losses) -> list[LostHeader]:
    """Listed records without local header whose header is not elsewhere either."""
    facts = document.zip
    assert facts is not None
    elsewhere = {record.name for record in facts.unlisted}
    found: list[LostHeader] = []
    for record in facts.records:
        entry = record.entry
        if entry is None or record.local is not None or record.name in elsewhere:
            continue
        if not 0 <= entry.header_offset < facts.size or record.local_fault is None:
            continue
        name = decode_name(record.name)
        payload = _payload_by_descriptor(document.source, facts, entry)
        place = Span(entry.header_offset, record.local_fault.length)
        found.append(LostHeader(name, place, payload, entry.uncompressed_size, losses.tensors([name])))
    return found


def _payload_by_descriptor(source: ByteSource, facts: ZipFacts, entry: CentralEntry) -> Span | None:
    """The payload that ends at a descriptor with this entry's values, in front of the next structure."""
    starts = [row.entry.header_offset for row in facts.records if row.entry is not None and row.local is not None]
    starts += [facts.directory.span.offset] if facts.directory is not None else []
    following = min((start for start in starts if start > entry.header_offset), default=None)
    if following is None:
        return None
    for length in (16, 24):
        position = following - length
        data = source.read_at(position, length)
        if len(data) == length and data[:4] == DESCRIPTOR_SIGNATURE:
            stated = decode(data, length, position)
            start = position - entry.compressed_size
            fits = (stated.crc32, stated.compressed_size) == (entry.crc32, entry.compressed_size)
            if fits and start > entry.header_offset and entry.method == METHOD_STORED:
                return Span(start, entry.compressed_size)
    return None
