# SPDX-License-Identifier: Apache-2.0
"""The bytes that torch's archive writer puts around payloads (format.md 1.5 to 1.10).

Nothing else in this project writes torch's container form. A file is fully determined by its ordered records and the
alignment; :func:`layout` computes every byte outside the payloads without them, so that a file can be held against it.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    DESCRIPTOR_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    EXTRA_PADDING,
    EXTRA_ZIP64,
    FLAG_DESCRIPTOR,
    FLAG_UTF8,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    METHOD_DEFLATED,
    METHOD_STORED,
    U16_ESCAPE,
    U32_ESCAPE,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
    ZIP64_LOCATOR,
    ZIP64_LOCATOR_SIGNATURE,
)
from fdd.core.span import Span

DEFAULT_ALIGNMENT = 64
MAX_ALIGNMENT = 1 << 16
"""Above it the padding no longer fits the 16-bit length of an extra field."""
DEFLATED_ABOVE = 3
"""Records of more bytes are deflated where the writer is asked to; shorter ones stay stored."""

VERSION_DEFLATED = 20
"""Version needed of a deflated record; of a stored one it is 0."""

EXTRA_HEAD = Struct("<HH")
DESCRIPTOR = Struct("<4sIII")
DESCRIPTOR64 = Struct("<4sIQQ")

_VERSION_ZIP64 = 45
_MADE_BY = 0x031E
_ZIP64_RECORD_SIZE = 44
_PADDING_BYTE = b"Z"
_U64_MAX = (1 << 64) - 1


@dataclass(slots=True, frozen=True)
class CanonicalRecord:
    """What decides the bytes around one payload. Sizes in bytes; ``method`` is 0 (stored) or 8 (deflated).

    ``time`` and ``date`` are MS-DOS words: 0 since torch 1.4, the time of saving before.
    """

    name: bytes
    stored_size: int
    uncompressed_size: int
    crc32: int
    method: int = METHOD_STORED
    time: int = 0
    date: int = 0

    @property
    def version_needed(self) -> int:
        """0, or 20 for a deflated record; never 45, not even with ZIP64 fields."""
        return VERSION_DEFLATED if self.method == METHOD_DEFLATED else 0

    @property
    def flags(self) -> int:
        """Names are UTF-8; an empty record has no data descriptor."""
        return FLAG_UTF8 | (FLAG_DESCRIPTOR if self.uncompressed_size else 0)


class Piece(NamedTuple):
    """A structure at its place. ``what`` is a word of :class:`~fdd.container.zip.structs.Region`, or ``directory-entry``.

    ``record`` is the position of its record in the list that was laid out, None for the end records.
    """

    span: Span
    data: bytes
    what: str
    record: int | None = None


def padding_length(name_length: int, offset: int, zip64_length: int, alignment: int) -> int:
    """Return how many bytes of padding bring the payload to a multiple of ``alignment``."""
    start = offset + LOCAL_HEADER.size + name_length + zip64_length + EXTRA_HEAD.size
    return -start % alignment


def _u64(number: int) -> bytes:
    """Eight bytes; sums of damaged sizes may be larger than that, and lose their upper bits."""
    return (number & _U64_MAX).to_bytes(8, "little")


def local_zip64(record: CanonicalRecord, offset: int) -> bytes:
    """Return the ZIP64 field of a local header: empty, or in torch's dialect (size and 0; the header's own offset)."""
    data = b""
    if record.uncompressed_size >= U32_ESCAPE:
        data += _u64(record.uncompressed_size) + bytes(8)
    if offset >= U32_ESCAPE:
        data += _u64(offset)
    return EXTRA_HEAD.pack(EXTRA_ZIP64, len(data)) + data if data else b""


def local_header(record: CanonicalRecord, offset: int, alignment: int, padding: int | None = None) -> bytes:
    """Return the local header with name and extra. ``padding`` overrides the length that ``alignment`` asks for."""
    zip64 = local_zip64(record, offset)
    if padding is None:
        padding = padding_length(len(record.name), offset, len(zip64), alignment)
    # As in C, a length that does not fit loses its upper bits: an alignment of 65536 can ask for a few bytes too many.
    extra_length = (len(zip64) + EXTRA_HEAD.size + padding) & U16_ESCAPE
    fixed = LOCAL_HEADER.pack(
        LOCAL_HEADER_SIGNATURE, record.version_needed, record.flags, record.method, record.time, record.date,
        0, 0, 0, len(record.name), extra_length,
    )  # fmt: skip
    return fixed + record.name + zip64 + EXTRA_HEAD.pack(EXTRA_PADDING, padding & U16_ESCAPE) + _PADDING_BYTE * padding


def local_header_length(record: CanonicalRecord, offset: int, alignment: int) -> int:
    """Return the length of :func:`local_header` without making it."""
    zip64 = 0
    if needs_zip64(record, offset):
        zip64 = EXTRA_HEAD.size + 16 * (record.uncompressed_size >= U32_ESCAPE) + 8 * (offset >= U32_ESCAPE)
    fixed = LOCAL_HEADER.size + len(record.name) + zip64 + EXTRA_HEAD.size
    return fixed + -(offset + fixed) % alignment


def needs_zip64(record: CanonicalRecord, offset: int) -> bool:
    """Whether the record has ZIP64 fields and a descriptor with 8-byte sizes."""
    return record.uncompressed_size >= U32_ESCAPE or offset >= U32_ESCAPE


def descriptor(record: CanonicalRecord, offset: int) -> bytes:
    """Return the data descriptor: none for an empty record, 16 bytes, or 24 where the local header has a ZIP64 field."""
    if not record.uncompressed_size:
        return b""
    if needs_zip64(record, offset):
        return DESCRIPTOR64.pack(DESCRIPTOR_SIGNATURE, record.crc32, record.stored_size, record.uncompressed_size)
    # Only a damaged file says that deflated data is larger than 4 GiB and yields less.
    return DESCRIPTOR.pack(DESCRIPTOR_SIGNATURE, record.crc32, record.stored_size & U32_ESCAPE, record.uncompressed_size)


def central_header(record: CanonicalRecord, offset: int) -> bytes:
    """Return the directory entry of a record whose local header begins at ``offset``."""
    data = b""
    if record.uncompressed_size >= U32_ESCAPE:
        data += _u64(record.uncompressed_size) + _u64(record.stored_size)
    if offset >= U32_ESCAPE:
        data += _u64(offset)
    extra = EXTRA_HEAD.pack(EXTRA_ZIP64, len(data)) + data if data else b""
    fixed = CENTRAL_HEADER.pack(
        CENTRAL_HEADER_SIGNATURE, 0, record.version_needed, record.flags, record.method, record.time, record.date,
        record.crc32, min(record.stored_size, U32_ESCAPE), min(record.uncompressed_size, U32_ESCAPE),
        len(record.name), len(extra), 0, 0, 0, 0, min(offset, U32_ESCAPE),
    )  # fmt: skip
    return fixed + record.name + extra


def zip64_end(entries: int, directory: Span) -> bytes:
    """Return the ZIP64 end record, which torch writes always."""
    return ZIP64_END_RECORD.pack(
        ZIP64_END_SIGNATURE, _ZIP64_RECORD_SIZE, _MADE_BY, _VERSION_ZIP64, 0, 0,
        entries, entries, directory.length, directory.offset & _U64_MAX,
    )  # fmt: skip


def zip64_locator(end_offset: int) -> bytes:
    """Return the locator of the ZIP64 end record at ``end_offset``."""
    return ZIP64_LOCATOR.pack(ZIP64_LOCATOR_SIGNATURE, 0, end_offset & _U64_MAX, 1)


def end_record(entries: int, directory: Span) -> bytes:
    """Return the end record: true values as far as they fit."""
    count = min(entries, U16_ESCAPE)
    size, offset = min(directory.length, U32_ESCAPE), min(directory.offset, U32_ESCAPE)
    return END_RECORD.pack(END_SIGNATURE, 0, 0, count, count, size, offset, 0)


def layout(records: Iterable[CanonicalRecord], alignment: int = DEFAULT_ALIGNMENT) -> list[Piece]:
    """Compute every byte outside the payloads, ascending. The gaps between the pieces are the payloads.

    ``records`` are in the order of writing. Raises ValueError for an alignment that torch cannot write.
    """
    if not 1 <= alignment <= MAX_ALIGNMENT:
        raise ValueError(f"alignment {alignment} is not within 1 to {MAX_ALIGNMENT}")
    records = list(records)
    pieces: list[Piece] = []
    offsets: list[int] = []
    position = 0
    for number, record in enumerate(records):
        offsets.append(position)
        header = local_header(record, position, alignment)
        pieces.append(Piece(Span(position, len(header)), header, "local-header", number))
        tail = descriptor(record, position)
        position += len(header) + record.stored_size
        if tail:
            pieces.append(Piece(Span(position, len(tail)), tail, "descriptor", number))
        position += len(tail)
    pieces.extend(_ends(records, offsets, position))
    return pieces


def _ends(records: Sequence[CanonicalRecord], offsets: Sequence[int], position: int) -> list[Piece]:
    pieces: list[Piece] = []
    start = position
    for number, (record, offset) in enumerate(zip(records, offsets, strict=True)):
        entry = central_header(record, offset)
        pieces.append(Piece(Span(position, len(entry)), entry, "directory-entry", number))
        position += len(entry)
    directory = Span(start, position - start)
    for data, what in (
        (zip64_end(len(records), directory), "zip64-end"),
        (zip64_locator(directory.end), "zip64-locator"),
        (end_record(len(records), directory), "end"),
    ):
        pieces.append(Piece(Span(position, len(data)), data, what))
        position += len(data)
    return pieces


def write_archive(
    records: Iterable[tuple[bytes, bytes]],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
    deflate_names: Collection[bytes] = (),
    crc_off: bool = False,
    crc_off_names: Collection[bytes] = (),
    time: int = 0,
    date: int = 0,
) -> bytes:
    """Write a small archive of (full name, payload) pairs as torch would.

    ``crc_off`` leaves every checksum 0 (torch's ``set_crc32_options(False)``), ``crc_off_names`` those of some records
    (``skip_data``). Deflated data is zlib's, which need not be the bytes that torch's own compressor gives.
    """
    rows: list[CanonicalRecord] = []
    payloads: list[bytes] = []
    for name, payload in records:
        deflated = name in deflate_names and len(payload) > DEFLATED_ABOVE
        stored = _deflate(payload) if deflated else payload
        crc = 0 if crc_off or name in crc_off_names else zlib.crc32(payload)
        method = METHOD_DEFLATED if deflated else METHOD_STORED
        rows.append(CanonicalRecord(name, len(stored), len(payload), crc, method, time, date))
        payloads.append(stored)
    return assemble(layout(rows, alignment), payloads)


def assemble(pieces: Iterable[Piece], payloads: Sequence[bytes]) -> bytes:
    """Put the stored payloads behind their local headers."""
    parts: list[bytes] = []
    for piece in pieces:
        parts.append(piece.data)
        if piece.what == "local-header" and piece.record is not None:
            parts.append(payloads[piece.record])
    return b"".join(parts)


def _deflate(payload: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(payload) + compressor.flush()
